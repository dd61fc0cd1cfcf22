#include "tools/lockstep/report/run_charts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/console/table.hpp"
#include "tools/lockstep/report/chart_options.hpp"
#include "tools/lockstep/report/page.hpp"
#include "tools/lockstep/report/page_numbers.hpp"
#include "tools/lockstep/report/run_words.hpp"

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
    table.rows.push_back(
        {PageCell::text(each.name), PageCell::number(page_setting(seconds), seconds),
         PageCell::number(percent_with_interval(
                              {.mean = each.point.goodput, .half_width = each.point.half_width}),
                          each.point.goodput),
         PageCell::number(page_percent(1 - each.point.goodput, 2), 1 - each.point.goodput),
         PageCell::number(fmt::format("{:+.2f}\u00a0points", 100 * gain), gain)});
  }
  return table;
}

Html goodput_cell(const SampleMean& goodput, double least, double most) {
  const double share = most > least ? (goodput.mean - least) / (most - least) : 1;
  return shaded(page_percent(goodput.mean, 1), share, goodput.mean >= kMarkedGoodput);
}

/// A number of a grid's points beside goodput.
struct PageMeasure {
  std::string_view name, title;
  std::string (*text)(double);
};
constexpr std::array kPageMeasures{PageMeasure{"wall_s", "Wall time", page_duration},
                                   PageMeasure{"energy_j", "Energy", page_energy},
                                   PageMeasure{"price_usd", "Rent", page_usd},
                                   PageMeasure{"owned_usd", "Cost of owning", page_usd},
                                   PageMeasure{"purchase.usd", "Cost as bought", page_usd}};

/// Those that any of the points has.
std::vector<PageMeasure> measures_of(const GoodputGrid& grid) {
  std::vector<PageMeasure> out;
  std::ranges::copy_if(kPageMeasures, std::back_inserter(out), [&](const PageMeasure& each) {
    return std::ranges::any_of(
        grid.points, [&](const GridPoint& point) { return point.number(each.name).has_value(); });
  });
  return out;
}

PageCell measure_cell(const PageMeasure& of, const GridPoint& point) {
  const std::optional<double> number = point.number(of.name);
  return number ? PageCell::number(of.text(*number), *number) : PageCell::text("–");
}

PageTable grid_list(const GoodputGrid& grid, double least, double most) {
  PageTable table{.columns = {{.title = grid.axes[0].path},
                              {.title = "Goodput", .numeric = true},
                              {.title = "95 % interval", .numeric = true},
                              {.title = "5th percentile", .numeric = true},
                              {.title = "95th percentile", .numeric = true}}};
  const std::vector<PageMeasure> measures = measures_of(grid);
  for (const PageMeasure& of : measures)
    table.columns.push_back({.title = std::string(of.title), .numeric = true});
  for (std::size_t i = 0; i < grid.points.size(); ++i) {
    const SampleMean& each = grid.points[i].goodput;
    std::vector<PageCell> cells{
        PageCell::text(grid.axes[0].values[i]),
        {.content = goodput_cell(each, least, most), .sort = each.mean},
        PageCell::number("± " + page_percent(each.half_width, 2), each.half_width),
        PageCell::number(page_percent(each.low, 1), each.low),
        PageCell::number(page_percent(each.high, 1), each.high)};
    for (const PageMeasure& of : measures) cells.push_back(measure_cell(of, grid.points[i]));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// The first axis down, the second across, of what `cell_of` makes of a point.
template <class CellOf>
PageTable grid_map(const GoodputGrid& grid, std::string_view title, CellOf cell_of) {
  const std::vector<std::string>& columns = grid.axes[1].values;
  PageTable table{.columns = {{.title = fmt::format("{}{} ↓  {} →", title, grid.axes[0].path,
                                                    grid.axes[1].path)}}};
  for (const std::string& value : columns)
    table.columns.push_back({.title = value, .numeric = true});
  for (std::size_t row = 0; row < grid.axes[0].values.size(); ++row) {
    std::vector<PageCell> cells{PageCell::text(grid.axes[0].values[row])};
    for (std::size_t column = 0; column < columns.size(); ++column) {
      cells.push_back(cell_of(grid.points[row * columns.size() + column]));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Of goodput, and of every other number that is not the same in all points.
void add_grid_maps(Page& page, const GoodputGrid& grid, double least, double most) {
  page.table(grid_map(grid, "", [&](const GridPoint& point) {
    return PageCell{.content = goodput_cell(point.goodput, least, most),
                    .sort = point.goodput.mean};
  }));
  for (const PageMeasure& of : measures_of(grid)) {
    const auto number = [&](const GridPoint& point) { return point.number(of.name); };
    const auto same = [&](const GridPoint& point) {
      return number(point) == number(grid.points.front());
    };
    if (std::ranges::all_of(grid.points, same)) continue;
    page.table(grid_map(grid, fmt::format("{}: ", of.title),
                        [&](const GridPoint& point) { return measure_cell(of, point); }));
  }
}

}  // namespace

void add_interval_curve(Page& page, const CampaignResult& result) {
  const IntervalOptimum& optimum = *result.optimum;
  page.section("Checkpoint interval",
               "Every interval meets the same failures, so differences are surer than the interval "
               "of each mean. Young's and Daly's closed forms are simulated too.");
  const json options{
      {"grid", plot_grid(40, 4)},
      {"legend",
       {{"type", "scroll"},
        {"top", 0},
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
                "logarithmic.",
       .summary = fmt::format("Curve of goodput over the checkpoint interval, best at {} with {}.",
                              page_setting(optimum.best.interval.base_units()),
                              page_percent(optimum.best.goodput, 1))},
      options);
  page.table(interval_table(optimum));
}

void add_goodput_grid(Page& page, const CampaignResult& result) {
  const GoodputGrid& grid = *result.grid;
  assert(!grid.axes.empty() && grid.axes.size() <= 2 && !grid.points.empty());
  const auto mean = [](const GridPoint& each) { return each.goodput.mean; };
  const auto [first, last] = std::ranges::minmax_element(grid.points, {}, mean);
  const double least = mean(*first), most = mean(*last);
  const auto marked = std::ranges::count_if(
      grid.points, [&](const GridPoint& each) { return mean(each) >= kMarkedGoodput; });
  const bool list = grid.axes.size() == 1;
  page.section(
      list ? "Goodput over " + grid.axes[0].path
           : fmt::format("Goodput over {} and {}", grid.axes[0].path, grid.axes[1].path),
      fmt::format(
          "Each cell with all trajectories, which meet the same failures. {} of {} reach {} "
          "and are marked.",
          marked, grid.points.size(), page_percent(kMarkedGoodput)));
  if (!list) return add_grid_maps(page, grid, least, most);
  page.table(grid_list(grid, least, most));
}

}  // namespace lockstep
