#include "tools/views/plan/plan_charts.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_words.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr double kLargestDot = 34, kSmallestDot = 8;  // px, by energy

/// The unit that an axis of a measure is in.
AxisUnit measure_unit(std::size_t measure, double largest) {
  if (measure == 0) return long_time_unit(largest);
  if (measure == 1) {
    AxisUnit unit = count_unit(largest);
    unit.name += unit.name.empty() ? "USD" : " USD";
    return unit;
  }
  constexpr double kWattHour = 3600;
  AxisUnit unit = count_unit(largest / kWattHour);
  // Watt-hours have prefixes where counts have letters.
  const std::string letter = unit.name == "k" ? "k" : unit.name == "B" ? "G" : unit.name;
  return {.size = unit.size * kWattHour, .name = letter + "Wh"};
}

std::string colour_name(std::size_t candidate) {
  return candidate < kPageColours ? fmt::format("@colour-{}", candidate) : "@others";
}

std::vector<std::size_t> possible_candidates(const PlanAnswer& answer) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < answer.report.results.size(); ++i) {
    if (answer.result(i).model.impossible.empty()) out.push_back(i);
  }
  return out;
}

/// How many of the samples are given up at the most, so that nine of ten cases have an end.
constexpr double kBeyondRange = 0.05;

/// The upper end of nine of ten cases as it is drawn: where runs that are given up reach into them,
/// after ten times the time, the most of those that are done. Axes would have room for little else.
double drawn_end(const PlanResult& result, const SampleMean& spread, double PlanOutcome::* number) {
  if (result.unfinished <= kBeyondRange) return spread.high;
  double most = result.expected.*number;
  for (const PlanOutcome& sample : result.samples) {
    if (sample.finished) most = std::max(most, sample.*number);
  }
  return std::min(most, spread.high);
}

double largest_of(const PlanAnswer& answer, const SampleMean PlanResult::* spread,
                  double PlanOutcome::* number) {
  double largest = 0;
  for (const std::size_t i : possible_candidates(answer)) {
    const PlanResult& result = answer.result(i);
    largest = std::max(largest, drawn_end(result, result.*spread, number));
  }
  return largest;
}

json value_axis(const AxisUnit& unit, bool of_values) {
  return {{"type", "value"},
          {"scale", true},
          {"splitLine", {{"show", of_values}}},
          {"axisLabel", {{"formatter", "{value} " + unit.name}, {"hideOverlap", true}}}};
}

json thin_line(const std::string& name, const std::string& colour, const char* kind, json data) {
  return {{"type", "line"},
          {"name", name},
          {"silent", true},
          {"showSymbol", false},
          {"lineStyle", {{"width", 1.5}, {"type", kind}, {"color", colour}, {"opacity", 0.7}}},
          {"itemStyle", {{"color", colour}}},
          {"tooltip", {{"show", false}}},
          {"data", std::move(data)}};
}

/// How far an axis goes: well past the limit and what is expected of all candidates. Where runs
/// fail for long nine of ten cases reach much further, and axes would have room for little else.
double axis_end(const PlanAnswer& answer, double most, std::optional<double> limit,
                double PlanOutcome::* number) {
  constexpr double kPastExpected = 2, kPastLimit = 1.2;
  double expected = 0;
  for (const std::size_t i : possible_candidates(answer)) {
    expected = std::max(expected, answer.result(i).expected.*number);
  }
  const double least = std::max(kPastExpected * expected, kPastLimit * limit.value_or(0));
  return std::min(most, shown_digits(least, 2));
}

/// Ends the axis where less is drawn than there is.
void end_axis(json& axis, double end, double most, const AxisUnit& unit) {
  if (end >= most) return;
  axis["max"] = shown_digits(end / unit.size, 3);
  axis["axisLabel"]["showMaxLabel"] = false;  // it is no round number
}

