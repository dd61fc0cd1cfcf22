#include "tools/views/sweep/sweep_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/answer/fields.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/search/sweep/metrics.hpp"
#include "sim/search/sweep/points.hpp"
#include "sim/search/sweep/sql_value.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/sweep/setting_titles.hpp"
#include "tools/views/vary/shown_numbers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostParallelAxes = 13, kMostMultiples = 12, kMostNames = 12,
                      kMostBestBars = 12;

/// A column of the points that are drawn.
struct SweepColumn {
  std::string name;
  std::vector<SqlValue> values;
  std::string title{};  ///< of a setting, where that is not its name (setting_titles())
  std::vector<std::optional<double>> numbers{};  ///< one for each, where all values are numbers
  std::vector<std::string> names{};              ///< else the different ones, in order

  [[nodiscard]] bool varies() const {
    return std::ranges::adjacent_find(values, std::not_equal_to{}) != values.end();
  }
  [[nodiscard]] bool numeric() const { return names.empty(); }
};

/// What is drawn: points with an answer, thinned.
struct SweepPoints {
  std::vector<SweepColumn> settings;
  SweepColumn objective;
  std::vector<SweepColumn> costs;  ///< numbers to hold against the objective
  std::vector<double> numbers;     ///< of the points
  std::vector<bool> fits;          ///< in memory
  std::size_t all = 0;
  std::size_t all_that_fit = 0;
  [[nodiscard]] std::size_t size() const { return numbers.size(); }
};

std::optional<double> as_number(const SqlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

void finish(SweepColumn& column) {
  bool numeric = true;
  for (const SqlValue& value : column.values) {
    numeric = numeric && !std::holds_alternative<std::string>(value);
  }
  for (const SqlValue& value : column.values) {
    if (numeric) {
      column.numbers.push_back(as_number(value));
      continue;
    }
    const std::string text = text_of(value);
    if (std::ranges::find(column.names, text) == column.names.end()) column.names.push_back(text);
  }
}

/// Columns that say what an answer costs, where it has them.
constexpr std::array<std::string_view, 6> kSweepCosts{"price_usd", "needed_memory_gib", "step_s",
                                                      "gpus",      "facility_mean_w",   "wall_s"};

/// Not: repeats, which differ by chance, and the words of a quantity whose number is beside them
/// ("interval" beside "interval_s").
bool is_drawn(const SweepColumn& column, std::span<const SweepColumn> settings) {
  if (column.name == "repeat" || column.name == "seed" || !column.varies()) return false;
  return column.numeric() || std::ranges::none_of(settings, [&](const SweepColumn& other) {
           return other.numeric() && other.name.starts_with(column.name + "_");
         });
}

SweepPoints read_points(const Sweep& sweep, const SweepSummary& summary) {
  const ResultsReader results(summary.database);
  std::vector<std::string> names = sweep.columns();
  const std::size_t settings = names.size();
  names.push_back(summary.objective.column);
  const std::vector<std::string>& known = results.columns();
  for (const std::string_view cost : kSweepCosts) {
    const std::string name(cost);
    if (name != summary.objective.column && std::ranges::find(known, name) != known.end() &&
        std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  const bool tells_memory = std::ranges::find(known, kMemoryFits) != known.end();
  std::string query = fmt::format("SELECT point, {}",
                                  tells_memory ? fmt::format("coalesce({}, 1)", kMemoryFits) : "1");
  for (const std::string& name : names) query += ", " + quoted_name(name);
  query += " FROM points WHERE status = 'ok' AND " + quoted_name(summary.objective.column) +
           " IS NOT NULL ORDER BY point";
  const std::size_t step = std::max<std::size_t>(1, (summary.ok + kSweepLines - 1) / kSweepLines);
  std::vector<SweepColumn> columns;
  const std::map<std::string, std::string> titles = setting_titles(sweep);
  for (const std::string& name : names) {
    const auto title = titles.find(name);
    columns.push_back({.name = name,
                       .values = {},
                       .title = title == titles.end() ? std::string() : title->second});
  }
  SweepPoints out;
  std::size_t at = 0;
  results.each(query, [&](const std::vector<SqlValue>& row) {
    const bool fits = as_number(row[1]) != 0.0;
    if (fits) ++out.all_that_fit;
    if (at++ % step != 0) return;
    out.numbers.push_back(as_number(row[0]).value_or(0));
    out.fits.push_back(fits);
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c].values.push_back(row[c + 2]);
  });
  out.all = at;
  for (SweepColumn& column : columns) finish(column);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c < settings) {
      if (is_drawn(columns[c], std::span(columns).first(settings)))
        out.settings.push_back(columns[c]);
    } else if (c == settings) {
      out.objective = std::move(columns[c]);
    } else if (columns[c].numeric() && columns[c].varies() &&
               std::ranges::none_of(columns[c].numbers, [](auto n) { return !n; })) {
      out.costs.push_back(std::move(columns[c]));
    }
  }
  return out;
}

