#include "tools/views/report/points_page.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/fields.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

const std::string kBy = "by";

/// "m 8192, n 4096, k 4096": what tells a point from its neighbours.
std::string point_words(const ValidationPoint& point) {
  std::string out;
  for (const auto& [key, value] : point.identity) {
    if (key == kBy || value.text.empty()) continue;
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}", key, value.text);
  }
  return out;
}

/// Figures of rows in words; what is none of them, as it is.
std::string figure_words(const std::string& name) {
  using Words = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kFigures{
      Words{"tpot_ms", "time per output token"},
      Words{"ttft_ms", "time to the first token"},
      Words{"itl_ms", "time between tokens"},
      Words{"prefill_ms", "time of a prompt"},
      Words{"output_tokens_per_s", "output tokens/s"},
      Words{"schedule.starts", "jobs that start when recorded"},
      Words{"schedule.ends", "jobs that end when recorded"},
      Words{"schedule.order", "jobs that start in the order recorded"},
      Words{"schedule.nodes", "jobs on the nodes recorded"},
      Words{"schedule.runs", "runs of jobs"},
      Words{"schedule.wait_mean_s", "mean wait"},
      Words{"wait_mean_s", "mean wait"}};
  const auto found = std::ranges::find(kFigures, name, &Words::first);
  return found == kFigures.end() ? name : std::string(found->second);
}

/// "time per output token, vllm" of the group "tpot_ms, vllm".
std::string group_words(const std::string& group) {
  const std::size_t end = std::min(group.find(", "), group.size());
  std::string out = figure_words(group.substr(0, end)) + group.substr(end);
  if (const std::size_t us = out.find(" us "); us != std::string::npos) out.replace(us, 4, " µs ");
  return out;
}

/// The first key that points share values of: a colour for each point tells nothing.
std::string colour_key(const std::vector<ValidationPoint>& points) {
  const auto& keys = points.front().identity;
  for (const auto& part : keys) {
    std::set<std::string> values;
    for (const ValidationPoint& p : points) values.insert(identity_of(p, part.first));
    if (2 * values.size() <= points.size()) return part.first;
  }
  return keys.front().first;
}

/// The values of that key, those with most points first; all beyond kPageColours share a colour.
std::vector<std::string> coloured_kinds(const std::vector<ValidationPoint>& points,
                                        const std::string& key) {
  std::map<std::string, std::size_t> counts;
  for (const ValidationPoint& p : points) ++counts[identity_of(p, key)];
  std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::ranges::greater{},
                           &std::pair<std::string, std::size_t>::second);
  std::vector<std::string> kinds;
  kinds.reserve(order.size());
  for (const auto& [name, count] : order) kinds.push_back(name);
  return kinds;
}

double shown_error(double error) {
  return rounded_percent(std::clamp(error, -kLargestError, kLargestError));
}

/// The unit of a point: the table's, or where that has none what the name of its figure says.
std::string point_unit(const ValidationPoint& point, const std::string& of_table) {
  constexpr std::string_view kMilliseconds = "_ms";
  if (identity_of(point, "figure") == "joules_per_token") return "J";
  if (!of_table.empty()) return of_table == "us" ? "µs" : of_table == "w" ? "W" : of_table;
  for (const char* key : {"metric", "figure"}) {
    const std::string name = identity_of(point, key);
    if (name.ends_with(kMilliseconds)) return "ms";
    if (!name.empty()) return std::string(unit_at(name));
  }
  return {};
}

