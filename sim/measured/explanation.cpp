#include "sim/measured/explanation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/answer/fields.hpp"
#include "sim/answer/formulas.hpp"
#include "sim/measured/job_traits.hpp"
#include "sim/measured/predict_serving.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/serving_rows.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/scenario_file.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNearestRuns = 5;

/// A member that is a preset's or the scenario's, as it stands.
struct Leaf {
  std::string_view path;      ///< of the answer
  std::string_view scenario;  ///< key that may say it, as a JSON pointer; empty: none
  std::string_view kind;      ///< of the preset that says it else; empty: none
  std::string_view name;      ///< member that names the preset
  std::string_view key;       ///< of the preset; "peak_": by the precision of the job
};
constexpr std::array kLeaves{
    Leaf{"hardware.peak_flops_per_gpu", "", "gpus", "/job/gpu", "peak_"},
    Leaf{"hardware.hbm_bytes_per_s", "/cluster/node/gpu/hbm_bandwidth", "gpus", "/job/gpu",
         "hbm_bandwidth"},
    Leaf{"hardware.hbm_bytes", "/cluster/node/gpu/hbm_capacity", "gpus", "/job/gpu",
         "hbm_capacity"},
    Leaf{"hardware.nvlink_bytes_per_s", "/cluster/node/gpu/nvlink_bandwidth", "gpus", "/job/gpu",
         "nvlink_bandwidth"},
    Leaf{"hardware.gpus_per_node", "/cluster/node/gpus", "nodes", "/job/node", "gpus"},
    Leaf{"hardware.nics_per_node", "/cluster/node/nics", "nodes", "/job/node", "nics"},
    Leaf{"hardware.nic_bytes_per_s", "/cluster/node/nic_bandwidth", "nodes", "/job/node",
         "nic_bandwidth"},
    Leaf{"job.parameters", "", "models", "/job/model", "layers"},
    Leaf{"job.active_parameters", "", "models", "/job/model", "layers"},
    Leaf{"job.batch.sequences", "/batch/sequences", "", "", ""},
    Leaf{"job.batch.micro", "/batch/micro", "", "", ""},
    Leaf{"job.batch.tokens", "/batch/tokens", "", "", ""},
    Leaf{"nodes", "/cluster/nodes", "", "", ""},
    Leaf{"training_tokens", "/training/tokens", "", "", ""},
    Leaf{"usd_per_gpu_hour", "/price/usd_per_gpu_hour", "gpus", "/job/gpu", "usd_per_gpu_hour"},
    Leaf{"site_limit_w", "/power/site_limit", "", "", ""},
    Leaf{"trajectories", "/run/trajectories", "", "", ""},
    // Of collectives and traffic.
    Leaf{"nic_bytes_per_s", "/cluster/node/nic_bandwidth", "nodes", "/job/node", "nic_bandwidth"},
    Leaf{"scenario.nodes", "/cluster/nodes", "", "", ""},
    // Of plans.
    Leaf{"samples", "/samples", "", "", ""}, Leaf{"limits.time_s", "/limits/time", "", "", ""},
    Leaf{"limits.power_w", "/limits/power", "", "", ""},
    Leaf{"limits.usd", "/limits/usd", "", "", ""}};

/// "peak_fp8" of mxfp8 and fp8: block formats run at the peak of their element's.
std::string peak_key(std::string_view precision) {
  for (const std::string_view element : {"fp8", "fp4"}) {
    if (precision.ends_with(element)) return fmt::format("peak_{}", element);
  }
  return fmt::format("peak_{}", precision);
}

/// The file and the key of the preset that says a leaf, with the file's word on its source.
std::string from_preset(const Leaf& leaf, const Json& answer, const PresetStore& presets) {
  const std::string name = leaf.kind.empty() ? "" : answer_text_at(answer, leaf.name);
  if (name.empty() || !presets.has(leaf.kind, name)) return {};
  const std::string key = leaf.key == "peak_" ? peak_key(answer_text_at(answer, "/job/precision"))
                                              : std::string(leaf.key);
  for (const PresetRow& row : presets.show(leaf.kind, name)) {
    if (row.path != key) continue;
    return fmt::format("{}/{}.json: {} {}{}", leaf.kind, name, key, row.value,
                       row.source.empty() ? "" : ", " + row.source);
  }
  return {};
}

