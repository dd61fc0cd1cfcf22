#include "sim/measured/row_validation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <tuple>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/layer/memory.hpp"
#include "sim/measured/row_scenario.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/read_power.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/unequal_rules.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Status = RowPrediction::Status;

/// The step's time, and the power of a GPU where the row has it measured and the machine's parts
/// are known.
void simulate_row(const ReferenceRow& row, const PresetStore& presets, Scenario& scenario,
                  RowPrediction& out) {
  const bool powered = row.measured_gpu_power_w && scenario.node.chassis && scenario.node.gpu.power;
  const StepReport report =
      simulate_step(scenario, {.record_timeline = powered, .keep_actors = powered});
  out.predicted_step_s = report.step_s;
  if (const std::string words = method_words(report.method, report.band); !words.empty()) {
    out.assumptions.push_back("step: " + words);
  }
  out.error = report.step_s / *row.measured_step_s - 1;
  if (!powered) return;
  scenario.power = PowerSpec{};
  scenario.power->facility = presets.facility(kDefaultFacility);
  out.predicted_gpu_power_w = step_power(scenario, report).gpu_mean.base_units();
}

RowPrediction predict_row(const ReferenceRow& row, const PresetStore& presets,
                          const StepIntervals& intervals, std::span<const Profile> profiles,
                          Folding folding) {
  RowPrediction out{.row = &row,
                    .status = Status::skipped,
                    .reason = row.obstacle,
                    .stack = row.stack,
                    .predicted_step_s = {},
                    .interval = {},
                    .error = {},
                    .predicted_memory_gib = {},
                    .predicted_fits = {},
                    .assumptions = {}};
  if (const std::string preset = presets.meant("stacks", row.stack); !preset.empty())
    out.stack = preset;
  if (!row.obstacle.empty()) return out;
  try {
    Scenario scenario = row_scenario(row, presets);
    scenario.folding = folding;
    if (!scenario.stack.stands_in && presets.has("stacks", scenario.stack.name))
      out.stack = scenario.stack.name;
    if (!profiles.empty() && profiles.front().gpu != scenario.node.gpu.name) {
      out.reason = "another card than the profile's";
      return out;
    }
    lay_cards(profiles, scenario);
    out.assumptions = scenario.assumptions;
    const MemoryVerdict memory = check_memory(scenario.job, scenario.stack, scenario.node.gpu);
    out.predicted_memory_gib = memory.peak.total() / gibibytes(1);
    out.predicted_fits = memory.fits;
    out.needed_memory_gib = memory.peak.needed() / gibibytes(1);
    out.memory_decides = memory.band.decides;
    out.status = row.ran_out_of_memory ? Status::oom : Status::predicted;
    if (row.ran_out_of_memory) return out;
    simulate_row(row, presets, scenario, out);
    out.interval = intervals.of(scenario);
  } catch (const InputError& e) {
    // A preset is broken, or what somebody wrote of a row: not the row as it was asked for.
    const bool asked = row.composed || row.unnamed;
    if (e.problem().file != row.id && !(asked && e.problem().file == row.file)) throw;
    out.status = Status::skipped;
    out.reason = e.first_line();
  }
  return out;
}

template <class Member>
GroupErrors group_errors(std::string group, const std::vector<RowPrediction>& predictions,
                         Member member) {
  std::vector<double> errors;
  std::vector<const RowPrediction*> members;
  for (const RowPrediction& p : predictions) {
    if (!p.error || !member(p)) continue;
    errors.push_back(*p.error);
    members.push_back(&p);
  }
  GroupErrors out{std::move(group), summarise_errors(errors), {}};
  if (!members.empty()) out.worst_id = members[out.errors.worst_at]->row->id;
  return out;
}

template <class Key>
std::vector<GroupErrors> group_by(const std::vector<RowPrediction>& predictions, bool dense_only,
                                  Key key) {
  std::map<std::string, std::size_t> keys;  // sorted, so that the output is too
  const auto member = [&](const RowPrediction& p) { return !dense_only || p.row->dense; };
  for (const RowPrediction& p : predictions) {
    if (p.error && member(p)) ++keys[key(p)];
  }
  std::vector<GroupErrors> out;
  out.reserve(keys.size());
  for (const auto& [name, count] : keys) {
    out.push_back(group_errors(
        name, predictions, [&](const RowPrediction& p) { return member(p) && key(p) == name; }));
  }
  return out;
}

