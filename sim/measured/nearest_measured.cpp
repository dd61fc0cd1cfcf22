#include "sim/measured/nearest_measured.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/collectives/candidate.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/measured/job_traits.hpp"
#include "sim/measured/nccl_series.hpp"
#include "sim/measured/power_rows.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/row_scenario.hpp"
#include "sim/measured/row_validation.hpp"
#include "sim/measured/validate_collectives.hpp"
#include "sim/measured/validate_power.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A row, and how far it is from what is explained.
struct RankedRow {
  double distance = 0;
  const ReferenceRow* row = nullptr;
};

double doublings_between(double a, double b) {
  return std::abs(std::log2(std::max(1.0, a) / std::max(1.0, b)));
}

/// All rows of these files for which `is_one` holds.
template <class IsOne>
std::vector<ReferenceRow> rows_of_files(std::span<const std::string_view> files,
                                        const PresetStore& presets, IsOne is_one) {
  std::vector<ReferenceRow> out;
  for (const std::string_view file : files) {
    for (ReferenceRow& row : load_rows(reference_file(presets, file), presets)) {
      if (row.obstacle.empty() && is_one(row)) out.push_back(std::move(row));
    }
  }
  return out;
}

/// What of a layout decides how much a GPU holds.
struct HeldByGpu {
  double parameters = 1, tokens = 1;  ///< of a rank; of a micro batch on it
  std::string recompute{}, sharding{};
};

HeldByGpu held_in_answer(const Json& answer, const JobTraits& job) {
  const auto of = [&](std::string_view path) {
    return number_at(answer, fmt::format("scenario.parallelism.{}", path)).value_or(1);
  };
  const double tokens = number_at(answer, "job.batch.micro").value_or(1) *
                        number_at(answer, "job.batch.tokens").value_or(1);
  return {.parameters = job.parameters / (of("tensor") * of("pipeline") * of("expert")),
          .tokens = tokens / (of("tensor") * of("context")),
          .recompute = answer_text_at(answer, "/scenario/recompute"),
          .sharding = answer_text_at(answer, "/scenario/parallelism/sharding")};
}

HeldByGpu held_in_row(const ReferenceRow& row, const JobTraits& job) {
  const double tokens = static_cast<double>(row.batch.micro_sequences) * row.batch.tokens;
  return {.parameters = job.parameters / (1.0 * row.tensor * row.pipeline * row.expert),
          .tokens = tokens / (1.0 * row.tensor * row.context),
          .recompute = row.recompute ? std::string(name_of(*row.recompute)) : std::string(),
          .sharding = std::string(name_of(row.sharding))};
}

/// Assumed weights, as those of distance_of(): what recomputes and shards in another way holds
/// other things, and twice the weights or tokens of a GPU are as far as twice the model.
double distance_between(const HeldByGpu& a, const HeldByGpu& b) {
  double out = 0.5 * doublings_between(a.parameters, b.parameters) +
               0.5 * doublings_between(a.tokens, b.tokens);
  if (!a.recompute.empty() && !b.recompute.empty() && a.recompute != b.recompute) out += 1;
  if (!a.sharding.empty() && a.sharding != b.sharding) out += 0.5;
  return out;
}

template <class Distance>
std::vector<RankedRow> ranked(const std::vector<ReferenceRow>& rows, Distance distance) {
  std::vector<RankedRow> out;
  for (const ReferenceRow& row : rows) out.push_back({distance(row), &row});
  std::ranges::stable_sort(out, {}, &RankedRow::distance);
  return out;
}

NearbyRun nearby_of(const RankedRow& ranked, const PresetStore& presets, std::string figure) {
  const JobTraits traits = traits_of_job(*ranked.row, presets);
  return {.row = ranked.row->id,
          .source = ranked.row->published,
          .gpu = traits.gpu,
          .stack = traits.stack,
          .gpus = ranked.row->gpus,
          .distance = ranked.distance,
          .figure = std::move(figure)};
}

