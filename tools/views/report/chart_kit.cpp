#include "tools/views/report/chart_kit.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

const json kGap = {"-", "-"};  ///< ends a piece of a line

json name_axis(const json& names) {
  return {
      {"type", "category"},
      {"inverse", true},
      {"data", names},
      {"axisLabel", {{"width", 260}, {"overflow", "break"}, {"interval", 0}, {"lineHeight", 13}}}};
}

json number_axis(const std::string& unit) {
  return {{"type", "value"},
          {"axisLabel", {{"formatter", "{value} " + unit}, {"hideOverlap", true}}}};
}

json dot_axis(const DotAxis& axis, bool lines) {
  return {{"type", axis.logarithmic ? "log" : "value"},
          {"scale", !axis.from_zero},
          {"splitLine", {{"show", lines}}},
          {"axisLabel",
           {{"formatter", axis.unit.starts_with('@') ? axis.unit : "{value} " + axis.unit},
            {"hideOverlap", true}}}};
}

/// A line from low to high over each bar, and short ends.
json whiskers(std::span<const IntervalBar> bars) {
  json line = json::array(), ends = json::array();
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (!bars[i].low || !bars[i].high) continue;
    for (const double at : {*bars[i].low, *bars[i].high}) {
      line.push_back({four_digits(at), i});
      ends.push_back({four_digits(at), i});
    }
    line.push_back(kGap);
  }
  return json::array({{{"type", "line"},
                       {"name", "interval"},
                       {"silent", true},
                       {"symbol", "none"},
                       {"z", 4},
                       {"lineStyle", {{"width", 1.5}, {"color", "@ink"}}},
                       {"data", line}},
                      {{"type", "scatter"},
                       {"name", "ends"},
                       {"silent", true},
                       {"symbol", "rect"},
                       {"symbolSize", {1.5, 9}},
                       {"z", 4},
                       {"itemStyle", {{"color", "@ink"}, {"opacity", 1}}},
                       {"data", ends}}});
}

}  // namespace

std::string chart_colour(std::size_t number) {
  return number < kPageColours ? fmt::format("@colour-{}", number) : "@others";
}

int bars_height(std::size_t bars) {
  constexpr int kEach = 34, kAxis = 48;
  return kAxis + kEach * static_cast<int>(bars);
}

json interval_bars(std::span<const IntervalBar> bars, const std::string& unit) {
  json names = json::array(), values = json::array(), words = json::array();
  for (const IntervalBar& bar : bars) {
    names.push_back(bar.name);
    values.push_back({{"value", four_digits(bar.value)},
                      {"itemStyle", {{"color", bar.marked ? "@accent" : "@colour-0"}}}});
    words.push_back(bar.words);
  }
  json series = json::array(
      {{{"type", "bar"}, {"name", "value"}, {"barMaxWidth", 18}, {"data", std::move(values)}}});
  for (json& each : whiskers(bars)) series.push_back(std::move(each));
  return {{"lockstep", {{"words", words}}},
          {"grid", plot_grid(8, 4)},
          {"tooltip", {{"trigger", "item"}, {"formatter", "@words"}, {"confine", true}}},
          {"xAxis", number_axis(unit)},
          {"yAxis", name_axis(names)},
          {"series", std::move(series)}};
}

json stacked_bars(std::span<const std::string> names, std::span<const BarPart> parts,
                  const std::string& unit) {
  json series = json::array();
  for (const BarPart& part : parts) {
    json data = json::array();
    for (const double value : part.values) data.push_back(four_digits(value));
    series.push_back({{"type", "bar"},
                      {"name", part.name},
                      {"stack", "all"},
                      {"barMaxWidth", 22},
                      {"itemStyle", {{"color", part.colour}}},
                      {"data", std::move(data)}});
  }
  return {{"lockstep", {{"unit", unit}}},
          {"grid", plot_grid(40, 4)},
          {"legend", {{"top", 0}, {"left", 0}}},
          {"tooltip",
           {{"trigger", "axis"},
            {"axisPointer", {{"type", "shadow"}}},
            {"valueFormatter", "@amount"},
            {"confine", true}}},
          {"xAxis", number_axis(unit)},
          {"yAxis", name_axis(json(std::vector<std::string>(names.begin(), names.end())))},
          {"series", std::move(series)}};
}