/// Tokens per second and GPU, measured and predicted, of rows that are ranked together.
struct Throughputs {
  std::vector<double> measured, predicted;
  void add(const RowPrediction& p) {
    const Batch& batch = p.row->batch;
    const double tokens = static_cast<double>(batch.sequences) * batch.tokens;
    measured.push_back(tokens / (*p.row->measured_step_s * p.row->gpus));
    predicted.push_back(tokens / (*p.predicted_step_s * p.row->gpus));
  }
  [[nodiscard]] double correlation() const { return spearman(predicted, measured); }
};

std::vector<Ranking> rank_layouts(const std::vector<RowPrediction>& predictions) {
  std::map<std::tuple<std::string, std::string, int, int, int>, Throughputs> groups;
  for (const RowPrediction& p : predictions) {
    const ReferenceRow& r = *p.row;
    if (!p.error) continue;
    groups[{r.source, r.model.name, r.gpus, r.batch.sequences, r.batch.tokens}].add(p);
  }
  std::vector<Ranking> out;
  for (const auto& [key, group] : groups) {
    if (group.measured.size() < kRankingGroup) continue;
    const auto& [source, model, gpus, sequences, tokens] = key;
    out.push_back(
        {source, model, gpus, sequences, tokens, group.measured.size(), group.correlation()});
  }
  return out;
}

std::vector<std::pair<std::string, double>> rank_sources(
    const std::vector<RowPrediction>& predictions) {
  std::map<std::string, Throughputs> groups;
  for (const RowPrediction& p : predictions) {
    if (p.error) groups[p.row->source].add(p);
  }
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [source, group] : groups) {
    if (group.measured.size() >= kRankingGroup) out.emplace_back(source, group.correlation());
  }
  return out;
}

/// Of what rows have both predicted and measured.
GroupErrors errors_of(std::string group, const std::vector<RowPrediction>& predictions,
                      std::optional<double> RowPrediction::* predicted,
                      std::optional<double> ReferenceRow::* measured) {
  std::vector<double> errors;
  std::vector<std::string> ids;
  for (const RowPrediction& p : predictions) {
    const std::optional<double>& prediction = p.*predicted;
    const std::optional<double>& measurement = p.row->*measured;
    if (!prediction || !measurement) continue;
    errors.push_back(*prediction / *measurement - 1);
    ids.push_back(p.row->id);
  }
  GroupErrors out{std::move(group), summarise_errors(errors), {}};
  if (!ids.empty()) out.worst_id = ids[out.errors.worst_at];
  return out;
}

OutOfMemory classify_memory(const std::vector<RowPrediction>& predictions) {
  OutOfMemory out;
  for (const RowPrediction& p : predictions) {
    if (!p.predicted_fits) continue;
    const bool ran_out = p.row->ran_out_of_memory;
    ++(*p.predicted_fits ? (ran_out ? out.misses : out.correct_fits)
                         : (ran_out ? out.hits : out.false_alarms));
  }
  return out;
}

std::vector<SaidNotToFit> count_said_not_to_fit(const std::vector<RowPrediction>& predictions) {
  std::map<std::string, SaidNotToFit> sources;
  for (const RowPrediction& p : predictions) {
    if (!p.predicted_fits || p.row->ran_out_of_memory) continue;
    SaidNotToFit& of = sources[p.row->source];
    of.source = p.row->source;
    ++of.rows;
    if (*p.predicted_fits) continue;
    ++of.not_fitting;
    if (!p.memory_decides.empty()) ++of.close;
  }
  std::vector<SaidNotToFit> out;
  out.reserve(sources.size());
  for (auto& [name, of] : sources) out.push_back(std::move(of));
  return out;
}

/// The kind of a reason: InputErrors differ by row, what is after the row's name does not.
std::string reason_kind(const RowPrediction& p) {
  const std::string prefix = p.row->id;
  return p.reason.starts_with(prefix) ? p.reason.substr(prefix.size()) : p.reason;
}

void count_rows(const std::vector<RowPrediction>& predictions, RowSummary& out) {
  std::map<std::string, std::size_t> reasons;
  out.rows = predictions.size();
  for (const RowPrediction& p : predictions) {
    out.predicted += p.status == Status::predicted ? 1 : 0;
    out.skipped += p.status == Status::skipped ? 1 : 0;
    out.oom += p.status == Status::oom ? 1 : 0;
    if (p.status == Status::skipped) ++reasons[reason_kind(p)];
  }
  out.skipped_for.assign(reasons.begin(), reasons.end());
  std::ranges::stable_sort(out.skipped_for,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

std::string_view name_of(Status status) {
  switch (status) {
    case Status::predicted:
      return "predicted";
    case Status::skipped:
      return "skipped";
    case Status::oom:
      return "oom";
  }
  return {};
}

double OutOfMemory::precision() const {
  const std::size_t alarms = hits + false_alarms;
  return alarms == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(alarms);
}
double OutOfMemory::recall() const {
  const std::size_t events = hits + misses;
  return events == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(events);
}

std::vector<RowPrediction> predict_rows(const std::vector<ReferenceRow>& rows,
                                        const PresetStore& presets, int threads,
                                        const std::function<void()>& row_done,
                                        std::span<const Profile> profiles, Folding folding) {
  std::vector<RowPrediction> predictions(rows.size());
  const StepIntervals intervals(presets);
  tbb::task_arena arena(threads == 0 ? tbb::task_arena::automatic : threads);
  arena.execute([&] {
    tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
      predictions[i] = predict_row(rows[i], presets, intervals, profiles, folding);
      row_done();
    });
  });
  return predictions;
}

