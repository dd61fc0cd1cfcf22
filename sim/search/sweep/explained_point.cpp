#include "sim/search/sweep/explained_point.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/search/sweep/metrics.hpp"
#include "sim/search/sweep/points.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string file_alone(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

SweepPoint point_numbered(const Sweep& sweep, std::uint32_t number) {
  PointMaker maker(sweep);
  if (maker.counts(number)) return maker.make(number);
  std::uint32_t next = number;
  while (next < sweep.candidates() && !maker.counts(next)) ++next;
  throw InputError({.file = sweep.file,
                    .pointer = "/constraints",
                    .found = fmt::format("--point {}, which they leave out", number),
                    .allowed = "a point that keeps them all",
                    .nearest = next < sweep.candidates() ? fmt::format("--point {}", next) : ""});
}

/// "point 12 of sweep.json: tensor 8, nic 100 Gb/s".
std::string words_of_point(const Sweep& sweep, const SweepPoint& point) {
  const std::vector<std::string> columns = sweep.columns();
  std::vector<std::string> values;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string value = text_of(point.values[i]);
    values.push_back(columns[i] + " " + (value.empty() ? "as the scenario has it" : value));
  }
  return fmt::format("point {} of {}: {}", point.number, file_alone(sweep.file),
                     fmt::join(values, ", "));
}

std::optional<double> number_in(const SqlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

/// Whether a formula in SQL names a column.
bool names_column(const std::string& formula, std::string_view column) {
  const auto of_name = [&](std::size_t at) {
    return at < formula.size() &&
           (std::isalnum(static_cast<unsigned char>(formula[at])) != 0 || formula[at] == '_');
  };
  for (std::size_t at = formula.find(column); at != std::string::npos;
       at = formula.find(column, at + 1)) {
    if ((at == 0 || !of_name(at - 1)) && !of_name(at + column.size())) return true;
  }
  return false;
}

std::string at_key(const std::string& pointer) {
  std::string dotted = pointer.substr(std::min<std::size_t>(pointer.size(), 1));
  std::ranges::replace(dotted, '/', '.');
  return dotted;
}

/// Where the sweep gets a column from, and of the scenario what it sets.
struct ColumnOrigin {
  std::string name, formula, at;
  const Expression* is = nullptr;
};

std::string formula_of_axis(const SweepAxis& axis, const SweepVariable& variable) {
  if (axis.kind == SweepAxis::Kind::list) return "a value of its axis";
  if (variable.law == SweepVariable::Law::choice) return "drawn from the axis' choices";
  return fmt::format(
      "drawn between {:g} and {:g}{}{}", variable.low, variable.high,
      variable.unit.empty() ? "" : " " + variable.unit,
      variable.law == SweepVariable::Law::log_uniform ? ", its logarithm evenly" : ", evenly");
}

/// In the order of Sweep::columns().
std::vector<ColumnOrigin> origins_of(const Sweep& sweep) {
  std::vector<ColumnOrigin> out;
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepVariable& variable : axis.variables) {
      out.push_back({variable.name, formula_of_axis(axis, variable), variable.at});
    }
  }
  for (const DerivedValue& value : sweep.derived) {
    std::string formula = "the scenario's " + at_key(value.from);
    if (value.is) {
      formula = "in SQL, where whole numbers divide to whole ones: " + value.is->text;
    } else if (value.quantity_of) {
      formula = fmt::format("{} in base units", out[value.quantity_of->column].name);
    }
    out.push_back({value.name, std::move(formula), value.at, value.is ? &*value.is : nullptr});
  }
  if (sweep.repeats > 0) {
    out.push_back({"repeat", "counted: the point again with another seed", ""});
    out.push_back(
        {"seed", "drawn from the sweep's seed and the number of the repeat", "/run/seed"});
  }
  return out;
}

std::string from_column(const Sweep& sweep, const ColumnOrigin& column) {
  return fmt::format("column {} of {}", column.name, file_alone(sweep.file));
}

/// A number that stands in a column of the sweep's own.
FieldExplanation column_explained(const Sweep& sweep, const SweepPoint& point,
                                  const std::vector<ColumnOrigin>& columns, std::size_t index,
                                  double value) {
  const ColumnOrigin& column = columns[index];
  FieldExplanation out;
  out.file = sweep.file;
  out.field = column.name;
  out.sentence = column.at.empty()
                     ? "A column of the sweep."
                     : fmt::format("A column of the sweep, which sets {} of {}.", at_key(column.at),
                                   file_alone(sweep.scenario_file));
  out.value = value;
  out.formula = column.formula;
  for (std::size_t i = 0; column.is != nullptr && i < index; ++i) {
    if (!names_column(column.is->text, columns[i].name)) continue;
    out.inputs.push_back({.name = columns[i].name,
                          .path = columns[i].name,
                          .unit = {},
                          .value = number_in(point.values[i]),
                          .from = from_column(sweep, columns[i])});
  }
  if (out.inputs.empty()) {
    out.inputs.push_back({.name = column.name,
                          .path = column.name,
                          .unit = {},
                          .value = value,
                          .from = from_column(sweep, column)});
  }
  return out;
}

/// The number of the answer that a column of metrics has: "waterfall.11.share" of
/// "pipeline_bubble_share"; else the name itself.
std::string path_of_metric(const Sweep& sweep, const std::string& field) {
  const std::vector<SweepMetric>& metrics = sweep_metrics(sweep.is_run);
  const auto metric = std::ranges::find(metrics, field, &SweepMetric::name);
  return metric == metrics.end() ? field : at_key(metric->place.to_string());
}

}  // namespace

FieldExplanation explain_point(const Sweep& sweep, std::uint32_t number, const std::string& field,
                               const PresetStore& presets, bool allow_oom) {
  const SweepPoint point = point_numbered(sweep, number);
  const std::vector<ColumnOrigin> columns = origins_of(sweep);
  const std::string words = words_of_point(sweep, point);
  const auto own = std::ranges::find(columns, field, &ColumnOrigin::name);
  if (own != columns.end()) {
    const auto index = static_cast<std::size_t>(own - columns.begin());
    if (const std::optional<double> value = number_in(point.values[index])) {
      FieldExplanation out = column_explained(sweep, point, columns, index, *value);
      out.point = words;
      return out;
    }
  }
  const std::string text = write_json(point.scenario);
  allow_oom =
      allow_oom || sweep.allow_oom || tells_memory(JsonCursor::parse(sweep.scenario_file, text));
  const ExplainedAnswer answer = answer_text(sweep.scenario_file, text, presets,
                                             {.folding = sweep.folding, .allow_oom = allow_oom});
  FieldExplanation out = explain_field(sweep.file, answer, path_of_metric(sweep, field), presets);
  out.point = words;
  // Of what the scenario says, what the sweep put there.
  constexpr std::string_view kOfScenario = "scenario: ";
  for (ExplainedInput& input : out.inputs) {
    if (!input.from.starts_with(kOfScenario)) continue;
    const std::string key = input.from.substr(kOfScenario.size());
    // The last that sets it is what stands.
    for (const ColumnOrigin& column : columns) {
      const std::string at = at_key(column.at);
      if (!at.empty() && (key == at || key.starts_with(at + "."))) {
        input.from = fmt::format("{}: {}", from_column(sweep, column), key);
      }
    }
  }
  return out;
}

}  // namespace lockstep