std::string from_of(const std::string& path, const ExplainedAnswer& answer,
                    const PresetStore& presets) {
  const Json& whole = answer.json();
  const auto* const leaf = std::ranges::find(kLeaves, path, &Leaf::path);
  if (leaf != kLeaves.end()) {
    const Json::json_pointer key{std::string(leaf->scenario)};
    if (!leaf->scenario.empty() && whole.contains("scenario") && whole["scenario"].contains(key)) {
      std::string dotted(leaf->scenario.substr(1));
      std::ranges::replace(dotted, '/', '.');
      return "scenario: " + dotted;
    }
    if (!leaf->kind.empty() && leaf->kind != "models" &&
        whole.contains(Json::json_pointer("/scenario/cluster/pools"))) {
      return leaf->key == "peak_" ? "the mean over all GPUs, each by the preset of its node in "
                                    "scenario: cluster.pools"
                                  : "of the first kind of node in scenario: cluster.pools";
    }
    if (std::string preset = from_preset(*leaf, whole, presets); !preset.empty()) return preset;
    return "scenario: what it names or its defaults; see the assumptions";
  }
  if (const Formula* const formula = answer.formula(path)) {
    return std::string(formula->arithmetic ? "= " : "simulated or counted: ") +
           std::string(formula->text);
  }
  return "member of the answer";
}

/// The formula of a number that the answer has.
const Formula& formula_in(const ExplainedAnswer& answer, const std::string& file,
                          const std::string& name) {
  const Formula* const formula = answer.formula(name);
  if (formula != nullptr && answer.number(name)) return *formula;
  // Of the deepest member that there is.
  std::string around = name;
  while (!around.empty() && (around.ends_with('.') || answer.names(around).empty())) {
    around.resize(around.rfind('.') == std::string::npos ? 0 : around.rfind('.'));
  }
  const std::vector<std::string> names = answer.names(around);
  throw InputError({.file = file,
                    .pointer = {},
                    .found = in_quotes(name),
                    .allowed = around.empty()
                                   ? "a number of the first level of its answer, or a dotted path "
                                     "to one below it: " +
                                         listed(names)
                                   : fmt::format("a number of its answer's {}: {}",
                                                 in_quotes(around), listed(names)),
                    .nearest = nearest_name(name, names)});
}

/// What a service's interval is of: "ttft" or "tpot"; empty: it says nothing of the number.
std::string_view served_interval(std::string_view field) {
  if (field == "ttft_mean_s" || field == "ttft_s.mean") return "ttft";
  return field == "tpot_mean_s" || field == "tpot_s.mean" ? "tpot" : "";
}

void add_served_interval(const Json& answer, FieldExplanation& out) {
  const std::string_view of = served_interval(out.field);
  if (of.empty()) return;
  out.low = number_at(answer, fmt::format("interval.{}_low_s", of));
  out.high = number_at(answer, fmt::format("interval.{}_high_s", of));
  out.why = answer_text_at(answer, "/interval/basis");
}

/// What measured services print of a service's number, and near which points it is shown; empty:
/// they say nothing of it.
std::string_view measured_figure(std::string_view field) {
  for (const std::string_view each : {"ttft_s", "tpot_s", "itl_s", "e2e_s"}) {
    if (field.starts_with(each.substr(0, each.find('_') + 1))) return each;
  }
  if (field == "tokens_per_s_per_user") return "tpot_s";
  return field.starts_with("output_tokens_per_s") ? "output_tokens_per_s" : "";
}

void add_interval(const Formula& formula, const Json& answer, FieldExplanation& out) {
  const std::optional<double> low = number_at(answer, "interval.low"),
                              high = number_at(answer, "interval.high");
  if (!low || !high || formula.moves == WithStepTime::unmoved) return;
  const bool inverse = formula.moves == WithStepTime::inverse;
  out.low = inverse ? out.value / *high : out.value * *low;
  out.high = inverse ? out.value / *low : out.value * *high;
  out.why = answer_text_at(answer, "/interval/why");
}

void add_assumptions(const Json& answer, FieldExplanation& out) {
  const auto found = answer.find("assumptions");
  if (found == answer.end()) return;
  for (const Json& each : *found) out.assumptions.push_back(each.get<std::string>());
}

Json explained_number(const std::optional<double>& number) {
  return number ? Json(twelve_digits(*number)) : Json();
}

/// What two services are compared by.
struct ServedTraits {
  std::string model{}, gpu{}, architecture{}, engine{};
  double parameters = 1, gpus = 1, input = 1, output = 1;
  bool experts = false, two_pools = false;
};

