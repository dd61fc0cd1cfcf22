#include "tools/views/report/run_charts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/console/table.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// Where an axis of durations has its ticks, in seconds.
constexpr std::array kIntervalTicks{1.0,     5.0,     10.0,   30.0,    60.0,    120.0,
                                    300.0,   600.0,   1200.,  1800.,   3600.0,  7200.0,
                                    14400.0, 28800.0, 86400., 172800., 345600., 604800.};

double interval_s(const IntervalPoint& point) { return four_digits(point.interval.base_units()); }
/// Per cent with three decimals: near the optimum the curve is flat.
double curve_percent(double share) { return shown_digits(100 * share, 5); }

struct NamedPoint {
  const char* name;
  const char* symbol;
  const char* colour;
  int size;  ///< smaller ones lie on larger ones where they meet
  const IntervalPoint& point;
};
std::array<NamedPoint, 4> named_points(const IntervalOptimum& optimum) {
  return {{{"Young 1974", "triangle", "@colour-4", 24, optimum.young},
           {"Daly 2006", "diamond", "@colour-2", 18, optimum.daly},
           {"given", "rect", "@colour-1", 13, optimum.given},
           {"best simulated", "circle", "@accent", 9, optimum.best}}};
}

json curve_series(const IntervalOptimum& optimum) {
  json low = json::array(), width = json::array(), mean = json::array();
  for (const IntervalPoint& point : optimum.curve) {
    const double at = interval_s(point);
    low.push_back({curve_percent(point.goodput - point.half_width), at});
    width.push_back({curve_percent(2 * point.half_width), at});
    mean.push_back({at, curve_percent(point.goodput), curve_percent(point.half_width)});
  }
  const json stacked{{"type", "line"},
                     {"stack", "band"},
                     {"silent", true},
                     {"showSymbol", false},
                     {"lineStyle", {{"width", 0}}},
                     {"encode", {{"x", 1}, {"y", 0}}},
                     {"tooltip", {{"show", false}}}};
  json band = stacked, base = stacked;
  base["data"] = low;
  band.update({{"data", width},
               {"itemStyle", {{"color", "@colour-0"}}},
               {"areaStyle", {{"color", "@colour-0"}, {"opacity", 0.22}}}});
  const json curve{{"type", "line"},
                   {"name", "goodput"},
                   {"symbolSize", 5},
                   {"lineStyle", {{"width", 2}, {"color", "@colour-0"}}},
                   {"itemStyle", {{"color", "@colour-0"}}},
                   {"data", mean}};
  json series = json::array({base, band, curve});
  for (const NamedPoint& each : named_points(optimum)) {
    series.push_back({{"type", "scatter"},
                      {"name", each.name},
                      {"symbol", each.symbol},
                      {"symbolSize", each.size},
                      {"z", 5},
                      {"itemStyle", {{"color", each.colour}, {"opacity", 1}}},
                      {"data",
                       {{interval_s(each.point), curve_percent(each.point.goodput),
                         curve_percent(each.point.half_width)}}}});
  }
  return series;
}

json interval_axis(const IntervalOptimum& optimum) {
  const auto [least, most] = std::ranges::minmax(
      optimum.curve, {}, [](const IntervalPoint& point) { return point.interval; });
  const double first = interval_s(least), last = interval_s(most);
  json ticks = json::array();
  for (const double tick : kIntervalTicks) {
    if (first <= tick && tick <= last) ticks.push_back(tick);
  }
  return {
      {"type", "log"},
      {"min", first},
      {"max", last},
      {"axisTick", {{"customValues", ticks}}},
      {"splitLine", {{"show", false}}},
      {"axisLabel", {{"customValues", ticks}, {"formatter", "@interval"}, {"hideOverlap", true}}}};
}

PageTable interval_table(const IntervalOptimum& optimum) {
  PageTable table{.columns = {{.title = "Checkpoint interval"},
                              {.title = "Every", .numeric = true},
                              {.title = "Goodput", .numeric = true},
                              {.title = "Overhead",
                               .numeric = true,
                               .about = "wall time that does not advance training"},
                              {.title = "Against the one given", .numeric = true}}};
  std::array<NamedPoint, 4> points = named_points(optimum);
  const std::array order{3, 2, 0, 1};
  for (const int i : order) {
    const NamedPoint& each = points[static_cast<std::size_t>(i)];
    const double seconds = each.point.interval.base_units();
    const double gain = each.point.goodput - optimum.given.goodput;
    // What rounds to nothing has no sign of its own.
    const double shown = std::round(1e4 * gain) / 100 + 0.0;
    table.rows.push_back(
        {PageCell::text(each.name), PageCell::number(page_setting(seconds), seconds),
         PageCell::number(percent_with_interval(
                              {.mean = each.point.goodput, .half_width = each.point.half_width}),
                          each.point.goodput),
         PageCell::number(page_percent(1 - each.point.goodput, 2), 1 - each.point.goodput),
         PageCell::number(fmt::format("{:+.2f}\u00a0points", shown), gain)});
  }
  return table;
}

}  // namespace

void add_interval_curve(Page& page, const CampaignResult& result) {
  const IntervalOptimum& optimum = *result.optimum;
  std::string lead =
      "Every interval meets the same failures, so differences are surer than the interval of each "
      "mean. Young's and Daly's closed forms are simulated too, as they come out; the best is "
      "of whole numbers of steps.";
  if (const auto& tiers = result.plan.campaign.tiers; tiers.size() > 1) {
    lead += fmt::format(" It is the interval of checkpoints to {}; all others keep theirs.",
                        tiers.front().name);
  }
  page.section("Checkpoint interval", lead);
  const json options{
      {"grid", plot_grid(40, 4)},
      {"legend",
       {{"top", 0},
        {"left", 0},
        {"icon", nullptr},
        {"data", {"best simulated", "given", "Young 1974", "Daly 2006"}}}},
      {"tooltip", {{"formatter", "@point"}, {"confine", true}}},
      {"xAxis", interval_axis(optimum)},
      {"yAxis", {{"type", "value"}, {"scale", true}, {"axisLabel", {{"formatter", "{value} %"}}}}},
      {"series", curve_series(optimum)}};
  page.chart(
      {.title = "Goodput over the time between checkpoints",
       .about = "The band is the 95 % interval of the mean. The axis of intervals is "
                "logarithmic, that of goodput does not begin at 0.",
       .summary = fmt::format("Curve of goodput over the checkpoint interval, best at {} with {}.",
                              page_setting(optimum.best.interval.base_units()),
                              page_percent(optimum.best.goodput, 1))},
      options);
  page.table(interval_table(optimum));
}

}  // namespace lockstep
