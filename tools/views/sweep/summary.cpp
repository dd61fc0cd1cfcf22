#include "tools/views/sweep/summary.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "sim/search/sweep/metrics.hpp"
#include "sim/search/sweep/sql_value.hpp"

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
  // A column in which no point has anything, as a price where nobody says one, says nothing.
  const auto is_empty = [&](std::size_t c) {
    return std::ranges::all_of(summary.best,
                               [c](const auto& row) { return text_of(row[c]).empty(); });
  };
  for (std::size_t c = 1; c < summary.columns.size(); ++c) {
    if (c != objective && !is_empty(c)) order.push_back(c);
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

/// Numbers of a step's answer that are in proportion to its time, and those against it: their
/// intervals are the step's.
constexpr std::array<std::string_view, 4> kAsStep{"step_s", "time_to_train_s", "gpu_hours",
                                                  "price_usd"};
constexpr std::array<std::string_view, 7> kAgainstStep{"mfu",
                                                       "mfu_causal",
                                                       "hfu",
                                                       "tokens_per_s",
                                                       "tokens_per_s_per_gpu",
                                                       "tflops_per_gpu",
                                                       "tflops_per_gpu_causal"};

/// Columns that an interval of the objective is made from; none where it has no interval.
std::vector<std::string> interval_columns(const Sweep& sweep, const std::string& objective) {
  if (sweep.is_run && objective == "goodput") return {"goodput_half_width_95"};
  const auto has = [&objective](const auto& names) {
    return std::ranges::find(names, objective) != names.end();
  };
  const bool of_step =
      objective == "step_s" || (!sweep.is_run && (has(kAsStep) || has(kAgainstStep)));
  if (!of_step) return {};
  return {"step_s", "step_s_low", "step_s_high"};
}

/// `from`: the values of interval_columns().
NumberInterval interval_of(const std::string& objective, double value,
                           const std::vector<double>& from) {
  if (from.size() == 1) return {value - from[0], value + from[0]};
  const double low = from[1] / from[0], high = from[2] / from[0];
  if (std::ranges::find(kAgainstStep, objective) == kAgainstStep.end())
    return {value * low, value * high};
  return {value / high, value / low};
}

std::optional<double> sql_number(const SqlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  const auto* const number = std::get_if<double>(&value);
  return number ? std::optional(*number) : std::nullopt;
}

/// Takes the values of interval_columns() off the end of each of the best rows.
void take_intervals(SweepSummary& summary, std::size_t columns) {
  const auto objective = static_cast<std::size_t>(
      std::ranges::find(summary.columns, summary.objective.column) - summary.columns.begin());
  for (std::vector<SqlValue>& row : summary.best) {
    std::vector<double> from;
    for (std::size_t c = row.size() - columns; c < row.size(); ++c) {
      if (const std::optional<double> number = sql_number(row[c])) from.push_back(*number);
    }
    row.resize(row.size() - columns);
    const std::optional<double> value = sql_number(row[objective]);
    const bool known = value && columns > 0 && from.size() == columns;
    summary.intervals.push_back(
        known ? std::optional(interval_of(summary.objective.column, *value, from)) : std::nullopt);
  }
  summary.interval_words = columns == 1 ? "95 % interval" : "90 % interval";
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

/// The columns that a setting and its repeats share, for SQL.
std::string setting_of(const Sweep& sweep) {
  std::vector<std::string> out;
  for (const std::string& name : sweep.columns()) {
    if (name != "repeat" && name != "seed") out.push_back(quoted_name(name));
  }
  return out.empty() ? "NULL" : fmt::format("{}", fmt::join(out, ", "));
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
  std::vector<std::string> from = interval_columns(sweep, objective.column);
  const auto is_there = [&results](const std::string& name) {
    return std::ranges::find(results.columns(), name) != results.columns().end();
  };
  if (!std::ranges::all_of(from, is_there)) from.clear();
  std::vector<std::string> quoted;
  for (const std::string& name : summary.columns) quoted.push_back(quoted_name(name));
  for (const std::string& name : from) quoted.push_back(quoted_name(name));
  const std::string column = quoted_name(objective.column);
  const std::string fits =
      is_there(std::string(kMemoryFits)) ? fmt::format("coalesce({}, 1)", kMemoryFits) : "1";
  results.each(fmt::format("SELECT count(*) FROM points WHERE status = 'ok' AND {} = 0", fits),
               [&](const auto& row) {
                 summary.too_large = static_cast<std::size_t>(std::get<std::int64_t>(row[0]));
               });
  const char* const best_first = objective.larger_is_better ? "DESC" : "ASC";
  // Of one point the mean is its own value.
  const std::string mean = fmt::format("avg({}) OVER (PARTITION BY {})", column, setting_of(sweep));
  if (sweep.repeats > 1) {
    results.each(fmt::format("SELECT avg({0}), count(*) FROM points WHERE status = 'ok' AND {0} IS "
                             "NOT NULL GROUP BY {1} ORDER BY min({2}) DESC, 1 {3} LIMIT 1",
                             column, setting_of(sweep), fits, best_first),
                 [&](const auto& row) {
                   const auto* found = std::get_if<double>(&row[0]);
                   if (found) summary.best_mean = *found;
                   summary.best_repeats = static_cast<std::size_t>(std::get<std::int64_t>(row[1]));
                 });
  }
  results.each(fmt::format("SELECT {}, {} FROM points WHERE status = 'ok' AND {} IS NOT NULL "
                           "ORDER BY {} DESC, {}{} {}, point LIMIT {}",
                           fits, fmt::join(quoted, ", "), column, fits,
                           sweep.repeats > 1 ? fmt::format("{} {}, ", mean, best_first) : "",
                           column, best_first, top),
               [&](const auto& row) {
                 summary.fits.push_back(std::get<std::int64_t>(row[0]) != 0);
                 summary.best.emplace_back(row.begin() + 1, row.end());
               });
  take_intervals(summary, from.size());
  return summary;
}

bool SweepSummary::has_intervals() const {
  return std::ranges::any_of(intervals, [](const auto& each) { return each.has_value(); });
}

SweepSummary with_interval_column(SweepSummary summary) {
  if (!summary.has_intervals()) return summary;
  const auto behind =
      std::ranges::find(summary.columns, summary.objective.column) + 1 - summary.columns.begin();
  summary.columns.insert(summary.columns.begin() + behind, std::string(summary.interval_words));
  for (std::size_t i = 0; i < summary.best.size(); ++i) {
    const std::optional<NumberInterval>& each = summary.intervals[i];
    summary.best[i].insert(summary.best[i].begin() + behind,
                           each ? SqlValue(fmt::format("{} to {}", significant(each->low, 4),
                                                       significant(each->high, 4)))
                                : SqlValue());
  }
  return summary;
}

Json summary_json(const SweepSummary& summary) {
  Json out{{"database", summary.database},
           {"points", summary.points},
           {"ok", summary.ok},
           {"failed", summary.failed},
           {"missing", summary.points - summary.ok - summary.failed}};
  if (summary.too_large > 0) out["too_large"] = summary.too_large;
  if (summary.failed > 0) {
    out["first_failed"] = {{"point", summary.first_failed}, {"error", summary.first_error}};
  }
  out["objective"] = {{"column", summary.objective.column},
                      {"better", summary.objective.larger_is_better ? "max" : "min"}};
  out["best"] = Json::array();
  for (std::size_t i = 0; i < summary.best.size(); ++i) {
    Json best;
    for (std::size_t c = 0; c < summary.columns.size(); ++c)
      best[summary.columns[c]] = json_of(summary.best[i][c]);
    if (const std::optional<NumberInterval>& interval = summary.intervals[i]) {
      best[summary.objective.column + "_low"] = twelve_digits(interval->low);
      best[summary.objective.column + "_high"] = twelve_digits(interval->high);
    }
    if (summary.too_large > 0) best[std::string(kMemoryFits)] = bool{summary.fits[i]};
    out["best"].push_back(std::move(best));
  }
  return out;
}

std::string summary_table(const SweepSummary& plain, const TextStyle& style) {
  const SweepSummary summary = with_interval_column(plain);
  const int columns = style.columns > 0 ? style.columns : kTextColumns;
  const std::size_t missing = summary.points - summary.ok - summary.failed;
  std::string text =
      fmt::format("{}: {} point{}", summary.database, grouped(static_cast<double>(summary.points)),
                  summary.points == 1 ? "" : "s");
  if (missing > 0) text += fmt::format(", {} not finished", grouped(static_cast<double>(missing)));
  if (summary.failed > 0) {
    text += fmt::format(", {} failed", grouped(static_cast<double>(summary.failed)));
  }
  if (summary.too_large > 0) {
    text +=
        fmt::format(", {} too large for memory", grouped(static_cast<double>(summary.too_large)));
  }
  text += "\n";
  if (summary.failed > 0) {
    text += wrap(fmt::format("The first, point {}: {}", summary.first_failed, summary.first_error),
                 columns - 2, 2) +
            "\n";
  }
  if (!summary.limit_warning.empty()) text += wrap(summary.limit_warning + ".", columns, 2) + "\n";
  if (summary.best.empty()) return text;
  text += style.bold(fmt::format("\nBest by {}{}, {} first",
                                 summary.best_repeats > 1 ? "mean " : "", summary.objective.column,
                                 summary.objective.larger_is_better ? "largest" : "smallest")) +
          "\n";
  const std::vector<std::size_t> kept = fitting(summary, columns);
  std::vector<TextTable::Column> titles;
  titles.reserve(kept.size());
  for (const std::size_t c : kept) titles.push_back({summary.columns[c], TextTable::Align::right});
  TextTable table(std::move(titles));
  for (std::size_t i = 0; i < summary.best.size(); ++i) {
    std::vector<std::string> cells;
    cells.reserve(kept.size());
    for (const std::size_t c : kept) cells.push_back(cell_of(summary.best[i][c]));
    if (!summary.fits[i]) cells.front() += "!";
    table.add(std::move(cells));
  }
  const bool marked = std::ranges::find(summary.fits, false) != summary.fits.end();
  return text + table.text(style) + (marked ? "!: does not fit in memory\n" : "");
}

}  // namespace lockstep