ServedTraits traits_of_row(const ServingRow& row) {
  const ParameterCounts counts = parameter_counts(row.model);
  return {.model = row.model.name,
          .gpu = row.node.gpu.name,
          .architecture = row.node.gpu.architecture,
          .engine = row.engine,
          .parameters = std::max(1.0, counts.total),
          .gpus = std::max(1.0, static_cast<double>(row.gpus)),
          .input = std::max(1.0, static_cast<double>(row.input)),
          .output = std::max(1.0, static_cast<double>(row.output)),
          .experts = counts.active < counts.total,
          .two_pools = row.decoding.has_value()};
}

/// The node of the scenario that the answer holds: its name, or that of the preset it changes.
std::string served_node(const Json& answer) {
  const std::string name = answer_text_at(answer, "/scenario/cluster/node");
  return name.empty() ? answer_text_at(answer, "/scenario/cluster/node/preset") : name;
}

ServedTraits traits_of_service(const Json& answer, const PresetStore& presets) {
  const std::string node = served_node(answer), model = answer_text_at(answer, "/model");
  const double served = std::max(1.0, number_at(answer, "served").value_or(1));
  ServedTraits out{.model = model,
                   .gpus = std::max(1.0, number_at(answer, "gpus").value_or(1)),
                   .input = std::max(1.0, number_at(answer, "input_tokens").value_or(1) / served),
                   .output = std::max(1.0, number_at(answer, "output_tokens").value_or(1) / served),
                   .two_pools = answer.contains("pools") && answer["pools"].size() > 1};
  if (presets.has("nodes", node)) {
    out.gpu = presets.node(node).gpu.name;
    out.architecture = presets.node(node).gpu.architecture;
  }
  if (presets.has("models", model)) {
    const ParameterCounts counts = parameter_counts(presets.model(model));
    out.parameters = std::max(1.0, counts.total);
    out.experts = counts.active < counts.total;
  }
  const Json::json_pointer pools("/scenario/serving/pools");
  if (answer.contains(pools)) {
    for (const Json& pool : answer.at(pools)) {
      if (out.engine.empty() && pool.is_object()) out.engine = answer_text_at(pool, "/engine");
    }
  }
  return out;
}

/// With weights as those of distance_of(): how long prompts and answers are counts as the size
/// does.
double distance_of(const ServedTraits& a, const ServedTraits& b) {
  double out = 0;
  if (a.architecture != b.architecture) out += 3;
  if (a.gpu != b.gpu) out += 1;
  if (a.experts != b.experts) out += 3;
  if (a.two_pools != b.two_pools) out += 1;
  if (!a.engine.empty() && plain_name(a.engine) != plain_name(b.engine)) out += 0.5;
  if (name_family(a.model) != name_family(b.model)) out += 0.5;
  out += 0.5 * std::abs(std::log2(a.parameters / b.parameters));
  out += 0.25 * std::abs(std::log2(a.gpus / b.gpus));
  out += 0.25 * std::abs(std::log2(a.input / b.input));
  return out + 0.25 * std::abs(std::log2(a.output / b.output));
}

std::string statistic_of(const ServingMeasure& measure) {
  if (measure.p99) return "p99";
  return measure.mean ? "mean" : "median";
}

/// The row's measurement of a figure; of several that of the statistic ("p50" is the median), else
/// the mean or what is in the middle. Null: it has none.
const ServingMeasure* measure_of(const ServingRow& row, std::string_view figure,
                                 std::string_view statistic) {
  const std::string wanted = figure.ends_with("_s") && !figure.ends_with("_per_s")
                                 ? std::string(figure.substr(0, figure.size() - 2)) + "_ms"
                                 : std::string(figure);
  const ServingMeasure* found = nullptr;
  const std::string of = statistic == "p50" ? "median" : std::string(statistic);
  for (const ServingMeasure& each : row.measured) {
    if (each.name != wanted) continue;
    if (statistic_of(each) == of) return &each;
    if (!each.p99 && (found == nullptr || each.mean)) found = &each;
  }
  return found;
}

/// Measurements beside a number that does not follow the step's time; none where nothing of its
/// kind was measured.
NearestMeasured nearest_of_kind(const ExplainedAnswer& answer, const std::string& field,
                                const std::string& unit, const PresetStore& presets) {
  const bool of_job = answer.kind() && answer.json().contains("job");
  if (of_job && (field.find("memory") != std::string::npos || unit == "GiB"))
    return nearest_memory(answer.json(), presets, kNearestRuns);
  if (of_job && (unit == "W" || unit == "J"))
    return nearest_power(answer.json(), field, unit, presets, kNearestRuns);
  if (!answer.kind() && (unit == "B/s" || unit == "s"))
    return nearest_collectives(answer.json(), field, unit, presets, kNearestRuns);
  return {};
}