/// Text of a candidate under the pointer.
json candidate_words(const PlanAnswer& answer, std::size_t i) {
  const PlanResult& r = answer.result(i);
  return {answer.candidate(i).name,
          plan_time_range(r),
          is_priced(answer.candidate(i)) ? plan_money_range(r) : "no prices",
          plan_energy_range(r),
          "up to " + plan_power_range(r.peak_w),
          fmt::format("keeps the limits in {}", page_percent(r.chances.all))};
}

/// Limits as lines across what the candidates span.
void add_limit_lines(const PlanAnswer& answer, const AxisUnit& time, const AxisUnit& price,
                     double most_s, double most_price, json& series) {
  const PlanLimits& limits = answer.spec.limits;
  if (limits.time) {
    const double at = four_digits(limits.time->base_units() / time.size);
    series.push_back(thin_line("deadline", "@soft", "dashed",
                               {{at, 0}, {at, four_digits(most_price / price.size)}}));
  }
  if (limits.usd && answer.spec.all_priced()) {
    const double at = four_digits(*limits.usd / price.size);
    series.push_back(
        thin_line("budget", "@soft", "dotted", {{0, at}, {four_digits(most_s / time.size), at}}));
  }
}

/// The second measure of a candidate with every input at its median: money, or energy if prices are
/// missing.
double price_point(const PlanAnswer& answer, const PlanResult& result) {
  return answer.spec.all_priced() ? result.expected.usd : result.expected.energy_j;
}

/// The candidates that no other one beats in both measures of the chart, from the fastest to the
/// slowest. Those that are on the plan's front for a third measure alone would bend the line back.
json front_line(const PlanAnswer& answer, const AxisUnit& time, const AxisUnit& price) {
  std::vector<double> times, prices;
  for (const std::size_t i : possible_candidates(answer)) {
    times.push_back(answer.result(i).expected.time_s);
    prices.push_back(price_point(answer, answer.result(i)));
  }
  json points = json::array();
  for (const std::size_t i : front_of(times, prices)) {
    points.push_back({four_digits(times[i] / time.size), four_digits(prices[i] / price.size)});
  }
  return points;
}

/// How many of so many samples are not drawn: the last few are often far away.
std::size_t left_out(std::size_t samples) {
  constexpr std::size_t kOneOf = 33;
  return samples / kOneOf;
}

/// Share of the samples up to each of them, or of many up to each of their quantiles, in steps;
/// those that are given up are no end.
json cumulative(const PlanResult& result, double PlanOutcome::* number, double unit) {
  constexpr std::size_t kPoints = 100;
  std::vector<double> values;
  values.reserve(result.samples.size());
  for (const PlanOutcome& sample : result.samples) {
    values.push_back(sample.finished ? sample.*number : std::numeric_limits<double>::infinity());
  }
  std::ranges::sort(values);
  json out = json::array();
  const std::size_t n = values.size(), shown = n - left_out(n);
  const std::size_t points = std::min(shown, kPoints);
  for (std::size_t k = 0; k < points; ++k) {
    const std::size_t at = points == 1 ? 0 : k * (shown - 1) / (points - 1);
    if (!std::isfinite(values[at])) break;
    if (k == 0) out.push_back({four_digits(values[at] / unit), 0});
    const double share = static_cast<double>(at + 1) / static_cast<double>(n);
    out.push_back({four_digits(values[at] / unit), four_digits(100 * share)});
  }
  return out;
}