/// Those that fit in memory; all where none does.
SweepPoints those_that_fit(const SweepPoints& points) {
  if (points.all_that_fit == 0 || points.all_that_fit == points.all) return points;
  const auto kept = [&](const auto& of) {
    auto out = of;
    out.clear();
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (points.fits[i]) out.push_back(of[i]);
    }
    return out;
  };
  SweepPoints out = points;
  const auto keep = [&](SweepColumn& column) {
    column.values = kept(column.values);
    column.numbers = kept(column.numbers);
  };
  std::ranges::for_each(out.settings, keep);
  keep(out.objective);
  std::ranges::for_each(out.costs, keep);
  out.numbers = kept(points.numbers);
  out.fits = kept(points.fits);
  out.all = points.all_that_fit;
  return out;
}

/// "8", "0.4014", "7,478", "31,744", "210 k".
std::string short_number(double value) {
  constexpr double kLarge = 1e5, kThousand = 1e3;
  const double size = std::abs(value);
  if (size >= kLarge) return page_count(value);
  const bool whole = value == std::round(value) || size >= kThousand;
  return whole ? grouped(value) : fmt::format("{:.4g}", value);
}

/// What the end of a column's name says of its numbers.
enum class ColumnKind : std::uint8_t {
  plain,
  time,
  bytes,
  rate,
  link_rate,  ///< of NICs, which are sold and written in bits
  memory,
  money,
  power,
  share
};
constexpr double kGigabit = 1e9 / 8;  // bytes

struct ColumnEnding {
  std::string_view ending;
  ColumnKind kind;
};
// The longest come first: "_bytes_per_s" ends with "_s".
constexpr std::array kColumnEndings{
    ColumnEnding{"_bytes_per_s", ColumnKind::rate}, ColumnEnding{"_per_s", ColumnKind::plain},
    ColumnEnding{"_s", ColumnKind::time},           ColumnEnding{"_bytes", ColumnKind::bytes},
    ColumnEnding{"_gib", ColumnKind::memory},       ColumnEnding{"_usd", ColumnKind::money},
    ColumnEnding{"_w", ColumnKind::power},          ColumnEnding{"_share", ColumnKind::share}};

/// The end of a column's name that says what its numbers are; null where none does.
const ColumnEnding* ending_of(std::string_view column) {
  const auto found = std::ranges::find_if(
      kColumnEndings, [&](const ColumnEnding& each) { return column.ends_with(each.ending); });
  return found == kColumnEndings.end() ? nullptr : &*found;
}

/// "nic_bytes_per_s", "slow_nic_bytes_per_s"; not "communication_bytes_per_s".
bool is_of_nics(std::string_view column) {
  return column.starts_with("nic") || column.find("_nic") != std::string_view::npos;
}

ColumnKind kind_of(std::string_view column) {
  static constexpr std::array<std::string_view, 5> kShares{"goodput", "mfu", "mfu_causal", "hfu",
                                                           "utilisation"};
  if (std::ranges::find(kShares, column) != kShares.end()) return ColumnKind::share;
  const ColumnEnding* const ending = ending_of(column);
  if (ending == nullptr) return ColumnKind::plain;
  const bool of_nics = ending->kind == ColumnKind::rate && is_of_nics(column);
  return of_nics ? ColumnKind::link_rate : ending->kind;
}

/// "2.62 s" of a column of seconds, "50.0 GB/s" of one of bytes per second, "400 Gb/s" of NICs.
std::string number_of_column(std::string_view column, double value) {
  switch (kind_of(column)) {
    case ColumnKind::time:
      return page_duration(value);
    case ColumnKind::bytes:
      return page_bytes(value);
    case ColumnKind::rate:
      return page_bytes(value) + "/s";
    case ColumnKind::link_rate:
      return page_with(value / kGigabit, "Gb/s");
    case ColumnKind::memory:
      return page_with(value, "GiB");
    case ColumnKind::money:
      return page_usd(value);
    case ColumnKind::power:
      return page_watts(value);
    case ColumnKind::share:
      return page_percent(value, 2);
    case ColumnKind::plain:
      break;
  }
  return short_number(value);
}

