#include "tools/lockstep/explain/explanation.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/answer/assertion.hpp"
#include "sim/answer/fields.hpp"
#include "sim/answer/formulas.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/scenario/read_residuals.hpp"

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
    Leaf{"trajectories", "/run/trajectories", "", "", ""}};

std::string text_at(const Json& object, std::string_view pointer) {
  const Json::json_pointer at{std::string(pointer)};
  return object.contains(at) && object.at(at).is_string() ? object.at(at).get<std::string>()
                                                          : std::string();
}

/// The file and the key of the preset that says a leaf, with the file's word on its source.
std::string from_preset(const Leaf& leaf, const Json& answer, const PresetStore& presets) {
  const std::string name = leaf.kind.empty() ? "" : text_at(answer, leaf.name);
  if (name.empty() || !presets.has(leaf.kind, name)) return {};
  const std::string key =
      leaf.key == "peak_" ? "peak_" + text_at(answer, "/job/precision") : std::string(leaf.key);
  for (const PresetRow& row : presets.show(leaf.kind, name)) {
    if (row.path != key) continue;
    return fmt::format("{}/{}.json: {} {}{}", leaf.kind, name, key, row.value,
                       row.source.empty() ? "" : ", " + row.source);
  }
  return {};
}

std::string from_of(const std::string& path, const ScenarioAnswer& answer,
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
    if (std::string preset = from_preset(*leaf, whole, presets); !preset.empty()) return preset;
    return "scenario: what it names or its defaults; see the assumptions";
  }
  if (const Formula* const formula = formula_of(answer.kind(), path)) {
    return std::string(formula->arithmetic ? "= " : "simulated or counted: ") +
           std::string(formula->text);
  }
  return "member of the answer";
}

/// What ends of names say of the unit of a member that is no field of the first level.
std::string unit_of(const std::string& path) {
  const FieldInfo field{.name = path.substr(path.rfind('.') + 1), .kind = FieldKind::number};
  return std::string(field.unit());
}

const FieldInfo& field_of(const std::vector<FieldInfo>& fields, const ScenarioAnswer& answer,
                          const std::string& file, const std::string& name) {
  const auto found = std::ranges::find(fields, name, &FieldInfo::name);
  if (found != fields.end() && formula_of(answer.kind(), name) != nullptr && answer.number(name))
    return *found;
  std::vector<std::string> names;
  for (const std::string& each : explained_fields(answer.kind())) {
    if (answer.number(each)) names.push_back(each);
  }
  throw InputError({.file = file,
                    .pointer = {},
                    .found = in_quotes(name),
                    .allowed = "a number of the first level of its answer: " + listed(names),
                    .nearest = nearest_name(name, names)});
}

/// The same name, however a source and a preset spell it: "Llama-2 70B" is "llama270b".
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

/// "llama" of "llama3_70b".
std::string family(std::string_view name) {
  std::string out = plain(name);
  const auto digit = std::ranges::find_if(
      out, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  out.erase(digit, out.end());
  return out;
}

/// What two jobs are compared by.
struct Traits {
  std::string model, gpu, architecture, stack;
  double parameters = 1, gpus = 1;
  bool experts = false;
};

/// Assumed weights: another architecture or a mixture of experts beside a dense model tells more
/// apart than twice the GPUs or twice the weights do.
double distance_of(const Traits& a, const Traits& b) {
  double out = 0;
  if (a.architecture != b.architecture) out += 3;
  if (a.gpu != b.gpu) out += 1;
  if (a.experts != b.experts) out += 3;
  if (a.stack != b.stack) out += 1;
  if (family(a.model) != family(b.model)) out += 0.5;
  out += 0.5 * std::abs(std::log2(a.parameters / b.parameters));
  out += 0.25 * std::abs(std::log2(a.gpus / b.gpus));
  return out;
}

Traits traits_of_answer(const Json& answer, const PresetStore& presets) {
  const std::string gpu = text_at(answer, "/job/gpu");
  return {
      .model = text_at(answer, "/job/model"),
      .gpu = gpu,
      .architecture = presets.has("gpus", gpu) ? presets.gpu(gpu).architecture : "",
      .stack = text_at(answer, "/job/stack"),
      .parameters = number_at(answer, "job.parameters").value_or(1),
      .gpus = number_at(answer, "gpus").value_or(1),
      .experts = number_at(answer, "job.active_parameters") < number_at(answer, "job.parameters")};
}

void add_interval(const Formula& formula, const Json& answer, FieldExplanation& out) {
  const std::optional<double> low = number_at(answer, "interval.low"),
                              high = number_at(answer, "interval.high");
  if (!low || !high || formula.moves == WithStepTime::unmoved) return;
  const bool inverse = formula.moves == WithStepTime::inverse;
  out.low = inverse ? out.value / *high : out.value * *low;
  out.high = inverse ? out.value / *low : out.value * *high;
  out.why = text_at(answer, "/interval/why");
}

void add_assumptions(const Json& answer, FieldExplanation& out) {
  const auto found = answer.find("assumptions");
  if (found == answer.end()) return;
  for (const Json& each : *found) out.assumptions.push_back(each.get<std::string>());
}

Json explained_number(const std::optional<double>& number) {
  return number ? Json(twelve_digits(*number)) : Json();
}

}  // namespace