json chance_options(const PlanAnswer& answer, std::size_t measure,
                    const SampleMean PlanResult::* of, std::optional<double> limit) {
  const auto number = plan_measures()[measure].number;
  const double most = largest_of(answer, of, number);
  const double end = axis_end(answer, most, limit, number);
  const AxisUnit unit = measure_unit(measure, end);
  json axis = value_axis(unit, false);
  end_axis(axis, end, most, unit);
  json series = json::array();
  for (const std::size_t i : possible_candidates(answer)) {
    const std::string& name = answer.candidate(i).name;
    json data = cumulative(answer.result(i), number, unit.size);
    // Of lines that lie on one another only the last is seen: they have one colour, that of the
    // first.
    const auto same =
        std::ranges::find_if(series, [&](const json& line) { return line["data"] == data; });
    const std::string colour =
        same == series.end() ? colour_name(i) : (*same)["itemStyle"]["color"].get<std::string>();
    series.push_back({{"type", "line"},
                      {"name", name},
                      {"showSymbol", false},
                      {"step", "end"},
                      {"lineStyle", {{"width", 2}, {"color", colour}}},
                      {"itemStyle", {{"color", colour}}},
                      {"data", std::move(data)}});
  }
  json names = json::array();
  for (const json& line : series) names.push_back(line["name"]);
  if (limit) {
    const double at = four_digits(*limit / unit.size);
    series.push_back(thin_line("limit", "@soft", "dashed", {{at, 0}, {at, 100}}));
  }
  return {
      {"grid", plot_grid(40, 4)},
      {"legend", {{"top", 0}, {"left", 0}, {"data", names}}},
      {"tooltip", {{"trigger", "axis"}, {"valueFormatter", "@percent"}, {"confine", true}}},
      {"xAxis", axis},
      {"yAxis",
       {{"type", "value"}, {"min", 0}, {"max", 100}, {"axisLabel", {{"formatter", "{value} %"}}}}},
      {"series", series}};
}

/// The bars of the tornado: an invisible one up to the nearer end, then one to each side of the
/// expected value.
struct TornadoBars {
  json base = json::array(), near = json::array(), far = json::array();
  json names = json::array(), words = json::array();
  double least = std::numeric_limits<double>::infinity(), most = 0;
};
TornadoBars tornado_bars(const PlanAnswer& answer, std::size_t measure, double unit) {
  const PlanResult& result = answer.result(*answer.shown());
  const double expected = result.expected.*plan_measures()[measure].number;
  TornadoBars out;
  for (const SwingRow& row : widest_swings(result, measure)) {
    const double low = std::min(row.at_low, row.at_high), high = std::max(row.at_low, row.at_high);
    const double middle = std::clamp(expected, low, high);
    const bool rises = row.at_low < row.at_high;
    const auto part = [&](double length, bool of_low) {
      return json{{"value", four_digits(length / unit)},
                  {"itemStyle", {{"color", of_low ? "@colour-0" : "@colour-1"}}}};
    };
    out.names.push_back(row.info->title);
    out.base.push_back(four_digits(low / unit));
    out.near.push_back(part(middle - low, rises));
    out.far.push_back(part(high - middle, !rises));
    out.words.push_back({std::string(row.info->title), std::string(row.info->about),
                         fmt::format("{} times: {}", significant(row.swing->low),
                                     measure_text(measure, row.at_low)),
                         fmt::format("{} times: {}", significant(row.swing->high),
                                     measure_text(measure, row.at_high))});
    out.least = std::min(out.least, low / unit);
    out.most = std::max(out.most, high / unit);
  }
  return out;
}

/// A series without bars, for its name and colour in the legend: each bar has a colour of its own.
json legend_entry(const char* name, const char* colour) {
  return {{"type", "bar"},
          {"stack", "bars"},
          {"name", name},
          {"itemStyle", {{"color", colour}}},
          {"data", json::array()}};
}

json bar_series(const char* name, json data) {
  return {{"type", "bar"},
          {"stack", "bars"},
          {"name", name},
          {"barWidth", "62%"},
          {"data", std::move(data)}};
}

}  // namespace

namespace {

/// What the broken lines of the limits are; empty where there are none.
std::string limit_words(const PlanAnswer& answer) {
  const PlanLimits& limits = answer.spec.limits;
  const bool budget = limits.usd && answer.spec.all_priced();
  if (limits.time && budget) return "; dashed is the deadline, dotted the budget";
  return limits.time ? "; dashed is the deadline" : budget ? "; dotted is the budget" : "";
}

/// Whether candidates of the chart have the same line.
bool have_one_line(const json& options) {
  const json& lines = options["series"];
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto before = lines.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(lines.begin(), before,
                    [&](const json& line) { return line["data"] == lines[i]["data"]; })) {
      return true;
    }
  }
  return false;
}