json paired_bars(std::span<const std::string> names, std::span<const BarPart> parts,
                 const std::string& unit) {
  json out = stacked_bars(names, parts, unit);
  for (json& series : out["series"]) {
    series.erase("stack");
    series.update({{"barMaxWidth", 12}, {"barGap", "10%"}});
  }
  return out;
}

int paired_height(std::size_t names, std::size_t parts) {
  constexpr int kEach = 14, kBetween = 16, kAxisAndLegend = 84;
  return kAxisAndLegend + static_cast<int>(names) * (kEach * static_cast<int>(parts) + kBetween);
}

json dots_chart(std::span<const ChartDot> dots, std::span<const std::string> groups,
                const DotAxis& x, const DotAxis& y, std::span<const ChartDot> front) {
  json words = json::array(), series = json::array();
  if (front.size() > 1) {
    json line = json::array();
    for (const ChartDot& dot : front) line.push_back({four_digits(dot.x), four_digits(dot.y)});
    series.push_back({{"type", "line"},
                      {"name", "front"},
                      {"silent", true},
                      {"symbol", "none"},
                      {"lineStyle", {{"width", 1.5}, {"type", "dashed"}, {"color", "@soft"}}},
                      {"itemStyle", {{"color", "@soft"}}},
                      {"data", std::move(line)}});
  }
  std::vector<json> data(groups.size(), json::array());
  std::vector<bool> all_marked(groups.size(), true);
  for (const ChartDot& dot : dots) {
    const std::size_t group = std::min(dot.colour, groups.size() - 1);
    all_marked[group] = all_marked[group] && dot.marked;
    json point{{"value", {four_digits(dot.x), four_digits(dot.y), words.size()}}};
    if (dot.marked) {
      point["symbolSize"] = 16;
      point["itemStyle"] = {{"color", "@accent"}, {"opacity", 1}};
    }
    data[group].push_back(std::move(point));
    words.push_back(dot.words);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (data[g].empty()) continue;
    series.push_back(
        {{"type", "scatter"},
         {"name", groups[g]},
         {"symbolSize", dots.size() > 200 ? 6 : 11},
         {"itemStyle",
          {{"color", all_marked[g] ? std::string("@accent") : chart_colour(g)}, {"opacity", 0.8}}},
         {"data", std::move(data[g])}});
  }
  const bool legend = series.size() > 1;
  json out{{"lockstep", {{"words", words}}},
           {"grid", plot_grid(legend ? 40 : 12, 4)},
           {"tooltip", {{"trigger", "item"}, {"formatter", "@words"}, {"confine", true}}},
           {"xAxis", dot_axis(x, false)},
           {"yAxis", dot_axis(y, true)},
           {"series", std::move(series)}};
  if (legend) out["legend"] = {{"top", 0}, {"left", 0}};
  return out;
}

std::vector<std::size_t> front_of(std::span<const double> x, std::span<const double> y) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return std::pair(x[i], y[i]); });
  std::vector<std::size_t> front;
  double least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (y[i] >= least) continue;
    least = y[i];
    front.push_back(i);
  }
  return front;
}