std::vector<NearbyRun> nearest_runs(const Json& answer, const std::vector<ReferenceRow>& rows,
                                    const ResidualTable& residuals, const PresetStore& presets,
                                    std::size_t keep) {
  std::map<std::string_view, const Residual*> errors;
  for (const Residual& each : residuals) errors.emplace(each.row, &each);
  const Traits own = traits_of_answer(answer, presets);
  std::vector<NearbyRun> out;
  for (const ReferenceRow& row : rows) {
    const auto error = errors.find(row.id);
    if (error == errors.end() || !row.measured_step_s || !row.scenario.empty()) continue;
    const PredictionTraits& traits = error->second->traits;
    const Traits other{.model = row.model.name,
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
                   .measured_s = *row.measured_step_s,
                   .predicted_s = *row.measured_step_s * std::exp(error->second->fitted),
                   .distance = distance_of(own, other)});
  }
  std::ranges::stable_sort(out, {}, &NearbyRun::distance);
  out.resize(std::min(out.size(), keep));
  return out;
}

FieldExplanation explain_field(const std::string& file, const ScenarioAnswer& answer,
                               const std::string& field, const PresetStore& presets) {
  const std::vector<FieldInfo> fields = answer_fields(answer.kind());
  const FieldInfo& info = field_of(fields, answer, file, field);
  const Formula& formula = *formula_of(answer.kind(), field);
  FieldExplanation out{.file = file,
                       .field = field,
                       .sentence = info.sentence,
                       .unit = std::string(info.unit()),
                       .value = answer.number(field).value(),
                       .formula = std::string(formula.text),
                       .arithmetic = formula.arithmetic,
                       .inputs = {},
                       .why = {},
                       .assumptions = {},
                       .nearest = {}};
  for (const FormulaInput& input : inputs_of(formula)) {
    out.inputs.push_back({.name = input.name,
                          .path = input.path,
                          .unit = unit_of(input.path),
                          .value = answer.number(input.path),
                          .from = from_of(input.path, answer, presets)});
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
  if (formula.moves != WithStepTime::unmoved && answer.json().contains("job")) {
    const std::string rows = reference_file(presets, "training.json");
    out.nearest = nearest_runs(answer.json(), parse_rows(rows, read_text_file(rows)),
                               load_residuals(presets), presets, kNearestRuns);
  }
  return out;
}

std::string explained_amount(double value, const std::string& unit) {
  const double size = std::abs(value);
  // compact() has B for billions.
  if (unit == "B") return format_quantity(value, Dimension::data);
  if (unit == "B/s") return format_quantity(value, Dimension::data_rate);
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
  }
  for (const NearbyRun& each : explanation.nearest) {
    nearest.push_back({{"row", each.row},
                       {"source", each.source},
                       {"gpu", each.gpu},
                       {"gpus", each.gpus},
                       {"stack", each.stack},
                       {"measured_step_s", twelve_digits(each.measured_s)},
                       {"predicted_step_s", twelve_digits(each.predicted_s)},
                       {"distance", twelve_digits(each.distance)}});
  }
  return {{"file", explanation.file},
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
}

}  // namespace lockstep