namespace {

std::vector<GroupErrors> errors_by_kind(const std::vector<RowPrediction>& predictions) {
  struct Kind {
    const char* name;
    bool (*has)(const ReferenceRow& row);
  };
  constexpr std::array kGroups{
      Kind{"dense", [](const ReferenceRow& r) { return r.dense; }},
      Kind{"sharded weights", [](const ReferenceRow& r) { return r.sharding == Sharding::zero3; }},
      Kind{"context parallel", [](const ReferenceRow& r) { return r.context > 1; }},
      Kind{"mixture of experts", [](const ReferenceRow& r) { return r.model.experts.count > 0; }}};
  std::vector<GroupErrors> out;
  for (const Kind& kind : kGroups) {
    GroupErrors group = group_errors(kind.name, predictions, [&](const RowPrediction& p) {
      return p.row->complete && kind.has(*p.row);
    });
    if (group.errors.n > 0) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace

std::vector<std::string> missed_expectations(const std::vector<RowPrediction>& predictions) {
  std::vector<std::string> out;
  for (const RowPrediction& p : predictions) {
    if (!p.row->expected_to_fit && p.predicted_fits == true) {
      out.push_back(p.row->id + ": expectation missed: the job fits in memory");
    }
    if (!p.row->expected_step_s || !p.predicted_step_s) continue;
    const double error = *p.predicted_step_s / *p.row->expected_step_s - 1;
    if (std::abs(error) <= p.row->within) continue;
    out.push_back(fmt::format(
        "{}: expectation missed: a step takes {}, expected {}: {}; allowed: "
        "within {:.4g} %",
        p.row->id, duration_text(*p.predicted_step_s), duration_text(*p.row->expected_step_s),
        error_text(error), 100 * p.row->within));
  }
  return out;
}

RowSummary summarise_rows(const std::vector<RowPrediction>& predictions) {
  const auto source = [](const RowPrediction& p) { return p.row->source; };
  const auto gpu = [](const RowPrediction& p) { return p.row->gpu; };
  const auto stack = [](const RowPrediction& p) { return p.stack; };
  RowSummary out;
  count_rows(predictions, out);
  out.overall = group_errors("all", predictions, [](const RowPrediction&) { return true; });
  out.dense =
      group_errors("dense", predictions, [](const RowPrediction& p) { return p.row->dense; });
  out.complete =
      group_errors("complete", predictions, [](const RowPrediction& p) { return p.row->complete; });
  out.by_kind = errors_by_kind(predictions);
  out.by_source = group_by(predictions, false, source);
  out.by_source_dense = group_by(predictions, true, source);
  out.by_gpu = group_by(predictions, false, gpu);
  out.by_gpu_dense = group_by(predictions, true, gpu);
  out.by_stack = group_by(predictions, false, stack);
  out.by_stack_dense = group_by(predictions, true, stack);
  std::vector<double> medians;
  medians.reserve(out.by_source_dense.size());
  for (const GroupErrors& group : out.by_source_dense) medians.push_back(group.errors.median_abs);
  if (!medians.empty()) out.median_over_sources_dense = median(medians);
  out.rankings = rank_layouts(predictions);
  out.spearman_by_source = rank_sources(predictions);
  std::vector<double> correlations;
  correlations.reserve(out.rankings.size());
  for (const Ranking& ranking : out.rankings) correlations.push_back(ranking.spearman);
  if (!correlations.empty()) out.median_spearman = median(correlations);
  out.memory = errors_of("memory", predictions, &RowPrediction::predicted_memory_gib,
                         &ReferenceRow::measured_memory_gib);
  out.power = errors_of("power", predictions, &RowPrediction::predicted_gpu_power_w,
                        &ReferenceRow::measured_gpu_power_w);
  out.said_not_to_fit = count_said_not_to_fit(predictions);
  if (out.oom > 0) out.out_of_memory = classify_memory(predictions);
  return out;
}

}  // namespace lockstep
