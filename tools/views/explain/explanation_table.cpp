#include "tools/views/explain/explanation_table.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "sim/measured/explanation.hpp"
#include "tools/console/shared_options.hpp"

namespace lockstep {
namespace {

std::string inputs_table(const FieldExplanation& e) {
  std::size_t name = 0, value = 0;
  const auto shown = [](const ExplainedInput& input) {
    if (!input.written.empty()) return input.written;
    return input.value ? explained_amount(*input.value, input.unit) : std::string("none");
  };
  // Where a formula has another name for it than the answer, both.
  const auto named = [](const ExplainedInput& input) {
    const bool own = input.path == input.name || input.path.ends_with("." + input.name);
    return own ? input.path : input.name + " = " + input.path;
  };
  for (const ExplainedInput& input : e.inputs) {
    name = std::max(name, named(input).size());
    value = std::max(value, shown(input).size());
  }
  std::string out;
  for (const ExplainedInput& input : e.inputs) {
    const int indent = static_cast<int>(name + value) + 6;
    out += fmt::format("  {:<{}}  {:>{}}  ", named(input), name, shown(input), value) +
           wrap(input.from, std::max(30 + indent, kTextColumns), indent, indent) + "\n";
  }
  return out;
}

/// Cells of a run: card, number of cards, software, measured, predicted, error.
std::vector<std::string> nearest_cells(const NearbyRun& run) {
  const auto text = [&run](double value) {
    const std::string unit = run.unit();
    if (unit == "s") return duration_text(value);
    if (unit == "GiB" || unit == "J") return significant(value) + " " + unit;
    return explained_amount(unit == "B/s" ? std::round(value / 1e8) * 1e8 : std::round(value),
                            unit);
  };
  return {run.gpu,
          grouped(run.gpus),
          run.stack,
          run.statistic.empty() ? text(run.measured) : run.statistic + " " + text(run.measured),
          text(run.predicted),
          error_text(run.predicted / run.measured - 1)};
}

/// The nearest runs; a name stands below its numbers if there is no room beside them.
std::string nearest_table(const FieldExplanation& e, const TextStyle& style) {
  std::vector<TextTable::Column> columns{{"GPU", TextTable::Align::left},
                                         {"GPUs"},
                                         {"software", TextTable::Align::left},
                                         {"measured"},
                                         {"predicted"},
                                         {"error"}};
  TextTable numbers(columns);
  columns.insert(columns.begin(), {"published run", TextTable::Align::left});
  TextTable named(columns);
  for (const NearbyRun& run : e.nearest) {
    std::vector<std::string> cells = nearest_cells(run);
    numbers.add(cells);
    cells.insert(cells.begin(), run.row);
    named.add(std::move(cells));
  }
  if (named.width() <= table_columns(style)) return named.text(style);
  std::vector<std::string> rows;
  for (const NearbyRun& run : e.nearest) rows.push_back(run.row);
  return text_with_words(numbers, rows, style);
}

}  // namespace

std::string explanation_table(const FieldExplanation& e, const TextStyle& style) {
  std::string out =
      style.bold(fmt::format("{} = {}", e.field, explained_amount(e.value, e.unit))) + "\n" +
      wrap(e.sentence, kTextColumns, 0) +
      (e.point.empty() ? "" : "\n" + wrap("At " + e.point + ".", kTextColumns, 2)) +
      "\n\nFormula\n  " +
      wrap((e.arithmetic ? e.field + " = " : std::string()) + e.formula, kTextColumns, 2, 2) +
      "\n\nInputs\n" + inputs_table(e);
  if (e.low) {
    out += "\n90 % interval\n  " +
           wrap(fmt::format("{} to {} ({})", explained_amount(*e.low, e.unit),
                            explained_amount(*e.high, e.unit), e.why),
                kTextColumns, 2, 2) +
           "\n";
  }
  if (!e.assumptions.empty()) out += "\nAssumed\n";
  for (const std::string& each : e.assumptions) {
    out += "  " + wrap(each, kTextColumns, 4, 2) + "\n";
  }
  out += fmt::format("\nNearest {}\n", e.nearest_kind);
  return out + (e.nearest.empty() ? "  " + wrap(e.nearest_note, kTextColumns, 2, 2) + "\n"
                                  : nearest_table(e, style));
}

}  // namespace lockstep
