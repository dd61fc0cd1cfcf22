#include "tools/lockstep/sweep/summary.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "models/base/number_text.hpp"
#include "tools/lockstep/run/site_limit.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Metrics that a table has, beside the objective.
constexpr std::array<std::string_view, 5> kStepColumns{"mfu", "step_s", "tokens_per_s_per_gpu",
                                                       "needed_memory_gib", "price_usd"};
constexpr std::array<std::string_view, 5> kRunColumns{"goodput", "wall_s", "interruptions", "mfu",
                                                      "price_usd"};
constexpr int kWidestCell = 28;
constexpr int kGap = 2;  ///< between columns, and before the first

std::vector<std::string> summary_columns(const Sweep& sweep, const std::string& objective) {
  std::vector<std::string> columns{"point"};
  for (const std::string& name : sweep.columns()) columns.push_back(name);
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  };
  add(objective);
  for (const std::string_view name : sweep.is_run ? kRunColumns : kStepColumns) {
    add(std::string(name));
  }
  return columns;
}

std::string cell_of(const SqlValue& value) {
  std::string text = text_of(value);
  if (const auto* number = std::get_if<double>(&value)) text = significant(*number, 4);
  if (text_width(text) > kWidestCell) text = text.substr(0, kWidestCell - 3) + "...";
  return text;
}

/// Which columns fit: the number and the objective always, then settings, then other metrics.
std::vector<std::size_t> fitting(const SweepSummary& summary, int columns) {
  const auto objective = static_cast<std::size_t>(
      std::ranges::find(summary.columns, summary.objective.column) - summary.columns.begin());
  std::vector<std::size_t> order{0, objective};
  for (std::size_t c = 1; c < summary.columns.size(); ++c) {
    if (c != objective) order.push_back(c);
  }
  std::vector<std::size_t> kept;
  int used = 0;
  for (const std::size_t c : order) {
    int width = text_width(summary.columns[c]);
    for (const auto& row : summary.best) width = std::max(width, text_width(cell_of(row[c])));
    if (kept.size() >= 2 && used + kGap + width > columns) continue;
    used += kGap + width;
    kept.push_back(c);
  }
  std::ranges::sort(kept);
  return kept;
}

/// How many points draw more than their site has; empty where none does.
std::string exceeded_points(const ResultsReader& results) {
  for (const char* column : {"site_excess_w", "site_limit_w"}) {
    if (std::ranges::find(results.columns(), column) == results.columns().end()) return {};
  }
  LimitTally limits;
  const auto number = [](const SqlValue& value) {
    const auto* found = std::get_if<double>(&value);
    return found ? std::optional(*found) : std::nullopt;
  };
  results.each(
      "SELECT CAST(site_excess_w AS REAL), CAST(site_limit_w AS REAL) FROM points WHERE "
      "status = 'ok'",
      [&](const auto& row) { limits.add(number(row[0]), number(row[1])); });
  return limits.warning("points");
}

}  // namespace

SweepSummary summarise_sweep(const Sweep& sweep, const std::string& database, std::size_t points,
                             const SweepObjective& objective, int top) {
  const ResultsReader results(database);
  SweepSummary summary{.database = database,
                       .points = points,
                       .first_error = {},
                       .objective = objective,
                       .columns = summary_columns(sweep, objective.column),
                       .settings = sweep.columns().size() + 1,
                       .best = {}};
  results.each("SELECT status, count(*) FROM points GROUP BY status", [&](const auto& row) {
    const auto count = static_cast<std::size_t>(std::get<std::int64_t>(row[1]));
    (text_of(row[0]) == "ok" ? summary.ok : summary.failed) = count;
  });
  results.each("SELECT point, error FROM points WHERE status = 'failed' ORDER BY point LIMIT 1",
               [&](const auto& row) {
                 summary.first_failed = static_cast<std::uint32_t>(std::get<std::int64_t>(row[0]));
                 summary.first_error = text_of(row[1]);
               });
  summary.limit_warning = exceeded_points(results);
  std::vector<std::string> quoted;
  quoted.reserve(summary.columns.size());
  for (const std::string& name : summary.columns) quoted.push_back(quoted_name(name));
  const std::string column = quoted_name(objective.column);
  results.each(fmt::format("SELECT {} FROM points WHERE status = 'ok' AND {} IS NOT NULL "
                           "ORDER BY {} {}, point LIMIT {}",
                           fmt::join(quoted, ", "), column, column,
                           objective.larger_is_better ? "DESC" : "ASC", top),
               [&](const auto& row) { summary.best.push_back(row); });
  return summary;
}

Json summary_json(const SweepSummary& summary) {
  Json out{{"database", summary.database},
           {"points", summary.points},
           {"ok", summary.ok},
           {"failed", summary.failed},
           {"missing", summary.points - summary.ok - summary.failed}};
  if (summary.failed > 0) {
    out["first_failed"] = {{"point", summary.first_failed}, {"error", summary.first_error}};
  }
  out["objective"] = {{"column", summary.objective.column},
                      {"better", summary.objective.larger_is_better ? "max" : "min"}};
  out["best"] = Json::array();
  for (const auto& row : summary.best) {
    Json best;
    for (std::size_t c = 0; c < row.size(); ++c) best[summary.columns[c]] = json_of(row[c]);
    out["best"].push_back(std::move(best));
  }
  return out;
}

std::string summary_table(const SweepSummary& summary, const TextStyle& style) {
  const int columns = style.columns > 0 ? style.columns : kTextColumns;
  const std::size_t missing = summary.points - summary.ok - summary.failed;
  std::string text =
      fmt::format("{}: {} point{}", summary.database, grouped(static_cast<double>(summary.points)),
                  summary.points == 1 ? "" : "s");
  if (missing > 0) text += fmt::format(", {} not finished", grouped(static_cast<double>(missing)));
  if (summary.failed > 0) {
    text += fmt::format(", {} failed", grouped(static_cast<double>(summary.failed)));
  }
  text += "\n";
  if (summary.failed > 0) {
    text += wrap(fmt::format("The first, point {}: {}", summary.first_failed, summary.first_error),
                 columns - 2, 2) +
            "\n";
  }
  if (!summary.limit_warning.empty()) text += wrap(summary.limit_warning + ".", columns, 2) + "\n";
  if (summary.best.empty()) return text;
  text += style.bold(fmt::format("\nBest by {}, {} first", summary.objective.column,
                                 summary.objective.larger_is_better ? "largest" : "smallest")) +
          "\n";
  const std::vector<std::size_t> kept = fitting(summary, columns);
  std::vector<TextTable::Column> titles;
  titles.reserve(kept.size());
  for (const std::size_t c : kept) titles.push_back({summary.columns[c], TextTable::Align::right});
  TextTable table(std::move(titles));
  for (const auto& row : summary.best) {
    std::vector<std::string> cells;
    cells.reserve(kept.size());
    for (const std::size_t c : kept) cells.push_back(cell_of(row[c]));
    table.add(std::move(cells));
  }
  return text + table.text(style);
}

}  // namespace lockstep