/// The predicted peak of a row; nothing where it cannot be predicted.
std::optional<double> predicted_peak_gib(const ReferenceRow& row, const PresetStore& presets) {
  try {
    const Scenario scenario = row_scenario(row, presets);
    return check_memory(scenario.job, scenario.stack, scenario.node.gpu).peak.total() /
           gibibytes(1);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

constexpr std::array<std::string_view, 2> kEndToEnd{"end_to_end.json", "end_to_end_h100.json"};

NearestMeasured nearest_cards(const Json& answer, const PresetStore& presets, std::size_t keep) {
  const std::vector<ReferenceRow> rows =
      rows_of_files(kEndToEnd, presets,
                    [](const ReferenceRow& row) { return row.measured_gpu_power_w.has_value(); });
  const JobTraits own = traits_of_answer(answer, presets);
  std::vector<ReferenceRow> near;
  std::vector<double> distances;
  for (const RankedRow& each : ranked(rows, [&](const ReferenceRow& row) {
         return distance_of(own, traits_of_job(row, presets));
       })) {
    if (near.size() == keep) break;
    near.push_back(*each.row);
    distances.push_back(each.distance);
  }
  NearestMeasured out{.kind = "published power of cards"};
  for (const RowPrediction& of : predict_rows(near, presets, 0, [] {})) {
    if (!of.predicted_gpu_power_w) continue;
    const auto at = static_cast<std::size_t>(of.row - near.data());
    out.rows.push_back(nearby_of({distances[at], of.row}, presets, "gpu_mean_w"));
    out.rows.back().measured = *of.row->measured_gpu_power_w;
    out.rows.back().predicted = *of.predicted_gpu_power_w;
  }
  return out;
}

/// What was measured of servers, as `lockstep validate --power` calls it, for a number of power.
std::string_view server_figure(const std::string& field, const std::string& unit) {
  const auto says = [&field](const char* word) { return field.find(word) != std::string::npos; };
  if (unit == "J") return "J per token";
  if (says("peak") || says("high")) return "step high";
  if (says("trough") || says("low")) return "step low";
  return "node mean";
}

/// How far a GPU, as it was printed, is from a preset's.
double distance_of_cards(const std::string& printed, const JobTraits& own,
                         const PresetStore& presets) {
  try {
    const std::string preset = gpu_preset_of(printed, "power.json", presets);
    if (preset == own.gpu) return 0;
    return presets.gpu(preset).architecture == own.architecture ? 1 : 3;
  } catch (const InputError&) {
    return 3;
  }
}

NearestMeasured nearest_servers(const Json& answer, std::string_view figure,
                                const PresetStore& presets, std::size_t keep) {
  const std::string file = reference_file(presets, "power.json");
  std::map<std::string, PowerRow> rows;
  for (PowerRow& row : parse_power_rows(file, read_text_file(file)).rows) {
    const std::string id = row.id;
    rows.emplace(id, std::move(row));
  }
  const JobTraits own = traits_of_answer(answer, presets);
  const bool energy = figure == "J per token";
  NearestMeasured out{.kind =
                          energy ? "published energy of a token" : "published power of servers"};
  for (const ValidationPoint& point : validate_power(file, presets).points) {
    if (identity_of(point, "figure") != figure) continue;
    const PowerRow& row = rows.at(identity_of(point, "row"));
    const int gpus = row.nodes * row.gpus_per_node;
    out.rows.push_back({.row = row.id,
                        .source = file,
                        .gpu = row.gpu,
                        .stack = row.workload,
                        .gpus = gpus,
                        .measured = point.measured,
                        .predicted = point.predicted,
                        .distance = distance_of_cards(row.gpu, own, presets) +
                                    0.25 * doublings_between(own.gpus, gpus),
                        .figure = energy ? "joules_per_token" : "node_w"});
  }
  std::ranges::stable_sort(out.rows, {}, &NearbyRun::distance);
  out.rows.resize(std::min(out.rows.size(), keep));
  return out;
}

/// Which call a number of `lockstep comm` is of.
struct ExplainedCall {
  std::string op{};
  double bytes = 0;
};

/// "rows.3" of "rows.3.time_s"; empty: the number is of the first level.
std::string holder_of(const std::string& field) {
  const std::size_t dot = field.rfind('.');
  return dot == std::string::npos ? std::string() : field.substr(0, dot);
}

ExplainedCall call_of(const Json& answer, const std::string& field) {
  const auto in = [&](const Json& from) -> ExplainedCall {
    const auto op = from.find("op"), size = from.find("size_bytes");
    if (op == from.end() || size == from.end() || !op->is_string()) return {};
    return {op->get<std::string>(), size->get<double>()};
  };
  const std::string around = holder_of(field);
  if (!around.empty()) {
    std::string pointer = "/" + around;
    std::ranges::replace(pointer, '.', '/');
    const Json::json_pointer at(pointer);
    return answer.contains(at) && answer.at(at).is_object() ? in(answer.at(at)) : ExplainedCall{};
  }
  const auto rows = answer.find("rows"), operations = answer.find("operations");
  if (field.starts_with("best_") && rows != answer.end()) {
    for (const Json& row : *rows) {
      const ExplainedCall call = in(row);
      if (row.value("time_s", 0.0) == answer.value("best_time_s", -1.0) &&
          call.bytes == answer.value("best_size_bytes", -1.0)) {
        return call;
      }
    }
  }
  return operations != answer.end() && !operations->empty() ? in(operations->front())
                                                            : ExplainedCall{};
}

/// A point of nccl-tests with its distance.
struct RankedCall {
  double distance = 0;
  const ValidationPoint* point = nullptr;
};

double distance_of_call(const ValidationPoint& point, const Json& answer, const ExplainedCall& call,
                        const PresetStore& presets) {
  const JobTraits own = traits_of_answer(answer, presets);
  const std::string gpu = identity_of(point, "gpu");
  const auto number = [&](const char* key) { return std::stod(identity_of(point, key)); };
  const double nodes = number_at(answer, "nodes").value_or(1);
  double out = doublings_between(nodes, number("nodes")) +
               0.5 * doublings_between(number_at(answer, "ranks").value_or(1), number("ranks")) +
               0.25 * doublings_between(call.bytes, number("bytes"));
  if (gpu != own.gpu) out += 1;
  if (presets.gpu(gpu).architecture != own.architecture) out += 3;
  if (nodes > 1 && identity_of(point, "transport") != answer_text_at(answer, "/transport"))
    out += 1;
  return out;
}

/// The nearest point of each series, which is one of a system, its nodes and its ranks.
std::vector<RankedCall> nearest_of_series(const std::vector<ValidationPoint>& points,
                                          const Json& answer, const ExplainedCall& call,
                                          const PresetStore& presets) {
  std::map<std::tuple<std::string, std::string, std::string>, RankedCall> best;
  for (const ValidationPoint& point : points) {
    if (plain_name(identity_of(point, "op")) != plain_name(call.op)) continue;
    const double distance = distance_of_call(point, answer, call, presets);
    const auto [at, is_new] = best.try_emplace(
        {identity_of(point, "system"), identity_of(point, "nodes"), identity_of(point, "ranks")},
        RankedCall{distance, &point});
    if (!is_new && distance < at->second.distance) at->second = {distance, &point};
  }
  std::vector<RankedCall> out;
  for (const auto& [series, each] : best) out.push_back(each);
  std::ranges::stable_sort(out, {}, &RankedCall::distance);
  return out;
}

}  // namespace

std::string NearbyRun::unit() const {
  if (figure == "joules_per_token") return "J";
  if (figure.ends_with("_gib")) return "GiB";
  if (figure.ends_with("_w")) return "W";
  if (figure.ends_with("_bytes_per_s")) return "B/s";
  return figure.ends_with("_per_s") ? "tokens/s" : "s";
}

NearestMeasured nearest_memory(const Json& answer, const PresetStore& presets, std::size_t keep) {
  constexpr std::array<std::string_view, 4> kFiles{"training.json", "memory.json",
                                                   "end_to_end.json", "end_to_end_h100.json"};
  const std::vector<ReferenceRow> rows =
      rows_of_files(kFiles, presets, [](const ReferenceRow& row) {
        return row.measured_memory_gib.has_value() && !row.ran_out_of_memory;
      });
  const JobTraits own = traits_of_answer(answer, presets);
  const HeldByGpu held = held_in_answer(answer, own);
  const auto distance = [&](const ReferenceRow& row) {
    const JobTraits of = traits_of_job(row, presets);
    return distance_of(own, of) + distance_between(held, held_in_row(row, of));
  };
  NearestMeasured out{.kind = "published peaks of memory"};
  for (const RankedRow& each : ranked(rows, distance)) {
    if (out.rows.size() == keep) break;
    const std::optional<double> peak = predicted_peak_gib(*each.row, presets);
    if (!peak) continue;
    out.rows.push_back(nearby_of(each, presets, "peak_memory_gib"));
    out.rows.back().measured = *each.row->measured_memory_gib;
    out.rows.back().predicted = *peak;
  }
  return out;
}

NearestMeasured nearest_power(const Json& answer, const std::string& field, const std::string& unit,
                              const PresetStore& presets, std::size_t keep) {
  if (field.find("gpu") != std::string::npos && unit == "W")
    return nearest_cards(answer, presets, keep);
  return nearest_servers(answer, server_figure(field, unit), presets, keep);
}

NearestMeasured nearest_collectives(const Json& answer, const std::string& field,
                                    const std::string& unit, const PresetStore& presets,
                                    std::size_t keep) {
  NearestMeasured out{.kind = "published collectives"};
  const ExplainedCall call = call_of(answer, field);
  if (call.op.empty()) return out;
  const PointTable table = validate_collectives(reference_file(presets, "nccl.json"), presets);
  for (const RankedCall& each : nearest_of_series(table.points, answer, call, presets)) {
    if (out.rows.size() == keep) break;
    const ValidationPoint& point = *each.point;
    const auto number = [&](const char* key) { return std::stod(identity_of(point, key)); };
    const int ranks = static_cast<int>(number("ranks"));
    const bool rate = unit == "B/s";
    // Bytes a second of the bus where the number is a rate, else seconds.
    const double moved =
        bus_factor(op_of(identity_of(point, "op")).value(), ranks) * number("bytes") * 1e6;
    const auto figure = [&](double us) { return rate ? moved / us : us * 1e-6; };
    out.rows.push_back(
        {.row = fmt::format("{}, {}: {} of {}", identity_of(point, "system"),
                            counted(number("nodes"), "node"), identity_of(point, "op"),
                            format_quantity(number("bytes"), Dimension::data)),
         .source = reference_file(presets, "nccl.json"),
         .gpu = identity_of(point, "gpu"),
         .stack = identity_of(point, "transport"),
         .gpus = ranks,
         .measured = figure(point.measured),
         .predicted = figure(point.predicted),
         .distance = each.distance,
         .figure = rate ? "busbw_bytes_per_s" : "time_s"});
  }
  return out;
}

}  // namespace lockstep