/// The unit of an axis, in which its largest number is read.
AxisUnit axis_unit(const SweepColumn& column) {
  constexpr double kLarge = 1e5, kLongTime = 180;
  double most = 0;
  for (const auto& number : column.numbers) most = std::max(most, std::abs(number.value_or(0)));
  switch (kind_of(column.name)) {
    case ColumnKind::time:
      return most < kLongTime ? time_unit(most) : long_time_unit(most);
    case ColumnKind::bytes:
      return bytes_unit(most);
    case ColumnKind::rate: {
      const AxisUnit unit = bytes_unit(most);
      return {unit.size, unit.name + "/s"};
    }
    case ColumnKind::link_rate:
      return {kGigabit, "Gb/s"};
    case ColumnKind::memory:
      return {1, "GiB"};
    case ColumnKind::money: {
      const AxisUnit unit = count_unit(most);
      return {unit.size, unit.name + (unit.name.empty() ? "USD" : " USD")};
    }
    case ColumnKind::power:
      return power_unit(most);
    case ColumnKind::share:
      return {0.01, "%"};
    case ColumnKind::plain:
      break;
  }
  return most < kLarge ? AxisUnit{1, ""} : count_unit(most);
}

/// What a column is called where it is drawn: its title, what other pages call it, or its name in
/// words, without the unit that numbers have.
std::string title_of(const SweepColumn& column) {
  if (!column.title.empty()) return column.title;
  if (const ShownNumber* const shown = shown_number(column.name)) return std::string(shown->title);
  const ColumnEnding* const ending = ending_of(column.name);
  const bool said = ending != nullptr && ending->kind != ColumnKind::plain;
  return words_of_key(std::string_view(column.name)
                          .substr(0, column.name.size() - (said ? ending->ending.size() : 0)));
}

ChartAxis axis_of(const SweepColumn& column) {
  ChartAxis axis{.name = title_of(column), .low = {}, .high = {}, .marks = {}, .places = {}};
  if (!column.numeric()) {
    if (column.names.size() <= kMostNames) axis.marks = column.names;
    const double last = std::max<double>(1, static_cast<double>(column.names.size()) - 1);
    for (const SqlValue& value : column.values) {
      const auto at = std::ranges::find(column.names, text_of(value)) - column.names.begin();
      axis.places.emplace_back(column.names.size() == 1 ? 0.5 : static_cast<double>(at) / last);
    }
    return axis;
  }
  double low = INFINITY, high = -INFINITY;
  for (const auto& number : column.numbers) {
    if (!number) continue;
    low = std::min(low, *number);
    high = std::max(high, *number);
  }
  axis.low = number_of_column(column.name, low);
  axis.high = number_of_column(column.name, high);
  for (const auto& number : column.numbers) {
    axis.places.push_back(number && high > low ? std::optional((*number - low) / (high - low))
                          : number             ? std::optional(0.5)
                                               : std::nullopt);
  }
  return axis;
}

/// From 0, the worst, to 1, the best.
std::vector<double> goodness_of(const SweepPoints& points, bool larger) {
  std::vector<double> out;
  for (const auto& place : axis_of(points.objective).places) {
    out.push_back(larger ? place.value_or(0) : 1 - place.value_or(1));
  }
  return out;
}

std::vector<std::string> point_lines(const SweepPoints& points, std::size_t i) {
  std::vector<std::string> lines{fmt::format("point {:.0f}", points.numbers[i])};
  const auto number = [&](const SweepColumn& column) {
    if (column.numbers[i]) {
      lines.push_back(fmt::format("{}: {}", title_of(column),
                                  number_of_column(column.name, *column.numbers[i])));
    }
  };
  for (const SweepColumn& column : points.settings) {
    if (column.numeric()) {
      number(column);
    } else {
      lines.push_back(fmt::format("{}: {}", title_of(column), text_of(column.values[i])));
    }
  }
  number(points.objective);
  for (const SweepColumn& column : points.costs) number(column);
  if (!points.fits[i]) lines.emplace_back("does not fit in memory");
  return lines;
}