/// What was measured of the kind of a number that no row stands beside.
std::string measured_elsewhere(const ExplainedAnswer& answer, const std::string& field,
                               std::string_view unit) {
  const auto held = [](std::string_view what, std::string_view option) {
    return fmt::format(
        "None of whole jobs: {} were measured, and `lockstep validate {}` holds the "
        "model to them.",
        what, option);
  };
  if (field.find("memory") != std::string::npos || unit == "GiB") {
    return held("peaks of memory", "--rows tests/reference/memory.json");
  }
  if (unit == "W" || unit == "J" || field.starts_with("power.")) {
    return held("power of cards and nodes", "--power tests/reference/power.json");
  }
  if (!answer.kind() && (unit == "B/s" || unit == "s")) {
    return held("collectives of nccl-tests", "--nccl tests/reference/nccl.json");
  }
  return "None: what was measured is times, memory and power, which it does not follow.";
}

/// The part of a dotted path that says which of several requests: "p99" of "ttft_s.p99".
std::string asked_statistic(const std::string& field) {
  const std::size_t dot = field.rfind('.');
  return dot == std::string::npos ? "mean" : field.substr(dot + 1);
}

void add_nearest(const Formula& formula, const ExplainedAnswer& answer, const PresetStore& presets,
                 FieldExplanation& out) {
  if (answer.kind() == AnswerKind::serving) {
    const std::string_view figure = measured_figure(out.field);
    if (!figure.empty()) {
      out.nearest =
          nearest_services(answer.json(), std::string(figure), asked_statistic(out.field),
                           reference_file(presets, "serving.json"), presets, kNearestRuns);
      out.nearest_kind = "published services";
    }
  } else if (formula.moves != WithStepTime::unmoved && answer.json().contains("job") &&
             answer.kind()) {
    const std::string rows = reference_file(presets, "training.json");
    out.nearest = nearest_runs(answer.json(), load_rows(rows, presets), load_residuals(presets),
                               presets, kNearestRuns);
  } else if (NearestMeasured found = nearest_of_kind(answer, out.field, out.unit, presets);
             !found.rows.empty()) {
    out.nearest = std::move(found.rows);
    out.nearest_kind = std::move(found.kind);
  }
  if (out.nearest.empty()) out.nearest_note = measured_elsewhere(answer, out.field, out.unit);
}

/// What was written of a run, a leaf each: its failures, checkpoints, spares and recovery decide
/// its mean times, and no formula of the answer's numbers has them.
void add_written(const Json& value, const std::string& path, FieldExplanation& out) {
  if (value.is_object()) {
    for (const auto& [name, each] : value.items()) {
      add_written(each, fmt::format("{}.{}", path, name), out);
    }
    return;
  }
  constexpr std::size_t kMostText = 60;
  const auto has_parts = [](const Json& each) { return each.is_structured(); };
  std::string text = value.is_string() ? value.get<std::string>()
                     : value.is_array() && std::ranges::any_of(value, has_parts)
                         ? counted(static_cast<double>(value.size()), "item")
                         : write_json(value);
  if (text.size() > kMostText) text = text.substr(0, kMostText - 3) + "...";
  out.inputs.push_back({.name = path,
                        .path = path,
                        .unit = {},
                        .written = std::move(text),
                        .from = "scenario: " + path});
}

}  // namespace

ExplainedAnswer::ExplainedAnswer(const ScenarioAnswer& answer)
    : kind_(answer.kind()),
      fields_(answer_fields(answer.kind())),
      json_(std::make_shared<const Json>(answer.json())) {}

ExplainedAnswer::ExplainedAnswer(std::span<const Formula> formulas, char letter, Json json)
    : formulas_(formulas), letter_(letter), json_(std::make_shared<const Json>(std::move(json))) {}

std::optional<double> ExplainedAnswer::number(std::string_view path) const {
  return number_at(*json_, path);
}

