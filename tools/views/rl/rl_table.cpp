#include "tools/views/rl/rl_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/rl_answer.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/rl/rl_account.hpp"
#include "sim/rl/rl_step.hpp"
#include "tools/console/percent.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/console/table.hpp"
#include "tools/views/rl/update_words.hpp"
#include "tools/views/run/run_facts.hpp"

namespace lockstep {
namespace {

constexpr int kLabels = 18;
constexpr int kBarColumns = 34;

std::string scorers_text(const RlSpec& rl) {
  std::vector<std::string> parts{"actor"};
  if (rl.critic) parts.push_back("critic " + rl.critic->job.model.name);
  if (rl.reward_model) parts.push_back("reward model " + rl.reward_model->job.model.name);
  if (rl.reference) parts.emplace_back("reference");
  if (rl.teacher) parts.push_back("teacher " + rl.teacher->job.model.name);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string pools_text(const RlScenario& s, const RlReport& r) {
  const GenerationPool& pool = s.rl.generation;
  const std::string layout = fmt::format(
      "{} of TP {}{}, {}, {}", counted(r.replicas, "replica"), pool.tensor,
      pool.expert_parallel ? " (whole experts)" : "", info(pool.precision).name, pool.engine.name);
  if (r.generation_gpus == 0) return "colocated: " + layout;
  return fmt::format("{} train, {} generate ({}): {}", counted(r.training_gpus, "GPU"),
                     grouped(r.generation_gpus),
                     kRlScheduleNames[static_cast<std::size_t>(s.rl.schedule)], layout);
}

std::string title(const RlScenario& s, const RlResult& result, const TextStyle& style) {
  const Scenario& t = s.training;
  const RlReport& r = result.report;
  std::string out = style.bold(fmt::format("{} of {} on {}", s.rl.algorithm->title,
                                           t.job.model.name, counted(r.gpus(), "GPU"))) +
                    fmt::format(" ({} x {}, {})\n", grouped(t.nodes + s.rl.generation.nodes),
                                t.node.name, t.node.gpu.name);
  if (result.power) {
    const std::string warning = limit_warning(result.power->site, *t.power);
    if (!warning.empty()) out += labelled_line("Power limit", kLabels, style.bold(warning));
  }
  if (!t.about.empty()) out += wrap(t.about, kTextColumns, 0) + "\n";
  out += "\n" + labelled_line("Models", kLabels, scorers_text(s.rl));
  const bool offline = s.rl.algorithm->offline;
  if (!offline) out += labelled_line("Pools", kLabels, pools_text(s, r));
  out += labelled_line(offline ? "Text" : "Rollout", kLabels,
                       fmt::format("{} of {} tokens x {} of {} on average, {} at most",
                                   counted(s.rl.prompts, "prompt"), grouped(s.rl.prompt_tokens),
                                   counted(s.rl.generations, "response"),
                                   grouped(std::round(r.response_mean)), grouped(r.response_most)));
  return out + labelled_line("Training", kLabels, update_words(s, r));
}

/// Lines about the spread of the step time: a sample of replicas, draws of the hashes.
std::string spread_lines(const RlReport& r, const std::optional<HashAnswer>& hash) {
  std::string out;
  if (r.band && r.band->low_s < r.band->high_s) {
    out += labelled_line("Unfolded", kLabels,
                         fmt::format("{} to {} (a sample of the trainers' replicas was simulated)",
                                     duration_text(r.band->low_s), duration_text(r.band->high_s)));
  }
  if (!hash) return out;
  return out + (hash->draws == 1 ? labelled_line("Hash", kLabels, one_draw_text(*hash))
                                 : labelled_line(fmt::format("{} hash draws", hash->draws), kLabels,
                                                 hash_text(hash->bands[0])));
}

std::string training_line(const RlReport& r) {
  return labelled_line("Training", kLabels,
                       fmt::format("{}: {} MFU", duration_text(r.training.base_units()),
                                   percent_text(r.update.mfu_full)));
}

/// Of a step that generates nothing: training and what lies frozen beside it.
std::string memory_line(const RlScenario& s) {
  const auto gib = [](Bytes bytes) { return fmt::format("{:.1f} GiB", bytes / gibibytes(1)); };
  const MemoryVerdict memory = rl_memory(s);
  std::string words =
      fmt::format("{} at the peak (stage {}) of {} usable", gib(memory.peak.total()),
                  memory.fullest_stage, gib(memory.usable));
  const Bytes frozen = frozen_weights(s);
  if (frozen > Bytes{}) {
    words += fmt::format("; {} of them the {}'s weights", gib(frozen),
                         s.rl.teacher ? "teacher" : "reference");
  }
  return labelled_line("Memory", kLabels, words);
}

std::string headline(const RlScenario& s, const RlReport& r, const std::optional<HashAnswer>& hash,
                     const TextStyle& style) {
  const double gpus = r.generation_gpus > 0 ? r.generation_gpus : r.training_gpus;
  std::string out = "\n";
  out += labelled_line("Step time", kLabels, style.bold(duration_text(r.step.base_units())));
  out += spread_lines(r, hash);
  const std::optional<Expectation>& expect = s.training.expect;
  if (expect && expect->step_time) {
    const double measured = expect->step_time->base_units();
    const double error = r.step.base_units() / measured - 1;
    out += labelled_line(
        "Measured", kLabels,
        fmt::format("{}: {}, {} the {:g} % that the scenario allows", duration_text(measured),
                    error_text(error), std::abs(error) <= expect->within ? "within" : "NOT within",
                    100 * expect->within));
  }
  out += labelled_line("Throughput", kLabels,
                       fmt::format("{} tokens/s per GPU, prompts and responses",
                                   significant(r.tokens_per_s_per_gpu())));
  if (s.rl.algorithm->offline) {
    out += memory_line(s);
    out += labelled_line(has_teacher(r) ? "Teacher" : "Scores", kLabels,
                         duration_text(r.scores.base_units()));
    return out + training_line(r);
  }
  out += labelled_line(
      "Generation", kLabels,
      fmt::format("{}: {} tokens/s, {} per GPU; {:.0f} sequences at once, {} at most",
                  duration_text(r.generation.base_units()), compact(r.generated_per_s()),
                  significant(r.generated_per_s() / gpus), r.sequences_mean,
                  grouped(r.sequences_most)));
  out += labelled_line(
      "Cache", kLabels,
      fmt::format("{} tokens a replica; {} times a sequence had to leave", compact(r.cache_tokens),
                  grouped(static_cast<double>(r.preempted))));
  out += labelled_line("Scores", kLabels, duration_text(r.scores.base_units()));
  out += training_line(r);
  out += labelled_line("Weights", kLabels,
                       fmt::format("{} to the engine", duration_text(r.weight_sync.base_units())));
  if (r.generation_gpus == 0) return out;
  const char* slower = r.generation_idle > r.training_idle ? "trainers" : "engine";
  return out +
         labelled_line("Idle", kLabels,
                       fmt::format("engine {}, trainers {}{}", percent_text(r.generation_idle),
                                   percent_text(r.training_idle),
                                   s.rl.schedule == RlSchedule::synchronous
                                       ? ""
                                       : fmt::format("; the {} set the pace", slower)));
}

std::string waterfall(const RlReport& r, const TextStyle& style) {
  const std::vector<double> shares = rl_shares(r);
  const double longest = *std::ranges::max_element(shares);
  std::size_t width = 0;
  for (const RlBucketInfo& info : rl_buckets()) width = std::max(width, info.title.size());
  std::string out = "\n" + style.bold("Where the GPU time goes") + "\n";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    out += fmt::format("  {:<{}}{:>9} {:>9}  {}", rl_buckets()[i].title, width,
                       part_percent(shares[i]), duration_text(shares[i] * r.step.base_units()),
                       bar(shares[i] / longest, kBarColumns, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out + fmt::format("  {:<{}}{:>7.1f} % {:>9}\n", "Together", width, 100.0,
                           duration_text(r.step.base_units()));
}

/// What an iteration draws, in all and phase by phase.
std::string power_text_of(const RlScenario& s, const RlReport& r, const RlPower& power,
                          const TextStyle& style) {
  std::string out = "\n" + style.bold("Power") + " (mean of a step, and its extremes)\n";
  for (const Fact& fact : power_facts(powered_step(s, r, power))) {
    out += labelled_line(fact.label, kLabels, fact.text);
  }
  std::vector<double> shares;
  std::size_t width = 0;
  for (const RlPhasePower& phase : power.phases) {
    shares.push_back(phase.site / power.site.energy());
    width = std::max(width, phase.title.size());
  }
  const double longest = *std::ranges::max_element(shares);
  out += "\n" + style.bold("Where the energy goes") + " (and what a GPU draws)\n";
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const RlPhasePower& phase = power.phases[i];
    out += fmt::format("  {:<{}}{:>9} {:>9} {:>9}  {}", phase.title, width, part_percent(shares[i]),
                       energy_text(phase.site), power_text(phase.gpu_mean()),
                       bar(shares[i] / longest, kBarColumns, style));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  }
  return out + fmt::format("  {:<{}}{:>7.1f} % {:>9} {:>9}\n", "Together", width, 100.0,
                           energy_text(power.site.energy()), power_text(power.site.gpu_mean));
}

/// Watts and joules of a phase, as JSON has them.
std::vector<std::string> energy_cells(const RlPhasePower& phase, const RlPower& power) {
  return {number_text(phase.gpu_mean().base_units()), number_text(phase.gpus.base_units()),
          number_text(phase.site.base_units()), number_text(phase.site / power.site.energy())};
}

}  // namespace

std::string rl_table(const RlScenario& s, const RlResult& result,
                     const std::optional<HashAnswer>& hash, const TextStyle& style) {
  const RlReport& r = result.report;
  std::string out = title(s, result, style) + headline(s, r, hash, style) + waterfall(r, style);
  if (result.power) out += power_text_of(s, r, *result.power, style);
  if (s.training.assumptions.empty()) return out;
  out += "\n";
  return out + assumed_lines(s.training.assumptions, style);
}

CsvText rl_csv(const RlResult& result) {
  const RlReport& r = result.report;
  std::vector<std::string> titles{"bucket", "gpu_s", "share"};
  std::vector<RlPhasePower> left;
  if (result.power) {
    titles.insert(titles.end(), {"gpu_mean_w", "gpu_energy_j", "energy_j", "energy_share"});
    left = result.power->phases;
  }
  CsvText out = csv_line(titles);
  const std::vector<double> shares = rl_shares(r);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::string_view name = rl_buckets()[i].name;
    std::vector<std::string> cells{std::string(name), number_text(r.gpu_seconds[i]),
                                   number_text(shares[i])};
    const auto phase = std::ranges::find(left, name, &RlPhasePower::name);
    if (phase != left.end()) {
      for (std::string& cell : energy_cells(*phase, *result.power))
        cells.push_back(std::move(cell));
      left.erase(phase);
    }
    cells.resize(titles.size());
    out += csv_line(cells);
  }
  for (const RlPhasePower& phase : left) {
    std::vector<std::string> cells{std::string(phase.name), "", ""};
    for (std::string& cell : energy_cells(phase, *result.power)) cells.push_back(std::move(cell));
    out += csv_line(cells);
  }
  return out;
}

}  // namespace lockstep