json error_series(const std::vector<ValidationPoint>& points, const std::string& key,
                  const std::vector<std::string>& kinds, json& about) {
  const std::size_t shown = std::min(kinds.size(), kPageColours + 1);
  const std::size_t step = (points.size() + kChartPoints - 1) / kChartPoints;
  std::vector<json> data(shown, json::array());
  for (std::size_t i = 0; i < points.size(); i += step) {
    const ValidationPoint& p = points[i];
    const auto kind = std::ranges::find(kinds, identity_of(p, key)) - kinds.begin();
    const std::size_t colour = std::min(static_cast<std::size_t>(kind), kPageColours);
    data[colour].push_back({four_digits(p.measured), shown_error(p.error), about.size()});
    about.push_back({point_words(p), four_digits(p.predicted), rounded_percent(p.error)});
  }
  json series = json::array();
  for (std::size_t c = 0; c < shown; ++c) {
    if (data[c].empty()) continue;  // none of this kind has the chart's unit
    const std::string colour = c < kPageColours ? fmt::format("@colour-{}", c) : "@others";
    series.push_back({{"type", "scatter"},
                      {"name", c < kPageColours ? figure_words(kinds[c]) : "all other kinds"},
                      {"symbolSize", 6},
                      {"itemStyle", {{"color", colour}, {"opacity", 0.7}}},
                      {"data", data[c]}});
  }
  return series;
}

json error_options(const std::vector<ValidationPoint>& points, const std::string& key,
                   const std::vector<std::string>& kinds, const std::string& unit) {
  json about = json::array();
  const json series = error_series(points, key, kinds, about);
  const double most = 100 * kLargestError;
  return {{"lockstep", {{"about", about}, {"unit", unit}}},
          {"grid", plot_grid(40, 4)},
          {"legend", {{"top", 0}, {"left", 0}}},
          {"tooltip", {{"formatter", "@sample"}, {"confine", true}}},
          {"xAxis",
           {{"type", "log"},
            {"splitLine", {{"show", false}}},
            {"axisLabel", {{"formatter", "{value} " + unit}, {"hideOverlap", true}}}}},
          {"yAxis",
           {{"type", "value"},
            {"min", -most},
            {"max", most},
            {"interval", 20},
            {"axisLabel", {{"formatter", "{value} %"}}}}},
          {"series", series}};
}

/// What shares a chart: points predicted in one way, and measured in one unit.
using PointChart = std::pair<std::string, std::string>;
std::map<PointChart, std::vector<ValidationPoint>> by_chart(const PointTable& table) {
  std::map<PointChart, std::vector<ValidationPoint>> groups;
  for (const ValidationPoint& p : table.points) {
    // A logarithm needs a positive value.
    if (p.measured > 0) groups[{identity_of(p, kBy), point_unit(p, table.unit)}].push_back(p);
  }
  return groups;
}

std::string summary_words(const PointSummary& of) {
  return fmt::format("half of {} within {}, nine in ten within {}",
                     counted(static_cast<double>(of.n), "point"), page_within(of.median_abs),
                     page_within(of.p90_abs));
}

/// How the points of a group were predicted.
std::string way_words(const std::string& group) {
  if (group == "all, by law") return "By the laws alone";
  if (group == "all, by others") return "By the laws, corrected by all other points";
  return "Predicted";
}

Html points_headline(const PointTable& table) {
  Html out;
  for (const PointSummary& of : table.summary) {
    if (of.group == "all" || of.group.starts_with("all, by ")) {
      out += strong(way_words(of.group)) + escaped(": " + summary_words(of) + ". ");
    }
  }
  return out;
}

bool says_how(const PointTable& table) { return !identity_of(table.points.front(), kBy).empty(); }

void add_errors_by_group(Page& page, const PointTable& table) {
  std::string lead = "Error is predicted over measured, less 1.";
  if (says_how(table)) {
    lead += " By law: as the preset of the card has it; by others: corrected by all points but it.";
  }
  page.section("How far off, by group", lead);
  PageTable groups{
      .columns = {{.title = "Group"},
                  {.title = "Points", .numeric = true},
                  {.title = "Median error", .numeric = true},
                  {.title = "90th percentile", .numeric = true},
                  {.title = "Bias", .numeric = true, .about = "median, with its sign"}},
      .rows = {},
      .first_rows = 30};
  for (const PointSummary& of : table.summary) {
    groups.rows.push_back(
        {PageCell::key(group_words(of.group)),
         PageCell::number(grouped(static_cast<double>(of.n)), static_cast<double>(of.n)),
         PageCell::number(page_percent(of.median_abs, 1), of.median_abs),
         PageCell::number(page_percent(of.p90_abs, 1), of.p90_abs),
         PageCell::number(error_text(of.bias), of.bias)});
  }
  page.table(groups);
}

