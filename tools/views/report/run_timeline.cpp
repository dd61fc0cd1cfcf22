#include "tools/views/report/run_timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_bins.hpp"
#include "tools/views/report/run_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// Bottom to top. Lost time comes first, so that it can be read against the axis.
constexpr std::array<RunBucket, kRunBuckets> kStack{
    RunBucket::lost,        RunBucket::restart,    RunBucket::detection, RunBucket::diagnosis,
    RunBucket::repair_wait, RunBucket::checkpoint, RunBucket::degraded,  RunBucket::productive};

constexpr int kCauseRowPx = 44;
constexpr int kSharesPx = 210;

std::size_t index_of(RunBucket bucket) { return static_cast<std::size_t>(bucket); }
double run_seconds(RunTime t) { return to_seconds(t).base_units(); }

/// Six digits tell a thousand bins apart.
double at_unit(RunTime t, const AxisUnit& unit) {
  return shown_digits(run_seconds(t) / unit.size, 6);
}

/// Share of a bin that went into a bucket and those below it in the stack; and into it alone.
struct StackedShare {
  double up_to = 0, own = 0;
};
StackedShare stacked_share(const RunBins& bins, std::size_t bin, RunBucket bucket) {
  const double width = run_seconds(bins.begin(bin + 1) - bins.begin(bin));
  StackedShare share;
  for (const RunBucket each : kStack) {
    share.own = run_seconds(bins.spent[bin][index_of(each)]) / width;
    share.up_to += share.own;
    if (each == bucket) break;
  }
  return share;
}

/// [time, share up to the bucket, its own] at the middle of each bin, in per cent; the first and
/// the last one reach to the ends.
json share_points(const RunBins& bins, RunBucket bucket, const AxisUnit& unit) {
  json points = json::array();
  const auto add = [&](std::size_t bin, RunTime at) {
    const StackedShare share = stacked_share(bins, bin, bucket);
    points.push_back({at_unit(at, unit), fine_percent(share.up_to), fine_percent(share.own)});
  };
  add(0, 0);
  for (std::size_t bin = 0; bin < bins.spent.size(); ++bin) {
    add(bin, bins.begin(bin) + (bins.begin(bin + 1) - bins.begin(bin)) / 2);
  }
  add(bins.spent.size() - 1, bins.wall);
  return points;
}

/// Areas from zero, the highest first, so that the next one covers all but its own part: where
/// areas lie on one another instead, hairs of the page show between them.
json share_series(const RunBins& bins, RunBucket bucket, const AxisUnit& unit) {
  const std::size_t index = index_of(bucket);
  const bool productive = bucket == RunBucket::productive;
  return {{"type", "line"},
          {"name", run_bucket_names()[index].words},
          {"xAxisIndex", 1},
          {"yAxisIndex", 1},
          {"step", "middle"},
          {"showSymbol", false},
          {"lineStyle", {{"width", 0}}},
          {"itemStyle",
           {{"color", fmt::format("@colour-{}", index)}, {"opacity", productive ? 0.3 : 1}}},
          {"areaStyle", {{"opacity", productive ? 0.25 : 1}}},
          {"emphasis", {{"disabled", true}}},
          {"data", share_points(bins, bucket, unit)}};
}

/// The events to mark: all, or those that cost most, in order of time.
std::vector<RunEvent> marked_events(const TrajectoryResult& run) {
  std::vector<RunEvent> events = run.events;
  if (events.size() <= kMarkedFailures) return events;
  std::ranges::stable_sort(events, std::ranges::greater{}, &RunEvent::cost);
  events.resize(kMarkedFailures);
  std::ranges::stable_sort(events, {}, &RunEvent::at);
  return events;
}

/// Dots [time, row, mode, seconds]; their area goes with what the failure cost.
json failure_series(std::span<const RunEvent> events, const CauseRows& rows, const AxisUnit& unit) {
  RunTime most = 1;
  for (const RunEvent& event : events) most = std::max(most, event.cost);
  json data = json::array();
  for (const RunEvent& event : events) {
    const double size = std::sqrt(static_cast<double>(event.cost) / static_cast<double>(most));
    data.push_back({{"value",
                     {at_unit(event.at, unit), rows.row_of_mode[event.mode], event.mode,
                      four_digits(run_seconds(event.cost))}},
                    {"symbolSize", std::round(10 * (4 + 8 * size)) / 10}});
  }
  return {{"type", "scatter"},
          {"name", "failures"},
          {"itemStyle", {{"color", "@ink"}, {"opacity", 0.6}}},
          {"data", data}};
}