const Formula* ExplainedAnswer::formula(std::string_view path) const {
  if (!kind_) return formula_at(formulas_, letter_, path);
  // Truth values, and members that answers had by other names, have no formula.
  if (const FieldInfo* const field = field_at(fields_, path);
      field != nullptr && (field->kind == FieldKind::flag || !field->successor.empty()))
    return nullptr;
  return formula_at(*kind_, path);
}

std::string ExplainedAnswer::about(std::string_view path) const {
  if (!kind_) {
    const Formula* const own = formula(path);
    return own != nullptr ? std::string(own->about) : std::string();
  }
  std::string around(path);
  while (true) {
    if (const FieldInfo* const field = field_at(fields_, around)) return field->sentence;
    if (around.find('.') == std::string::npos) return {};
    around.resize(around.rfind('.'));
  }
}

std::vector<std::string> ExplainedAnswer::names(std::string_view around) const {
  const Json* const at = around.empty() ? json_.get() : member_at(*json_, around);
  std::vector<std::string> out;
  if (at == nullptr || !at->is_structured() || at->empty()) return out;
  const std::string before = around.empty() ? std::string() : std::string(around) + ".";
  if (at->is_array()) return names(before + "0");
  for (const auto& [name, value] : at->items()) {
    if (value.is_number() && formula(before + name) != nullptr) out.push_back(before + name);
  }
  // Of a member that has members alone, those of the first.
  for (const auto& [name, value] : at->items()) {
    if (out.empty() && value.is_structured() && !around.empty()) out = names(before + name);
  }
  return out;
}

std::vector<NearbyRun> nearest_services(const Json& answer, const std::string& figure,
                                        const std::string& statistic, const std::string& rows_file,
                                        const PresetStore& presets, std::size_t keep) {
  const ServedTraits own = traits_of_service(answer, presets);
  const std::vector<ServingRow> rows = read_serving_rows(rows_file, presets);
  std::vector<std::pair<double, const ServingRow*>> by_distance;
  for (const ServingRow& row : rows) {
    if (!row.skipped.empty() || measure_of(row, figure, statistic) == nullptr) continue;
    by_distance.emplace_back(distance_of(own, traits_of_row(row)), &row);
  }
  std::ranges::stable_sort(by_distance, {}, &std::pair<double, const ServingRow*>::first);
  std::vector<NearbyRun> out;
  for (const auto& [distance, row] : by_distance) {
    if (out.size() == keep) break;
    const ServedRow predicted = predict_serving(*row, presets);
    if (!predicted.skipped.empty()) continue;
    const ServingMeasure& measured = *measure_of(*row, figure, statistic);
    const double unit = measured.name.ends_with("_ms") ? 1e-3 : 1;
    out.push_back({.row = row->id,
                   .source = row->source,
                   .gpu = row->gpu,
                   .stack = row->engine,
                   .gpus = row->gpus,
                   .measured = unit * measured.value,
                   .predicted = unit * predicted_measure(measured, *row, predicted.figures),
                   .distance = distance,
                   .figure = figure,
                   .statistic = statistic_of(measured)});
  }
  return out;
}

std::vector<NearbyRun> nearest_runs(const Json& answer, const std::vector<ReferenceRow>& rows,
                                    const ResidualTable& residuals, const PresetStore& presets,
                                    std::size_t keep) {
  std::map<std::string_view, const Residual*> errors;
  for (const Residual& each : residuals) errors.emplace(each.row, &each);
  const JobTraits own = traits_of_answer(answer, presets);
  std::vector<NearbyRun> out;
  for (const ReferenceRow& row : rows) {
    const auto error = errors.find(row.id);
    if (error == errors.end() || !row.measured_step_s) continue;
    const PredictionTraits& traits = error->second->traits;
    const JobTraits other{.model = row.model.name,
                          .gpu = traits.gpu,
                          .architecture = traits.architecture,
                          .stack = traits.stack,
                          .parameters = std::max(1.0, parameter_counts(row.model).total),
                          .gpus = std::max(1.0, static_cast<double>(row.gpus)),
                          .experts = traits.experts};
    out.push_back({.row = row.id,
                   .source = row.published,
                   .gpu = traits.gpu,
                   .stack = traits.stack,
                   .gpus = row.gpus,
                   .measured = *row.measured_step_s,
                   .predicted = *row.measured_step_s * std::exp(error->second->fitted),
                   .distance = distance_of(own, other)});
  }
  std::ranges::stable_sort(out, {}, &NearbyRun::distance);
  out.resize(std::min(out.size(), keep));
  return out;
}