json parallel_axes(std::span<const ChartAxis> axes, std::span<const double> goodness,
                   std::optional<std::size_t> best, const ColourScale& scale) {
  constexpr std::size_t kLooks = 11;
  std::vector<json> lines(kLooks, json::array());
  const auto append_line = [&](json& to, std::size_t line) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::optional<double>& place = axes[a].places[line];
      place ? to.push_back({a, four_digits(*place)}) : to.push_back(kGap);
    }
    to.push_back(kGap);
  };
  for (std::size_t line = 0; line < goodness.size(); ++line) {
    const double part = std::clamp(goodness[line], 0.0, 1.0);
    append_line(lines[1 + static_cast<std::size_t>(std::lround(part * 9))], line);
  }
  json series = json::array();
  const auto add = [&](const char* name, json data, const std::string& colour, double width,
                       double opacity) {
    series.push_back({{"type", "line"},
                      {"name", name},
                      {"silent", true},
                      {"symbol", "none"},
                      {"lineStyle", {{"width", width}, {"color", colour}, {"opacity", opacity}}},
                      {"data", std::move(data)}});
  };
  json bars = json::array(), marks = json::array(), names = json::array();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    names.push_back(axes[a].name);
    bars.insert(bars.end(), {{a, 0}, {a, 1}, kGap});
    const auto mark = [&](double at, const std::string& text) {
      marks.push_back({{"value", {a, four_digits(at)}}, {"name", text}});
    };
    const std::size_t named = axes[a].marks.size();
    for (std::size_t m = 0; m < named; ++m) {
      mark(named == 1 ? 0.5 : static_cast<double>(m) / static_cast<double>(named - 1),
           axes[a].marks[m]);
    }
    if (named > 0) continue;
    mark(0, axes[a].low);
    mark(1, axes[a].high);
  }
  add("axes", std::move(bars), "@soft", 1, 0.6);
  const double opacity = goodness.size() > 100 ? 0.35 : 0.8;
  for (std::size_t look = 0; look < kLooks; ++look) {
    if (lines[look].empty()) continue;
    add("points", std::move(lines[look]), fmt::format("@use-{}", look), 1.2, opacity);
  }
  if (best) {
    json line = json::array();
    append_line(line, *best);
    add("best", std::move(line), "@accent", 3, 1);
  }
  series.push_back({{"type", "scatter"},
                    {"name", "marks"},
                    {"silent", true},
                    {"symbolSize", 4},
                    {"z", 5},
                    {"itemStyle", {{"color", "@soft"}, {"opacity", 1}}},
                    {"label",
                     {{"show", true},
                      {"position", "right"},
                      {"formatter", "{b}"},
                      {"color", "@ink"},
                      {"backgroundColor", "@card"},
                      {"padding", {1, 3}},
                      {"fontSize", 11}}},
                    {"data", std::move(marks)}});
  // The scale belongs to a series without points, or it would colour the marks.
  series.push_back({{"type", "scatter"}, {"name", "scale"}, {"data", json::array()}});
  const std::size_t of_scale = series.size() - 1;
  constexpr std::size_t kAxisRoom = 90;  // pixels, for its name and its marks
  return {
      {"lockstep", {{"least_px", kAxisRoom * axes.size()}}},
      {"visualMap",
       {{"min", 0},
        {"max", 1},
        {"seriesIndex", of_scale},
        {"hoverLink", false},
        {"orient", "horizontal"},
        {"top", 0},
        {"left", 0},
        {"itemWidth", 12},
        {"itemHeight", 160},
        {"text", {scale.best, scale.worst}},
        {"inRange", {{"color", "@uses"}}}}},
      {"grid", {{"left", 24}, {"right", 70}, {"top", 44}, {"bottom", 58}}},
      {"xAxis",
       {{"type", "category"},
        {"boundaryGap", false},
        {"data", names},
        {"axisLine", {{"show", false}}},
        {"axisLabel",
         {{"interval", 0}, {"width", kAxisRoom - 6}, {"overflow", "break"}, {"lineHeight", 13}}}}},
      {"yAxis", {{"type", "value"}, {"min", -0.04}, {"max", 1.04}, {"show", false}}},
      {"series", std::move(series)}};
}

}  // namespace lockstep