/// `points`: those that are drawn, of so many with an answer.
void add_parallel(Page& page, const SweepPoints& points, std::size_t all_points, bool larger) {
  const std::vector<double> goodness = goodness_of(points, larger);
  const auto best = static_cast<std::size_t>(std::ranges::max_element(goodness) - goodness.begin());
  std::vector<ChartAxis> axes;
  for (const SweepColumn& column : points.settings) {
    if (axes.size() + 1 < kMostParallelAxes) axes.push_back(axis_of(column));
  }
  axes.push_back(axis_of(points.objective));
  const ChartAxis objective = axes.back();
  for (const SweepColumn& column : points.costs) {
    if (axes.size() < kMostParallelAxes) axes.push_back(axis_of(column));
  }
  if (axes.size() < 2) return;
  std::string about = "A line for each point, coloured by " +
                      in_sentence(title_of(points.objective)) + "; the thickest is the best.";
  if (points.all_that_fit < all_points) {
    about += fmt::format(" {} that do not fit in memory are left out.",
                         grouped(static_cast<double>(all_points - points.all_that_fit)));
  }
  if (points.size() < points.all) {
    about += fmt::format(" {} of {} points are drawn.", grouped(static_cast<double>(points.size())),
                         grouped(static_cast<double>(points.all)));
  }
  page.chart(
      {.title = "All points on parallel axes",
       .about = about,
       .summary = fmt::format("Lines of {} over {} axes.",
                              counted(static_cast<double>(points.size()), "point"), axes.size()),
       .height_px = 420},
      parallel_axes(axes, goodness, best,
                    {.worst = larger ? objective.low : objective.high,
                     .best = larger ? objective.high : objective.low}));
}

/// What dots of a chart are: ChartDot::colour.
std::vector<std::string> groups_of(const SweepPoints& points) {
  std::vector<std::string> out{"points"};
  if (points.all_that_fit < points.all) out.emplace_back("do not fit in memory");
  return out;
}

void add_sweep_fronts(Page& page, const SweepPoints& points, bool larger) {
  if (points.costs.empty()) return;
  page.section("What the best costs",
               fmt::format("On a dashed front are points{} of which no other is better in both; "
                           "where there is none, one point is best in both.",
                           points.all_that_fit < points.all ? " that fit in memory" : ""));
  page.begin_row();
  std::size_t shown = 0;
  for (const SweepColumn& cost : points.costs) {
    if (shown++ == 4) break;
    std::vector<ChartDot> dots, line;
    std::vector<double> x, y;
    std::vector<std::size_t> fitting;
    const AxisUnit unit = axis_unit(cost), up = axis_unit(points.objective);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double objective = *points.objective.numbers[i];
      dots.push_back({.x = *cost.numbers[i] / unit.size,
                      .y = objective / up.size,
                      .words = point_lines(points, i),
                      .colour = points.fits[i] ? std::size_t{0} : std::size_t{1}});
      if (!points.fits[i] && points.all_that_fit > 0) continue;
      fitting.push_back(i);
      x.push_back(*cost.numbers[i]);
      y.push_back(larger ? -objective : objective);
    }
    for (const std::size_t i : front_of(x, y)) line.push_back(dots[fitting[i]]);
    page.chart({.title = fmt::format("{} over {}", title_of(points.objective),
                                     in_sentence(title_of(cost))),
                .about = {},
                .summary = "A dot for each point, and the front.",
                .height_px = 300},
               dots_chart(dots, groups_of(points), {.unit = unit.name}, {.unit = up.name}, line));
  }
  page.end_row();
}

/// The objective of all points over a setting, and the best at each value of it.
void add_multiple(Page& page, const SweepPoints& points, const SweepColumn& setting, bool larger) {
  std::vector<ChartDot> dots, line;
  std::map<double, ChartDot> best;
  const AxisUnit unit = axis_unit(setting), up = axis_unit(points.objective);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto named = std::ranges::find(setting.names, text_of(setting.values[i]));
    const std::optional<double> x =
        setting.numeric() ? setting.numbers[i]
                          : std::optional(static_cast<double>(named - setting.names.begin()));
    if (!x) continue;
    dots.push_back({.x = *x / unit.size,
                    .y = *points.objective.numbers[i] / up.size,
                    .words = point_lines(points, i),
                    .colour = points.fits[i] ? std::size_t{0} : std::size_t{1}});
    if (!points.fits[i] && points.all_that_fit > 0) continue;
    const auto [at, is_new] = best.try_emplace(*x, dots.back());
    if (larger ? dots.back().y > at->second.y : dots.back().y < at->second.y) {
      at->second = dots.back();
    }
  }
  for (const auto& [x, dot] : best) line.push_back(dot);
  nlohmann::json options =
      dots_chart(dots, groups_of(points), {.unit = unit.name}, {.unit = up.name}, line);
  if (line.size() > 1) options["series"][0]["name"] = "best at each value";
  if (!setting.numeric()) {
    options["xAxis"] = {{"type", "category"},
                        {"data", setting.names},
                        {"axisLabel", {{"interval", 0}, {"width", 110}, {"overflow", "break"}}}};
  }
  page.chart({.title = title_of(setting),
              .about = {},
              .summary = fmt::format("{} over {}.", title_of(points.objective), title_of(setting)),
              .height_px = 240},
             options);
}