json row_axis(const CauseRows& rows, std::span<const RunEvent> events) {
  std::vector<int> counts(rows.names.size());
  for (const RunEvent& event : events) ++counts[rows.row_of_mode[event.mode]];
  json names = json::array();
  for (std::size_t row = 0; row < rows.names.size(); ++row) {
    names.push_back(fmt::format("{} · {}", rows.names[row], grouped(counts[row])));
  }
  return {{"type", "category"},
          {"inverse", true},
          {"data", names},
          {"axisLine", {{"show", false}}},
          {"splitLine", {{"show", true}}},
          // Above the row's dots, so that the plots below one another have the same width.
          {"axisLabel",
           {{"inside", true},
            {"align", "left"},
            {"verticalAlign", "bottom"},
            {"margin", 0},
            {"fontSize", 11},
            {"padding", {0, 0, 9, 0}},
            {"interval", 0}}}};
}

json plain_grid(int top, int height, const char* trigger) {
  return {{"left", 48},
          {"right", 16},
          {"top", top},
          {"height", height},
          {"tooltip", {{"trigger", trigger}}},
          {"outerBoundsMode", "none"}};
}

json timeline_options(const CampaignResult& result, const RunBins& bins) {
  const TrajectoryResult& run = *result.typical;
  const AxisUnit unit = long_time_unit(run_seconds(bins.wall));
  const CauseRows rows = cause_rows(result.summary);
  const std::vector<RunEvent> events = marked_events(run);
  const int rows_px = kCauseRowPx * static_cast<int>(rows.names.size());

  json series = json::array({failure_series(events, rows, unit)});
  json legend = json::array();
  for (const RunBucket bucket : std::views::reverse(kStack)) {
    if (run.buckets[index_of(bucket)] == 0) continue;
    series.push_back(share_series(bins, bucket, unit));
    legend.push_back(run_bucket_names()[index_of(bucket)].words);
  }
  json causes = json::array();
  for (const FailureMode& mode : result.plan.campaign.modes) causes.push_back(mode.name);
  const double wall = run_seconds(bins.wall) / unit.size;
  json times = time_axis(wall, unit.name);
  times["gridIndex"] = 1;
  json hidden = times;
  hidden.update({{"gridIndex", 0}, {"axisLabel", {{"show", false}}}});
  json causes_axis = row_axis(rows, run.events);
  json zoom = time_zoom();
  for (json& each : zoom) each.update({{"xAxisIndex", {0, 1}}, {"filterMode", "none"}});
  return {
      {"lockstep",
       {{"unit_s", unit.size},
        {"wall_s", run_seconds(bins.wall)},
        {"bins", bins.spent.size()},
        {"causes", causes}}},
      {"grid", {plain_grid(4, rows_px, "item"), plain_grid(rows_px + 60, kSharesPx, "axis")}},
      {"legend", {{"top", rows_px + 24}, {"left", 0}, {"data", legend}, {"selectedMode", false}}},
      {"tooltip", {{"confine", true}, {"formatter", "@timeline"}}},
      {"dataZoom", zoom},
      {"xAxis", {hidden, times}},
      {"yAxis",
       {causes_axis,
        {{"type", "value"},
         {"gridIndex", 1},
         {"min", 0},
         {"max", 100},
         {"interval", 25},
         {"axisLabel", {{"formatter", "{value} %"}}}}}},
      {"series", series}};
}

void add_progress(Page& page, const CampaignResult& result, const RunBins& bins) {
  const double wall_s = run_seconds(bins.wall);
  const AxisUnit unit = long_time_unit(wall_s);
  const double per_second = result.tokens_per_step() / result.plan.step_s;
  const double most = wall_s * per_second;
  const AxisUnit size = count_unit(most);
  json done = json::array({{0, 0}});
  RunTime productive = 0;
  for (std::size_t bin = 0; bin < bins.spent.size(); ++bin) {
    productive += bins.spent[bin][index_of(RunBucket::productive)];
    done.push_back({at_unit(bins.begin(bin + 1), unit),
                    shown_digits(run_seconds(productive) * per_second / size.size, 5)});
  }
  const auto line = [](const char* name, const char* colour, json data) {
    return json{{"type", "line"},
                {"name", name},
                {"showSymbol", false},
                {"lineStyle", {{"width", 2}, {"color", colour}}},
                {"itemStyle", {{"color", colour}}},
                {"data", std::move(data)}};
  };
  json ideal =
      line(result.fleet ? "with all machines at once, and if nothing ever failed"
                        : "if nothing ever failed",
           "@others", {{0, 0}, {at_unit(bins.wall, unit), shown_digits(most / size.size, 5)}});
  ideal["lineStyle"]["type"] = "dashed";
  const json options{
      {"lockstep", {{"unit", size.name}}},
      {"grid", plot_grid(40, 4)},
      {"legend", {{"top", 0}, {"left", 0}}},
      {"tooltip", {{"trigger", "axis"}, {"valueFormatter", "@amount"}, {"confine", true}}},
      {"xAxis", time_axis(wall_s / unit.size, unit.name)},
      {"yAxis", {{"type", "value"}, {"axisLabel", {{"formatter", "{value} " + size.name}}}}},
      {"series", {line("this run", "@colour-0", done), ideal}}};
  const double trained = run_seconds(productive) * per_second;
  page.chart({.title = "Tokens trained",
              .about = fmt::format("{} at the end. Work that was lost and done again counts once.",
                                   page_count(trained)),
              .summary = fmt::format("Line of the tokens trained over time, up to {}.",
                                     page_count(trained)),
              .height_px = 240},
             options);
}

