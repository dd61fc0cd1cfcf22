#include "tools/views/report/congestion_charts.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/congestion_words.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/thinning.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// "the 40 fullest of 4,000 links", "all 12 links".
std::string which_links(const CongestionReport& report, std::span<const LinkRow> rows,
                        std::size_t most) {
  std::size_t shown = 0;
  for (const LinkRow& row : rows) shown += row.alike;
  if (shown < report.links_used) {
    // Of those that are listed last some are there since they hold a transfer back.
    const bool fullest = rows.size() <= most && shown < report.links.size();
    return fmt::format("{} of {} links",
                       fullest ? fmt::format("the {} fullest", shown) : std::to_string(shown),
                       grouped(static_cast<double>(report.links_used)));
  }
  if (shown == 2) return "both links";
  return shown == 1 ? "the only link" : fmt::format("all {} links", shown);
}

/// What is alike in the names of rows; empty where nothing is.
std::string alike_sentence(std::span<const LinkRow> rows) {
  const bool some = std::ranges::any_of(rows, [](const LinkRow& row) { return row.alike > 1; });
  return some ? " Links are alike that have as much in use at all times, with the same bytes of "
                "each job, in whichever direction; the first of them gives the name."
              : "";
}

std::string capacity_text(const LinkCongestion& link) {
  return page_bytes(link.capacity_bytes_per_s) + "/s";
}

/// "50 GB/s, 83 % used on average, 100 % at its peak"
std::string use_text(const LinkCongestion& link) {
  return fmt::format("{}, {} used on average, {} at its peak", capacity_text(link),
                     page_percent(link.mean_utilisation), page_percent(link.peak_utilisation));
}

json link_axis(std::span<const LinkRow> rows) {
  json names = json::array();
  for (const LinkRow& row : rows) names.push_back(row.name);
  return {{"type", "category"},
          {"inverse", true},
          {"data", names},
          {"axisLine", {{"show", false}}},
          {"axisLabel", {{"width", 220}, {"overflow", "break"}, {"interval", 0}}}};
}

/// Cells [column, row, per cent]; empty ones are left out.
json heat_map_cells(std::span<const LinkRow> rows, std::size_t merged) {
  json cells = json::array();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<double> means = merged_means(rows[row].link->utilisation, merged);
    for (std::size_t column = 0; column < means.size(); ++column) {
      const double value = rounded_percent(means[column]);
      if (value > 0) cells.push_back({column, row, value});
    }
  }
  return cells;
}

/// When each column begins, with as many decimals as tell neighbours apart.
json column_times(const CongestionReport& report, std::size_t merged, const AxisUnit& unit) {
  const std::size_t bins = report.links.front().utilisation.size();
  const double width = report.bin_s * static_cast<double>(merged) / unit.size;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(width))), 0, 9);
  json names = json::array();
  for (std::size_t begin = 0; begin < bins; begin += merged) {
    names.push_back(
        fmt::format("{:.{}f}", static_cast<double>(begin) * report.bin_s / unit.size, decimals));
  }
  return names;
}

json utilisation_points(const CongestionReport& report, const LinkCongestion& link,
                        const AxisUnit& unit) {
  json points = json::array();
  for (const std::size_t bin : thin_to_extremes(link.utilisation, kLinePoints)) {
    points.push_back({four_digits(static_cast<double>(bin) * report.bin_s / unit.size),
                      rounded_percent(link.utilisation[bin])});
  }
  // A step holds until the next point; the last one until the end.
  points.push_back({four_digits(report.end_s / unit.size), points.back()[1]});
  return points;
}

json line_options(const CongestionReport& report, const LinkCongestion& link) {
  const AxisUnit unit = time_unit(report.end_s);
  return {{"grid", plot_grid(12, 4)},
          {"tooltip", {{"trigger", "axis"}, {"valueFormatter", "@percent"}}},
          {"xAxis", time_axis(report.end_s / unit.size, unit.name)},
          {"yAxis",
           {{"type", "value"},
            {"min", 0},
            {"max", 100},
            {"interval", 50},
            {"axisLabel", {{"formatter", "{value} %"}}}}},
          {"series",
           {{{"type", "line"},
             {"name", "used"},
             {"step", "end"},
             {"showSymbol", false},
             {"lineStyle", {{"width", 1.5}, {"color", "@accent"}}},
             {"itemStyle", {{"color", "@accent"}}},
             {"areaStyle", {{"color", "@accent"}, {"opacity", 0.12}}},
             {"data", utilisation_points(report, link, unit)}}}}};
}

/// Bytes on each link of the jobs of one colour.
std::vector<double> bytes_of_colour(std::span<const LinkRow> rows,
                                    const std::vector<std::size_t>& colours, std::size_t colour) {
  std::vector<double> bytes;
  for (const LinkRow& row : rows) {
    double sum = 0;
    for (std::size_t job = 0; job < row.link->bytes_by_job.size(); ++job) {
      if (colours[job] == colour) sum += row.link->bytes_by_job[job];
    }
    bytes.push_back(sum);
  }
  return bytes;
}

std::string name_of_colour(const CongestionReport& report, const std::vector<std::size_t>& colours,
                           std::size_t colour) {
  if (colour == kPageColours) return "all other jobs";
  const auto job = std::ranges::find(colours, colour);
  return report.jobs[static_cast<std::size_t>(job - colours.begin())].name;
}