/// What a variable is set to, where that is listed: also those drawn from a list.
nlohmann::ordered_json listed_values(const SweepAxis& axis, std::size_t variable) {
  nlohmann::ordered_json out = axis.variables[variable].choices;
  if (axis.kind != SweepAxis::Kind::list) return out;
  out = nlohmann::ordered_json::array();
  for (const auto& row : axis.rows) {
    if (row[variable]) out.push_back(*row[variable]);
  }
  return out;
}

/// Whether points differ in it: a list may have one value, which only sets it.
bool takes_several(const SweepAxis& axis, std::size_t v) {
  if (axis.kind != SweepAxis::Kind::list) {
    return axis.samples > 1 && (axis.variables[v].law != SweepVariable::Law::choice ||
                                axis.variables[v].choices.size() > 1);
  }
  return std::ranges::any_of(axis.rows,
                             [&](const auto& row) { return row[v] != axis.rows.front()[v]; });
}

/// "1, 2, 4"; "12 samples from 0.5 to 2".
std::string values_words(const SweepAxis& axis, std::size_t v) {
  constexpr std::size_t kMostListed = 12;
  const SweepVariable& variable = axis.variables[v];
  if (axis.kind != SweepAxis::Kind::list && variable.law != SweepVariable::Law::choice) {
    return fmt::format("{} from {} to {}{}{}", counted(axis.samples, "sample"),
                       short_number(variable.low), short_number(variable.high),
                       variable.unit.empty() ? "" : " ", variable.unit);
  }
  const nlohmann::ordered_json values = listed_values(axis, v);
  std::string out;
  for (std::size_t i = 0; i < std::min(values.size(), kMostListed); ++i) {
    const nlohmann::ordered_json& each = values[i];
    out += (i > 0 ? ", " : "") + (each.is_string() ? each.get<std::string>() : write_json(each));
  }
  if (values.size() > kMostListed) out += fmt::format(" and {} more", values.size() - kMostListed);
  return out;
}

/// The objective of one of the best points.
std::string objective_text(const SweepSummary& summary, const std::vector<SqlValue>& row) {
  const auto at = static_cast<std::size_t>(
      std::ranges::find(summary.columns, summary.objective.column) - summary.columns.begin());
  const std::optional<double> number = as_number(row[at]);
  return number ? number_of_column(summary.objective.column, *number) : text_of(row[at]);
}

/// The objective of the best point. Requires one.
std::string best_text(const SweepSummary& summary) {
  return objective_text(summary, summary.best.front());
}

/// "point 4", or with those of the best whose objective is printed alike "point 4 (as printed, also
/// of points 7 and 9)". Of repeats the first alone: the others differ by chance. Requires one.
std::string best_points(const SweepSummary& summary) {
  std::string out = "point " + text_of(summary.best.front()[0]);
  if (summary.best_repeats > 1) return out;
  std::vector<std::string> alike;
  for (std::size_t i = 1; i < summary.best.size(); ++i) {
    if (summary.fits[i] == summary.fits.front() &&
        objective_text(summary, summary.best[i]) == best_text(summary)) {
      alike.push_back(text_of(summary.best[i][0]));
    }
  }
  if (alike.empty()) return out;
  return out + fmt::format(" (as printed, also of point{} {})", alike.size() > 1 ? "s" : "",
                           listed(alike));
}

/// What is sought, as pages call it: "Goodput".
std::string objective_title(const SweepSummary& summary) {
  return title_of({.name = summary.objective.column, .values = {}});
}

/// ", the best of 5 repeats, whose mean is 95.3 %": of the setting that is best on average.
std::string repeats_text(const SweepSummary& summary) {
  if (!summary.best_mean || summary.best_repeats < 2) return {};
  return fmt::format(", the best of {} repeats, whose mean is {}", summary.best_repeats,
                     number_of_column(summary.objective.column, *summary.best_mean));
}

/// Which setting is best on average; empty without repeats.
std::string mean_sentence(const SweepSummary& summary) {
  if (!summary.best_mean || summary.best_repeats < 2) return {};
  return fmt::format("The setting of point {} is best on average: {} over {} repeats. ",
                     text_of(summary.best.front()[0]),
                     number_of_column(summary.objective.column, *summary.best_mean),
                     summary.best_repeats);
}

PageFigure best_figure(const SweepSummary& summary) {
  return {.value = best_text(summary),
          .label = fmt::format("{}, of point {}{}", objective_title(summary),
                               text_of(summary.best.front()[0]), repeats_text(summary)),
          .field = summary.objective.column};
}