/// What lines of samples are: "Share of samples, without the last few; dashed is the deadline."
std::string share_words(const PlanAnswer& answer, const json& options, bool limited,
                        std::string_view limit) {
  std::string out = "Share of samples";
  if (left_out(static_cast<std::size_t>(answer.spec.samples)) > 0) out += ", without the last few";
  if (limited) out += fmt::format("; dashed is the {}", limit);
  return out + (have_one_line(options) ? ". Names of one colour have the same line." : ".");
}

/// What lines that have no end say; empty where there are none.
std::string open_ended(const PlanAnswer& answer) {
  std::string names;
  for (const std::size_t i : possible_candidates(answer)) {
    if (answer.result(i).unfinished <= kBeyondRange) continue;
    names += (names.empty() ? "" : ", ") + answer.candidate(i).name;
  }
  if (names.empty()) return names;
  return " (those of " + names + " have no end: of more than one in twenty runs there is none)";
}

}  // namespace

void add_front_chart(Page& page, const PlanAnswer& answer) {
  const double most_s = largest_of(answer, &PlanResult::time_s, &PlanOutcome::time_s);
  // The second axis is money, or energy if prices are missing.
  const bool priced = answer.spec.all_priced();
  const SampleMean PlanResult::* const of = priced ? &PlanResult::usd : &PlanResult::energy_j;
  const char* const words_of = priced ? "money" : "energy";
  double PlanOutcome::* const number = priced ? &PlanOutcome::usd : &PlanOutcome::energy_j;
  const double most_price = largest_of(answer, of, number);
  const double most_j = largest_of(answer, &PlanResult::energy_j, &PlanOutcome::energy_j);
  const PlanLimits& limits = answer.spec.limits;
  const double end_s = axis_end(
      answer, most_s, limits.time ? std::optional(limits.time->base_units()) : std::nullopt,
      &PlanOutcome::time_s);
  const double end_price =
      axis_end(answer, most_price, priced ? limits.usd : std::optional<double>(), number);
  const AxisUnit time = measure_unit(0, end_s), price = measure_unit(priced ? 1 : 2, end_price);
  json across = value_axis(time, false), up = value_axis(price, true);
  end_axis(across, end_s, most_s, time);
  end_axis(up, end_price, most_price, price);
  json series = json::array(), words = json::array(), legend = json::array();
  for (const std::size_t i : possible_candidates(answer)) {
    const PlanResult& r = answer.result(i);
    const std::string& name = answer.candidate(i).name;
    const auto x = [&](double s) { return four_digits(s / time.size); };
    const auto y = [&](double value) { return four_digits(value / price.size); };
    const SampleMean& spread = r.*of;
    const double point = price_point(answer, r);
    // One line along both intervals: out and back through the middle.
    series.push_back(thin_line(name, colour_name(i), "solid",
                               {{x(r.time_s.low), y(point)},
                                {x(drawn_end(r, r.time_s, &PlanOutcome::time_s)), y(point)},
                                {x(r.expected.time_s), y(point)},
                                {x(r.expected.time_s), y(spread.low)},
                                {x(r.expected.time_s), y(drawn_end(r, spread, number))}}));
    const double size = kLargestDot * std::sqrt(r.expected.energy_j / most_j);
    series.push_back({{"type", "scatter"},
                      {"name", name},
                      {"symbol", answer.report.choice == i ? "diamond" : "circle"},
                      {"symbolSize", std::max(kSmallestDot, std::round(size))},
                      {"z", answer.report.choice == i ? 6 : 5},  // no other dot hides it
                      {"itemStyle", {{"color", colour_name(i)}, {"opacity", 0.85}}},
                      {"data", {{x(r.expected.time_s), y(point), words.size()}}}});
    words.push_back(candidate_words(answer, i));
    legend.push_back(name);
  }
  series.push_back(thin_line("front", "@soft", "solid", front_line(answer, time, price)));
  add_limit_lines(answer, time, price, end_s, end_price, series);
  const json options{{"lockstep", {{"words", words}}},
                     {"grid", plot_grid(40, 4)},
                     {"legend", {{"top", 0}, {"left", 0}, {"data", legend}}},
                     {"tooltip", {{"formatter", "@words"}, {"confine", true}}},
                     {"xAxis", across},
                     {"yAxis", up},
                     {"series", series}};
  page.chart(
      {.title = fmt::format("Time against {}", words_of),
       .about = fmt::format(
           "Dots have every input at its median, and are larger with more energy; lines hold nine "
           "of ten samples{}. The line joins those that no other beats in both{}. A diamond is "
           "recommended.",
           open_ended(answer), limit_words(answer)),
       .summary = fmt::format("{} candidates by time and {}.", legend.size(), words_of),
       .height_px = 420},
      options);
}