json bar_series(const CongestionReport& report, std::span<const LinkRow> rows,
                const AxisUnit& unit) {
  const std::vector<std::size_t> colours = job_colours(report.jobs);
  const std::size_t used = std::min(report.jobs.size(), kPageColours + 1);
  json series = json::array();
  for (std::size_t colour = 0; colour < used; ++colour) {
    json data = json::array();
    for (const double bytes : bytes_of_colour(rows, colours, colour)) {
      data.push_back(four_digits(bytes / unit.size));
    }
    json bars{{"type", "bar"},
              {"stack", "bytes"},
              {"name", name_of_colour(report, colours, colour)},
              {"barMaxWidth", 18},
              {"data", data}};
    if (colour == kPageColours) bars["itemStyle"] = {{"color", "@others"}};
    series.push_back(bars);
  }
  return series;
}

double largest_bytes(std::span<const LinkRow> rows) {
  double largest = 0;
  for (const LinkRow& row : rows) {
    const std::vector<double>& bytes = row.link->bytes_by_job;
    largest = std::max(largest, std::accumulate(bytes.begin(), bytes.end(), 0.0));
  }
  return largest;
}

}  // namespace

void add_heat_map(Page& page, const CongestionReport& report) {
  const std::vector<LinkRow> links = fullest_rows(report, kHeatMapLinks);
  const std::size_t bins = links.front().link->utilisation.size();
  const std::size_t merged = merge_count(bins, kHeatMapColumns);
  const AxisUnit unit = time_unit(report.end_s);
  const bool zooms = bins > merged;  // there is more than one cell in a row

  json about = json::array();
  for (const LinkRow& row : links) about.push_back(use_text(*row.link));
  const json rows = link_axis(links);
  json heat_grid = plot_grid(60, zooms ? 44 : 4);
  heat_grid.update({{"show", true}, {"borderWidth", 0}, {"backgroundColor", "@floor"}});
  json options{{"lockstep", {{"rows", rows["data"]}, {"about", about}, {"unit", unit.name}}},
               {"grid", heat_grid},
               {"tooltip", {{"formatter", "@cell"}, {"confine", true}}},
               {"xAxis",
                {{"type", "category"},
                 {"data", column_times(report, merged, unit)},
                 {"axisLine", {{"show", false}}},
                 {"axisLabel",
                  {{"formatter", "{value} " + unit.name},
                   {"hideOverlap", true},
                   {"padding", {0, 12, 0, 12}}}}}},
               {"yAxis", rows},
               {"visualMap",
                {{"min", 0},
                 {"max", 100},
                 {"calculable", true},
                 {"orient", "horizontal"},
                 {"top", 0},
                 {"left", 0},
                 {"itemWidth", 12},
                 {"itemHeight", 160},
                 {"precision", 0},
                 {"formatter", "{value} %"},
                 {"inRange", {{"color", "@ramp"}}}}},
               {"series",
                {{{"type", "heatmap"},
                  {"data", heat_map_cells(links, merged)},
                  {"progressive", 0},
                  {"emphasis", {{"disabled", true}}}}}}};

  if (zooms) options["dataZoom"] = time_zoom();

  page.section("When the links were full",
               "Each row is a link, fullest first; each cell the share of its capacity in use." +
                   alike_sentence(links));
  page.chart(
      {.title = fmt::format("Use of {} over time", which_links(report, links, kHeatMapLinks)),
       .about = fmt::format("A cell is the mean of {}.{}",
                            page_duration(report.bin_s * static_cast<double>(merged)),
                            report.events.empty() ? "" : " A link that is down is as one unused."),
       .summary =
           fmt::format("Heat map of the use of {} over {}.",
                       which_links(report, links, kHeatMapLinks), page_duration(report.end_s)),
       .height_px = (zooms ? 128 : 88) + 17 * static_cast<int>(links.size()),
       .hint = zooms ? kZoomHint : std::string_view()},
      options);
}

void add_utilisation_lines(Page& page, const CongestionReport& report) {
  const std::vector<LinkRow> links = fullest_rows(report, kLineLinks);
  const std::size_t bins = links.front().link->utilisation.size();
  std::string lead = "Share of capacity in use, bin by bin.";
  if (bins > kLinePoints) {
    lead = fmt::format(
        "Share of capacity in use: of {} bins of {}, the lowest and the highest of each stretch.",
        grouped(static_cast<double>(bins)), page_duration(report.bin_s));
  }
  page.section(links.size() == 1 ? "The fullest link, closely" : "The fullest links, closely",
               lead);
  page.begin_row();
  for (const LinkRow& row : links) {
    const std::string use = use_text(*row.link);
    page.chart({.title = row.name,
                .about = use,
                .summary = fmt::format("Use of {} over time: {}.", row.name, use),
                .height_px = 150},
               line_options(report, *row.link));
  }
  page.end_row();
}

void add_bytes_by_job(Page& page, const CongestionReport& report) {
  const std::vector<LinkRow> links = fullest_rows(report, kBarLinks);
  const AxisUnit unit = bytes_unit(largest_bytes(links));
  const json options{
      {"lockstep", {{"unit", unit.name}}},
      {"grid", plot_grid(40, 4)},
      {"legend", {{"top", 0}, {"left", 0}}},
      {"tooltip",
       {{"trigger", "axis"},
        {"axisPointer", {{"type", "shadow"}}},
        {"valueFormatter", "@amount"},
        {"confine", true}}},
      {"xAxis",
       {{"type", "value"},
        {"axisLabel", {{"formatter", "{value} " + unit.name}, {"hideOverlap", true}}}}},
      {"yAxis", link_axis(links)},
      {"series", bar_series(report, links, unit)}};
  page.section("Whose bytes they carried");
  page.chart(
      {.title = fmt::format("Bytes by job on {}", which_links(report, links, kBarLinks)),
       .about = alike_sentence(links).empty() ? "" : "Of links that are alike, those of one.",
       .summary = fmt::format("Bars of the bytes of each job on {}.",
                              which_links(report, links, kBarLinks)),
       .height_px = 80 + 30 * static_cast<int>(links.size())},
      options);
}

}  // namespace lockstep