/// The scenario of the best point. Requires one.
std::string best_scenario(const Sweep& sweep, const SweepSummary& summary) {
  const auto number = static_cast<std::uint32_t>(as_number(summary.best.front()[0]).value_or(0));
  return write_json(PointMaker(sweep).make(number).scenario);
}

/// The best points with the intervals of their objective; nothing where none has one.
void add_best_bars(Page& page, const SweepSummary& summary) {
  if (!summary.has_intervals()) return;
  const auto at = static_cast<std::size_t>(
      std::ranges::find(summary.columns, summary.objective.column) - summary.columns.begin());
  SweepColumn column{.name = summary.objective.column, .values = {}};
  for (const std::vector<SqlValue>& row : summary.best)
    column.numbers.push_back(as_number(row[at]));
  const AxisUnit unit = axis_unit(column);
  const std::string title = title_of(column);
  std::vector<IntervalBar> bars;
  for (std::size_t i = 0; i < std::min(summary.best.size(), kMostBestBars); ++i) {
    const std::optional<double> value = as_number(summary.best[i][at]);
    if (!value) continue;
    const std::string name = fmt::format("point {}", text_of(summary.best[i][0]));
    IntervalBar bar{
        .name = name,
        .value = *value / unit.size,
        .words = {name, fmt::format("{}: {}", title, number_of_column(column.name, *value))},
        .marked = i == 0};
    if (const std::optional<NumberInterval>& interval = summary.intervals[i]) {
      bar.low = interval->low / unit.size;
      bar.high = interval->high / unit.size;
      bar.words.push_back(fmt::format("{}: {} to {}", summary.interval_words,
                                      number_of_column(column.name, interval->low),
                                      number_of_column(column.name, interval->high)));
    }
    bars.push_back(std::move(bar));
  }
  page.chart({.title = fmt::format("{} of the best", title),
              .about = fmt::format("Whiskers: the {} of each point. The points share most of "
                                   "their error, so that whiskers which overlap do not say that "
                                   "two points are alike.",
                                   summary.interval_words),
              .summary = "Bars of the best points; the table has the same.",
              .height_px = bars_height(bars.size())},
             interval_bars(bars, unit.name));
}

/// Whether a column has words: quantities as the sweep's file has them.
bool is_written(const SweepSummary& summary, const std::string& column) {
  const auto at = static_cast<std::size_t>(std::ranges::find(summary.columns, column) -
                                           summary.columns.begin());
  return std::ranges::any_of(summary.best, [at](const std::vector<SqlValue>& row) {
    return std::holds_alternative<std::string>(row[at]);
  });
}

/// Whether it says in numbers what the column beside it says in words: "nic_bytes_per_s" of "nic".
bool repeats_words(const SweepSummary& summary, std::size_t column) {
  const std::string& name = summary.columns[column];
  return std::ranges::any_of(summary.columns, [&](const std::string& words) {
    return name.size() > words.size() && name.starts_with(words + "_") && !unit_at(name).empty() &&
           unit_at(words).empty() && is_written(summary, words);
  });
}

/// The column that says in seconds what this one says in words: "interval_s" of "interval".
std::optional<std::size_t> seconds_of(const SweepSummary& summary, std::size_t words) {
  if (!unit_at(summary.columns[words]).empty() || !is_written(summary, summary.columns[words])) {
    return std::nullopt;
  }
  const auto found = std::ranges::find(summary.columns, summary.columns[words] + "_s");
  if (found == summary.columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - summary.columns.begin());
}

/// Whether no point that is listed has anything in the column, as a price where nobody says one.
bool says_nothing(const SweepSummary& summary, std::size_t column) {
  return std::ranges::all_of(summary.best, [column](const std::vector<SqlValue>& row) {
    return text_of(row[column]).empty();
  });
}