FieldExplanation explain_field(const std::string& file, const ExplainedAnswer& answer,
                               const std::string& field, const PresetStore& presets) {
  const Formula& formula = formula_in(answer, file, field);
  FieldExplanation out{.file = file,
                       .field = field,
                       .sentence = answer.about(field),
                       .unit = std::string(unit_at(field)),
                       .value = answer.number(field).value(),
                       .formula = std::string(formula.text),
                       .arithmetic = formula.arithmetic,
                       .inputs = {},
                       .why = {},
                       .assumptions = {},
                       .nearest = {}};
  const auto has = [&](std::string_view path) { return answer.number(path).has_value(); };
  for (const FormulaInput& input : inputs_of(formula, field, has)) {
    out.inputs.push_back({.name = input.name,
                          .path = input.path,
                          .unit = std::string(unit_at(input.path)),
                          .value = answer.number(input.path),
                          .from = from_of(input.path, answer, presets)});
  }
  const Json::json_pointer run("/scenario/run");
  const bool drawn = formula.inputs.find("trajectories") != std::string_view::npos;
  if (answer.kind() == AnswerKind::run && drawn && answer.json().contains(run)) {
    add_written(answer.json().at(run), "run", out);
  }
  // A number without inputs is as somebody wrote it: it is its own.
  if (out.inputs.empty()) {
    out.inputs.push_back({.name = field,
                          .path = field,
                          .unit = out.unit,
                          .value = out.value,
                          .from = from_of(field, answer, presets)});
  }
  add_interval(formula, answer.json(), out);
  add_assumptions(answer.json(), out);
  if (answer.kind() == AnswerKind::serving) add_served_interval(answer.json(), out);
  add_nearest(formula, answer, presets, out);
  return out;
}

namespace {

/// "806.034 GB/s": in bytes as on pages and in tables, where format_quantity() has bits.
std::string bytes_rate(double value) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kRates{
      {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}}};
  for (const auto& [size, name] : kRates) {
    if (std::abs(value) >= size) return fmt::format("{} {}", plain_number(value / size), name);
  }
  return plain_number(value) + " B/s";
}

}  // namespace

std::string explained_amount(double value, const std::string& unit) {
  const double size = std::abs(value);
  // compact() has B for billions.
  if (unit == "B") return format_quantity(value, Dimension::data);
  if (unit == "B/s") return bytes_rate(value);
  std::string number = size >= 1e6 ? compact(value) : number_text(twelve_digits(value));
  const bool prefixed = size >= 1e6;
  const bool physical = unit == "W" || unit == "J" || unit.starts_with("FLOP");
  if (prefixed && physical && number.ends_with('B')) number.back() = 'G';
  return unit.empty() ? number : number + (prefixed && physical ? "" : " ") + unit;
}

Json field_explanation_json(const FieldExplanation& explanation) {
  Json inputs = Json::array(), nearest = Json::array();
  for (const ExplainedInput& each : explanation.inputs) {
    inputs.push_back({{"name", each.name},
                      {"path", each.path},
                      {"value", explained_number(each.value)},
                      {"unit", each.unit},
                      {"from", each.from}});
    if (!each.written.empty()) inputs.back()["written"] = each.written;
  }
  for (const NearbyRun& each : explanation.nearest) {
    nearest.push_back({{"row", each.row},
                       {"source", each.source},
                       {"gpu", each.gpu},
                       {"gpus", each.gpus},
                       {"stack", each.stack},
                       {"measured_" + each.figure, twelve_digits(each.measured)},
                       {"predicted_" + each.figure, twelve_digits(each.predicted)},
                       {"distance", twelve_digits(each.distance)}});
    if (!each.statistic.empty()) nearest.back()["statistic"] = each.statistic;
  }
  Json out{{"file", explanation.file},
           {"field", explanation.field},
           {"about", explanation.sentence},
           {"value", twelve_digits(explanation.value)},
           {"unit", explanation.unit},
           {"formula", explanation.formula},
           {"arithmetic", explanation.arithmetic},
           {"inputs", std::move(inputs)},
           {"low", explained_number(explanation.low)},
           {"high", explained_number(explanation.high)},
           {"interval_from", explanation.why},
           {"assumptions", explanation.assumptions},
           {"nearest", std::move(nearest)}};
  if (!explanation.point.empty()) out["point"] = explanation.point;
  return out;
}

bool tells_memory(const JsonCursor& scenario) {
  return scenario_kind(scenario) == ScenarioKind::step;
}

}  // namespace lockstep