void add_buckets_table(Page& page, const CampaignResult& result) {
  const TrajectoryResult& run = *result.typical;
  std::vector<double> of_run;
  of_run.reserve(run.buckets.size());
  for (const RunTime spent : run.buckets) {
    of_run.push_back(run_seconds(spent) / run_seconds(run.wall));
  }
  const auto runs = static_cast<double>(result.summary.trajectories);
  page.section("Where the wall time goes",
               runs < 2 ? std::string()
                        : fmt::format("The mean of {} runs, and the one that is drawn below.",
                                      grouped(runs)));
  PageTable table{.columns = {{.title = "Where wall time goes"},
                              {.title = "Mean of all runs", .numeric = true},
                              {.title = "Time a run", .numeric = true},
                              {.title = "Run shown", .numeric = true}},
                  .sorted_by = 1};
  std::vector<std::size_t> order(kRunBuckets);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto share = [&](std::size_t bucket) { return result.summary.shares[bucket]; };
  std::ranges::stable_sort(order, std::ranges::greater{}, share);
  for (const std::size_t b : order) {
    if (share(b) <= 0 && run.buckets[b] == 0) continue;
    const double seconds = share(b) * result.summary.wall_s.mean;
    table.rows.push_back({{.content = coloured_name(run_bucket_names()[b].words, b)},
                          PageCell::number(page_part(share(b)), share(b)),
                          PageCell::number(page_duration(seconds), seconds),
                          PageCell::number(page_part(of_run[b]), of_run[b])});
  }
  page.table(table);
}

}  // namespace

void add_run_timeline(Page& page, const CampaignResult& result) {
  const TrajectoryResult& run = *result.typical;
  const RunBins bins = bin_phases(run, kTimelineBins);
  const std::string goodput = telling_percent(run_seconds(run.buckets[0]) / run_seconds(run.wall));
  const auto others = static_cast<double>(result.summary.trajectories) - 1;
  add_buckets_table(page, result);
  page.section("One run, from its first step to its last",
               others < 1
                   ? fmt::format("The only trajectory simulated, with a goodput of {}.", goodput)
                   : fmt::format("Trajectory {} (of 0 to {}), whose goodput is the median: {}.",
                                 grouped(result.typical_number), grouped(others), goodput));
  const double width_s = run_seconds(bins.wall) / static_cast<double>(bins.spent.size());
  std::string about = run.events.empty()
                          ? "Above there is no dot, as nothing interrupted this run"
                          : "Above, each dot is an interruption, the larger the more it cost";
  if (run.events.size() > kMarkedFailures) {
    about +=
        fmt::format(" ({} of {}, the costliest)", grouped(static_cast<double>(kMarkedFailures)),
                    grouped(static_cast<double>(run.events.size())));
  }
  about += fmt::format(
      "; below, where the time of each {} went, on a narrow screen the worst of those beside one "
      "another.",
      page_setting(width_s));
  const int rows_px = kCauseRowPx * static_cast<int>(cause_rows(result.summary).names.size());
  page.chart({.title = "Interruptions by cause, and shares of wall time",
              .about = about,
              .summary = fmt::format("{} interruptions by cause over {}, and shares of wall time.",
                                     grouped(static_cast<double>(run.events.size())),
                                     page_duration(run_seconds(run.wall))),
              .height_px = rows_px + 60 + kSharesPx + 64,
              .hint = kZoomHint},
             timeline_options(result, bins));
  if (result.plan.step_s > 0) add_progress(page, result, bins);
}

}  // namespace lockstep