/// The number of a point, what is sought and its interval, then all other columns that say
/// something.
std::vector<std::size_t> order_of_columns(const SweepSummary& summary) {
  std::vector<std::size_t> out(summary.columns.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  const auto is_first = [&](std::size_t c) {
    return c == 0 || summary.columns[c] == summary.objective.column ||
           summary.columns[c] == summary.interval_words;
  };
  std::ranges::stable_partition(out, is_first);
  std::erase_if(out, [&](std::size_t c) {
    return !is_first(c) && (repeats_words(summary, c) || says_nothing(summary, c));
  });
  return out;
}

PageTable best_rows(const Sweep& sweep, const SweepSummary& plain) {
  const std::map<std::string, std::string> titles = setting_titles(sweep);
  const SweepSummary summary = with_interval_column(plain);
  PageTable table{.first_rows = 20};
  const std::vector<std::size_t> order = order_of_columns(summary);
  for (const std::size_t c : order) {
    const bool numeric =
        seconds_of(summary, c) || std::ranges::none_of(summary.best, [c](const auto& row) {
          return std::holds_alternative<std::string>(row[c]);
        });
    const std::string& name = summary.columns[c];
    const auto title = titles.find(name);
    table.columns.push_back({.title = title != titles.end() ? title->second
                                      : name == summary.interval_words
                                          ? name
                                          : title_of({.name = name, .values = {}}),
                             .numeric = numeric,
                             .about = fmt::format("column {} of the results", name)});
  }
  for (std::size_t r = 0; r < summary.best.size(); ++r) {
    const std::vector<SqlValue>& row = summary.best[r];
    std::vector<PageCell> cells;
    for (const std::size_t c : order) {
      const std::optional<double> number = as_number(row[c]);
      const std::string& column = summary.columns[c];
      if (column == summary.interval_words && plain.intervals[r]) {
        const NumberInterval& interval = *plain.intervals[r];
        cells.push_back(PageCell::text(number_of_column(summary.objective.column, interval.low) +
                                       "\u00a0to\u00a0" +
                                       number_of_column(summary.objective.column, interval.high)));
        continue;
      }
      if (const auto seconds = seconds_of(summary, c)) {
        const std::optional<double> time = as_number(row[*seconds]);
        cells.push_back(time ? PageCell::number(page_setting(*time), *time) : PageCell::unknown());
        continue;
      }
      // A seed is a name: every digit of it is needed to have the point again.
      const auto words = [&] {
        return column == "seed" ? text_of(row[c]) : number_of_column(column, *number);
      };
      const std::string mark = column == "needed_memory_gib" && !plain.fits[r] ? " (too much)" : "";
      cells.push_back(number ? PageCell::number(words() + mark, *number)
                             : PageCell::key(text_of(row[c])));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// "MFU over fabric, NIC bandwidth, tensor parallelism and 3 more".
std::string sweep_title(const Sweep& sweep, const SweepSummary& summary) {
  constexpr std::size_t kNamedAxes = 4;
  const std::map<std::string, std::string> titles = setting_titles(sweep);
  std::vector<std::string> names;
  for (const SweepAxis& axis : sweep.axes) {
    for (std::size_t v = 0; v < axis.variables.size(); ++v) {
      if (takes_several(axis, v)) names.push_back(in_sentence(titles.at(axis.variables[v].name)));
    }
  }
  if (names.empty()) return objective_title(summary);
  const std::size_t shown = names.size() > kNamedAxes ? kNamedAxes - 1 : names.size();
  std::string out = objective_title(summary) + " over ";
  for (std::size_t i = 0; i < shown; ++i) {
    out += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return shown < names.size() ? out + fmt::format(" and {} more", names.size() - shown) : out;
}

/// " Time to restart and hot spares change together, ...": of axes of several variables.
std::string together_words(const Sweep& sweep) {
  const std::map<std::string, std::string> titles = setting_titles(sweep);
  std::string out;
  for (const SweepAxis& axis : sweep.axes) {
    if (axis.variables.size() < 2) continue;
    std::string names;
    for (std::size_t v = 0; v < axis.variables.size(); ++v) {
      const bool last = v + 1 == axis.variables.size();
      const std::string& title = titles.at(axis.variables[v].name);
      names += v == 0 ? title : (last ? " and " : ", ") + in_sentence(title);
    }
    out += fmt::format(" {} change together: what one shows may be the work of another.", names);
  }
  return out;
}

}  // namespace

AnswerBasis sweep_basis(const Sweep& sweep, const SweepSummary& summary,
                        const PresetStore& presets) {
  AnswerBasis basis{.title = "What was swept",
                    .simulated = {{"Scenario", sweep.scenario_file}},
                    .written = std::make_shared<const nlohmann::ordered_json>(sweep.scenario),
                    .presets = &presets};
  const std::map<std::string, std::string> titles = setting_titles(sweep);
  for (const SweepAxis& axis : sweep.axes) {
    for (std::size_t v = 0; v < axis.variables.size(); ++v) {
      const SweepVariable& variable = axis.variables[v];
      basis.simulated.push_back({titles.at(variable.name), values_words(axis, v)});
      const std::string key = variable.at.substr(variable.at.rfind('/') + 1);
      nlohmann::ordered_json of_key = nlohmann::ordered_json::object();
      of_key[key] = listed_values(axis, v);
      const std::vector<NamedPreset> named = presets_named(of_key, presets);
      basis.named.insert(basis.named.end(), named.begin(), named.end());
    }
  }
  for (const DerivedValue& value : sweep.derived) {
    if (value.is) basis.simulated.push_back({titles.at(value.name), "follows: " + value.is->text});
    if (!value.from.empty()) {
      basis.simulated.push_back({titles.at(value.name), "as the scenario has it: " + value.from});
    }
  }
  for (const Expression& constraint : sweep.constraints) {
    basis.simulated.push_back({"Only points where", constraint.text});
  }
  if (summary.best.empty()) return basis;
  const JobFile file = read_job_file(sweep.scenario_file, best_scenario(sweep, summary), presets);
  basis.assumptions = complete_measured(file.draft, presets, {}).assumptions;
  if (sweep.is_run && file.run) {
    basis.assumptions.insert(basis.assumptions.end(), file.run->assumptions.begin(),
                             file.run->assumptions.end());
  }
  return basis;
}

std::optional<Behind> behind_best(const Sweep& sweep, const SweepSummary& summary,
                                  const PresetStore& presets) {
  if (summary.best.empty()) return std::nullopt;
  return Behind(
      sweep.scenario_file,
      answer_text(sweep.scenario_file, best_scenario(sweep, summary), presets,
                  {.folding = sweep.folding, .allow_oom = sweep.allow_oom, .full_fabric = false}),
      presets);
}

std::string sweep_page(const Sweep& sweep, const SweepSummary& summary, const AnswerBasis& basis,
                       const Behind* behind) {
  Page page("Sweep", sweep_title(sweep, summary));
  if (behind != nullptr) behind->open_figures(page);
  if (!sweep.about.empty()) page.about(sweep.about);
  const bool larger = summary.objective.larger_is_better;
  if (summary.best.empty()) {
    page.headline(escaped("No point has an answer."));
  } else {
    const std::optional<NumberInterval>& interval = summary.intervals.front();
    page.headline(
        escaped(mean_sentence(summary)) +
        escaped(fmt::format(
            "{} {}{} is ",
            summary.best_repeats > 1 ? (larger ? "Its largest" : "Its smallest")
            : larger                 ? "The largest"
                                     : "The smallest",
            in_sentence(objective_title(summary)),
            summary.too_large > 0 && summary.fits.front() ? " of what fits in memory" : "")) +
        strong(best_text(summary)) +
        escaped(interval ? fmt::format(" ({} {} to {})", summary.interval_words,
                                       number_of_column(summary.objective.column, interval->low),
                                       number_of_column(summary.objective.column, interval->high))
                         : std::string()) +
        escaped(", at " + best_points(summary) + ".") +
        escaped(summary.fits.front() ? "" : " No point fits in memory.") +
        limit_sentence(summary.limit_warning));
  }
  const auto count = [](std::size_t n) { return grouped(static_cast<double>(n)); };
  std::vector<PageFigure> figures;
  if (!summary.best.empty()) figures.push_back(best_figure(summary));
  figures.insert(figures.end(), {{.value = count(summary.points), .label = "points"},
                                 {.value = count(summary.ok), .label = "with an answer"},
                                 {.value = count(summary.failed), .label = "without one"}});
  if (summary.too_large > 0) {
    figures.push_back({.value = count(summary.too_large), .label = "too large for memory"});
  }
  page.figures(figures);
  if (!summary.best.empty()) {
    const SweepPoints points = read_points(sweep, summary);
    page.section("The points");
    add_parallel(page, those_that_fit(points), points.all, larger);
    add_best_bars(page, summary);
    page.table(best_rows(sweep, summary));
    add_sweep_fronts(page, points, larger);
    if (!points.settings.empty()) {
      page.section(title_of(points.objective) + " over each axis",
                   "A dot for each point; the dashed line joins the best at each value." +
                       together_words(sweep));
      page.begin_row();
      for (std::size_t s = 0; s < std::min(points.settings.size(), kMostMultiples); ++s) {
        add_multiple(page, points, points.settings[s], larger);
      }
      page.end_row();
      if (points.settings.size() > kMostMultiples) {
        page.paragraph(escaped(fmt::format("Axes that are not drawn: {} more, in the database.",
                                           points.settings.size() - kMostMultiples)));
      }
    }
  }
  if (summary.failed > 0) {
    page.section("Without an answer");
    page.paragraph(escaped(fmt::format("{} points; the first, point {}: {}", count(summary.failed),
                                       summary.first_failed, summary.first_error)));
  }
  add_basis(page, basis);
  if (behind != nullptr) behind->add_to(page);
  page.foot(fmt::format("Sweep: {}. Scenario: {}. Results: {}.", sweep.file, sweep.scenario_file,
                        summary.database));
  return page.html(chart_library());
}

}  // namespace lockstep