void add_error_charts(Page& page, const PointTable& table) {
  page.section("Point by point");
  const std::string key = colour_key(table.points);
  const std::vector<std::string> kinds = coloured_kinds(table.points, key);
  for (const auto& [chart, points] : by_chart(table)) {
    const auto& [by, unit] = chart;
    const auto beyond = std::ranges::count_if(
        points, [](const ValidationPoint& p) { return std::abs(p.error) > kLargestError; });
    std::string title = "Error over what was measured";
    if (table.unit.empty()) title += unit.empty() ? ", counts" : ", in " + unit;
    if (!by.empty()) title += ", by " + by;
    page.chart({.title = title,
                .about = fmt::format(
                    "Each dot is a point{}.{}",
                    beyond > 0 ? fmt::format("; {} beyond the edge", beyond) : std::string(),
                    points.size() > kChartPoints ? " Every n-th is drawn." : ""),
                .summary = fmt::format("Dots of the error of {} over what was measured.",
                                       counted(static_cast<double>(points.size()), "point")),
                .height_px = 380},
               error_options(points, key, kinds, unit));
  }
}

/// "GPUs" of "gpus", "Model" of "model": what tells points apart, as a head of a column.
std::string column_title(std::string_view key) {
  if (key == "id") return "Row";
  if (key.starts_with("gpu")) return "GPU" + std::string(key.substr(3));
  if (key == "kv_heads") return "KV heads";
  std::string out(key);
  std::ranges::replace(out, '_', ' ');
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') {
    out[0] = static_cast<char>(out[0] - 'a' + 'A');
  }
  return out;
}

void add_worst_points(Page& page, const PointTable& table) {
  std::vector<const ValidationPoint*> worst;
  worst.reserve(table.points.size());
  for (const ValidationPoint& p : table.points) worst.push_back(&p);
  std::ranges::stable_sort(worst, std::ranges::greater{},
                           [](const ValidationPoint* p) { return std::abs(p->error); });
  worst.resize(std::min(worst.size(), kWorstPoints));
  page.section("The worst points");
  PageTable rows{.columns = {}, .rows = {}, .first_rows = 15};
  // The errors come first, because the names of points may be wider than the page.
  for (const char* title : {"Error", "Measured", "Predicted"}) {
    rows.columns.push_back({.title = title, .numeric = true});
  }
  for (const auto& part : worst.front()->identity)
    rows.columns.push_back({.title = column_title(part.first)});
  for (const ValidationPoint* p : worst) {
    std::vector<PageCell> cells{
        PageCell::number(error_text(p->error), std::abs(p->error)),
        PageCell::number(page_with(p->measured, point_unit(*p, table.unit)), p->measured),
        PageCell::number(page_with(p->predicted, point_unit(*p, table.unit)), p->predicted)};
    for (const auto& part : p->identity) {
      const std::string& text = part.second.text;
      cells.push_back(text == "-" ? PageCell::unknown() : PageCell::key(figure_words(text)));
    }
    rows.rows.push_back(std::move(cells));
  }
  page.table(rows);
}

}  // namespace

void add_points(Page& page, const PointTable& table, const std::string& file) {
  page.about(fmt::format("Points of {} against the models.", file));
  if (table.points.empty()) {
    page.headline(escaped("There is no point that can be predicted."));
  } else {
    page.headline(points_headline(table));
    add_errors_by_group(page, table);
    add_error_charts(page, table);
    add_worst_points(page, table);
  }
  if (!table.missed.empty()) {
    page.section("Promises that are missed");
    page.list(table.missed);
  }
  if (!table.notes.empty()) {
    page.section("What else the points say");
    page.list(table.notes);
  }
  if (!table.skipped.empty()) {
    page.section("Left out");
    page.list(table.skipped);
  }
}

std::string points_page(const PointTable& table, const std::string& file) {
  const ChartLibrary library = chart_library();
  std::string title = table.what.empty() ? "measured points" : table.what;
  title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
  Page page("Validation report", title);
  add_points(page, table, file);
  return page.html(library);
}

}  // namespace lockstep