void add_chance_charts(Page& page, const PlanAnswer& answer) {
  const PlanLimits& limits = answer.spec.limits;
  page.begin_row();
  const json by_time =
      chance_options(answer, 0, &PlanResult::time_s,
                     limits.time ? std::optional(limits.time->base_units()) : std::nullopt);
  page.chart({.title = "How likely it is done by then",
              .about = share_words(answer, by_time, limits.time.has_value(), "deadline"),
              .summary = "A rising line for each candidate over time."},
             by_time);
  if (answer.spec.all_priced()) {
    const json by_money = chance_options(answer, 1, &PlanResult::usd, limits.usd);
    page.chart({.title = "How likely it costs no more",
                .about = share_words(answer, by_money, limits.usd.has_value(), "budget"),
                .summary = "A rising line for each candidate over money."},
               by_money);
  }
  page.end_row();
}

void add_tornado_chart(Page& page, const PlanAnswer& answer, std::size_t measure) {
  const PlanResult& result = answer.result(*answer.shown());
  const std::vector<SwingRow> rows = widest_swings(result, measure);
  if (rows.empty()) return;
  const AxisUnit unit = measure_unit(measure, std::max(rows.front().at_low, rows.front().at_high));
  TornadoBars bars = tornado_bars(answer, measure, unit.size);
  const double room = 0.06 * (bars.most - bars.least);
  json base = bar_series("base", bars.base);
  base.update({{"silent", true},
               {"itemStyle", {{"color", "transparent"}}},
               {"tooltip", {{"show", false}}}});
  json axis = value_axis(unit, true);
  axis.update({{"min", shown_digits(std::max(0.0, bars.least - room), 3)},
               {"max", shown_digits(bars.most + room, 3)}});
  axis["axisLabel"]["showMinLabel"] = false;
  axis["axisLabel"]["showMaxLabel"] = false;
  constexpr const char* kAtLow = "factor at its 5th percentile";
  constexpr const char* kAtHigh = "at its 95th";
  const json options{{"lockstep", {{"words", bars.words}}},
                     {"grid", plot_grid(40, 4)},
                     {"legend", {{"top", 0}, {"left", 0}, {"data", {kAtLow, kAtHigh}}}},
                     {"tooltip", {{"formatter", "@words"}, {"confine", true}}},
                     {"xAxis", axis},
                     {"yAxis",
                      {{"type", "category"},
                       {"inverse", true},
                       {"data", bars.names},
                       {"axisLine", {{"show", false}}},
                       {"axisLabel", {{"interval", 0}, {"width", 140}, {"overflow", "break"}}}}},
                     {"series",
                      {base, bar_series("lower", bars.near), bar_series("higher", bars.far),
                       legend_entry(kAtLow, "@colour-0"), legend_entry(kAtHigh, "@colour-1")}}};
  const std::string title(plan_measures()[measure].title);
  page.chart({.title = title,
              .about = "From the 5th to the 95th percentile of one input, the others at their "
                       "medians.",
              .summary = fmt::format("Bars of {} by uncertain input, widest first: {}.", title,
                                     rows.front().info->title),
              .height_px = 96 + 38 * static_cast<int>(rows.size())},
             options);
}

}  // namespace lockstep
