#include "tools/views/queue/waiting_page.hpp"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/empty_columns.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::size_t kWaitRows = 24;
constexpr std::size_t kDrawnStarts = 20;

double wait_seconds(RunTime time) { return to_seconds(time).base_units(); }
std::string wait_words(RunTime time) { return page_duration(wait_seconds(time)); }
PageCell wait_cell(RunTime time) { return PageCell::number(wait_words(time), wait_seconds(time)); }

std::string reason_name(WaitReason reason) {
  return std::string(kWaitReasonNames[static_cast<std::size_t>(reason)]);
}

void add_reasons(Page& page, const Followed& f) {
  const double all = wait_seconds(f.outcome().waited + f.outcome().suspended);
  PageTable table{.columns = {{.title = "Reason"},
                              {.title = "Time", .numeric = true},
                              {.title = "of its wait", .numeric = true},
                              {.title = "What it means"}},
                  .sorted_by = 1};
  for (const auto& [reason, time] : f.by_reason()) {
    const double share = all > 0 ? wait_seconds(time) / all : 0;
    table.rows.push_back({PageCell::text(reason_name(reason)),
                          wait_cell(time),
                          {.content = with_bar(page_part(share), share), .sort = share},
                          PageCell::text(wait_reason_words(reason))});
  }
  page.section("What it waited for");
  page.table(table);
}

/// GPUs that were free while it waited, as a line in steps.
void add_free_gpus(Page& page, const Followed& f) {
  const std::vector<WaitSpan>& waits = f.result.waits;
  if (waits.size() < 2) return;
  const double from = wait_seconds(waits.front().begin), to = wait_seconds(waits.back().end);
  const AxisUnit unit = long_time_unit(to - from);
  const auto line = [](const std::string& name, const std::string& colour, const char* dash,
                       json points) {
    return json{{"type", "line"},
                {"name", name},
                {"step", "end"},
                {"showSymbol", false},
                {"lineStyle", {{"width", 1.5}, {"color", colour}, {"type", dash}}},
                {"itemStyle", {{"color", colour}}},
                {"data", std::move(points)}};
  };
  json free = json::array();
  const auto at = [&](RunTime time) {
    return four_digits((wait_seconds(time) - from) / unit.size);
  };
  for (const WaitSpan& span : waits) {
    free.push_back({at(span.begin), static_cast<double>(span.free_gpus)});
  }
  free.push_back({at(waits.back().end), static_cast<double>(waits.back().free_gpus)});
  const double end = four_digits((to - from) / unit.size);
  const int asked = f.spec.jobs[f.job].gpus;
  page.chart({.title = "GPUs free while it waited",
              .about = fmt::format("Since its wait began; it asks for {}.", counted(asked, "GPU")),
              .summary = "Free GPUs over its wait, as a line, and how many it asks for.",
              .height_px = 260},
             {{"grid", plot_grid(40, 4)},
              {"legend", {{"top", 0}, {"left", 0}}},
              {"tooltip", {{"trigger", "axis"}, {"confine", true}}},
              {"xAxis", time_axis(end, unit.name)},
              {"yAxis",
               {{"type", "value"},
                {"min", 0},
                {"minInterval", 1},
                {"axisLabel", {{"formatter", "{value} GPUs"}}}}},
              {"series",
               json::array({line("free", chart_colour(0), "solid", std::move(free)),
                            line("asked for", "@accent", "dashed", {{0, asked}, {end, asked}})})}});
}

void add_wait_spans(Page& page, const Followed& f) {
  PageTable table{.columns = {{.title = "From", .numeric = true},
                              {.title = "For", .numeric = true},
                              {.title = "Reason"},
                              {.title = "GPUs free", .numeric = true},
                              {.title = "Jobs before it", .numeric = true},
                              {.title = "The first of them"}},
                  .first_rows = kWaitRows};
  for (const WaitSpan& span : f.result.waits) {
    const auto free = static_cast<double>(span.free_gpus);
    const auto before = static_cast<double>(span.before);
    table.rows.push_back(
        {wait_cell(span.begin), wait_cell(span.end - span.begin),
         PageCell::text(reason_name(span.reason)), PageCell::number(grouped(free), free),
         PageCell::number(grouped(before), before),
         span.first
             ? PageCell::text(fmt::format("{},\u00a0of\u00a0{}", f.spec.job_name(*span.first),
                                          counted(f.spec.jobs[*span.first].gpus, "GPU")))
             : PageCell::unknown()});
  }
  page.section("Its wait, stretch by stretch", "Times count from the first submission.");
  page.table(table);
}

void add_followed_headline(Page& page, const Followed& f) {
  const JobOutcome& of = f.outcome();
  const QueueJob& job = f.spec.jobs[f.job];
  const auto reasons = f.by_reason();
  Html words = escaped("It waited ") + strong(wait_words(of.waited));
  if (!reasons.empty()) {
    const double all = wait_seconds(of.waited + of.suspended);
    words += escaped(fmt::format(", {} of it because ",
                                 page_percent(wait_seconds(reasons.front().second) / all, 1))) +
             strong(wait_reason_words(reasons.front().first));
  }
  words += escaped(".");
  page.headline(words);
  std::vector<PageFigure> figures{
      {.value = wait_words(of.waited), .label = "waited"},
      {.value = grouped(job.gpus), .label = job.gpus == 1 ? "GPU" : "GPUs"},
      {.value = wait_words(job.submit), .label = "submitted, after the first submission"},
      {.value = of.start < 0 ? "never" : wait_words(of.start),
       .label = "started" + again_words(f, wait_words)},
      {.value = of.end < 0 ? "–" : wait_words(of.end), .label = "ended"},
      {.value = wait_words(job.runs), .label = "of work"}};
  if (f.held_beyond_work() > 0) {
    figures.push_back({.value = wait_words(f.held_beyond_work()),
                       .label = "more in which it held GPUs: work lost and done again, restarts, "
                                "slower steps"});
  }
  if (of.evictions > 0) {
    figures.push_back(
        {.value = grouped(of.evictions), .label = of.evictions == 1 ? "eviction" : "evictions"});
  }
  if (of.suspensions > 0) {
    figures.push_back(
        {.value = wait_words(of.suspended),
         .label = fmt::format("suspended, in {}", counted(of.suspensions, "suspension"))});
  }
  if (of.failures > 0) {
    figures.push_back({.value = grouped(of.failures), .label = "failures of its nodes"});
  }
  page.figures(figures);
}

void add_start_bars(Page& page, const QueueSpec& spec, const QueueForecast& f) {
  double latest = 0;
  std::size_t drawn = 0;
  for (const ForecastStart& of : f.waiting) {
    if (of.started == 0 || drawn == kDrawnStarts) break;  // those that never start come last
    latest = std::max(latest, of.p90_s);
    ++drawn;
  }
  if (drawn == 0) return;
  const AxisUnit unit = long_time_unit(latest);
  std::vector<IntervalBar> bars;
  for (std::size_t i = 0; i < drawn; ++i) {
    const ForecastStart& of = f.waiting[i];
    const std::string name = spec.job_name(of.job);
    bars.push_back({.name = name,
                    .value = of.p50_s / unit.size,
                    .low = of.p10_s / unit.size,
                    .high = of.p90_s / unit.size,
                    .words = {"Job " + name, counted(spec.jobs[of.job].gpus, "GPU"),
                              "starts in " + page_duration(of.p50_s),
                              fmt::format("{} to {} in 80{}% of the draws", page_duration(of.p10_s),
                                          page_duration(of.p90_s), "\u00a0")}});
  }
  page.chart({.title = "When they start",
              .about = fmt::format("From now, the median of the draws; lines are from the earliest "
                                   "10 % to the latest 10 %.{}",
                                   drawn < f.waiting.size()
                                       ? fmt::format(" The first {} of {}.", drawn,
                                                     grouped(static_cast<double>(f.waiting.size())))
                                       : ""),
              .summary = "A bar for each waiting job: when it starts, with its spread.",
              .height_px = bars_height(bars.size())},
             interval_bars(bars, unit.name));
}

void add_starts(Page& page, const QueueSpec& spec, const QueueForecast& f) {
  PageTable table{.columns = {{.title = "Job"},
                              {.title = "User"},
                              {.title = "GPUs", .numeric = true},
                              {.title = "Limit", .numeric = true},
                              {.title = "Has waited", .numeric = true},
                              {.title = "Starts in", .numeric = true, .about = "median"},
                              {.title = "Earliest 10 %", .numeric = true, .about = "until then"},
                              {.title = "Latest 10 %", .numeric = true, .about = "from then on"}},
                  .first_rows = kWaitRows,
                  .searched = f.waiting.size() > kWaitRows};
  const auto start = [](const ForecastStart& of, double seconds, std::string_view never) {
    return of.started > 0 ? PageCell::number(seconds == 0 ? "now" : page_duration(seconds), seconds)
                          : PageCell::text(never);
  };
  for (const ForecastStart& of : f.waiting) {
    const QueueJob& job = spec.jobs[of.job];
    const std::string& user = spec.users[job.user];
    table.rows.push_back({PageCell::text(spec.job_name(of.job)),
                          user.empty() ? PageCell::unknown() : PageCell::text(user),
                          PageCell::number(grouped(job.gpus), job.gpus), wait_cell(job.limit),
                          wait_cell(of.waited), start(of, of.p50_s, "never"),
                          start(of, of.p10_s, "–"), start(of, of.p90_s, "–")});
  }
  drop_empty_columns(table);
  page.section("Jobs that wait");
  page.table(table);
}

void add_forecast_headline(Page& page, const QueueForecast& f) {
  const auto count = [](std::size_t jobs) { return grouped(static_cast<double>(jobs)); };
  const std::string now = page_duration(wait_seconds(f.now));
  Html words;
  const auto last =
      std::ranges::find(f.waiting, std::size_t{0}, &ForecastStart::started);  // never starts
  const auto starting = static_cast<std::size_t>(last - f.waiting.begin());
  if (f.waiting.empty()) {
    words = escaped(fmt::format("No job waits {} after the first submission.", now));
  } else if (starting == 0) {
    words = escaped(fmt::format(
                "{} after the first submission {}, and ", now,
                f.waiting.size() == 1 ? "one job waits" : count(f.waiting.size()) + " jobs wait")) +
            strong("none of them ever starts") + escaped(".");
  } else {
    words =
        escaped(fmt::format("{} after the first submission ", now)) +
        strong(f.waiting.size() == 1 ? "one job waits" : count(f.waiting.size()) + " jobs wait") +
        escaped(starting == 1 ? ". It starts in " : ". The first starts in ") +
        strong(page_duration(f.waiting.front().p50_s));
    if (starting > 1) {
      words += escaped(", the last in ") + strong(page_duration(f.waiting[starting - 1].p50_s));
    }
    words += escaped(", by the median.");
    if (starting < f.waiting.size()) {
      words +=
          escaped(fmt::format(" {} never.", f.waiting.size() - starting == 1
                                                ? "One starts"
                                                : count(f.waiting.size() - starting) + " start"));
    }
  }
  page.headline(words);
  page.figures(std::vector<PageFigure>{
      {.value = count(f.waiting.size()),
       .label = f.waiting.size() == 1 ? "job waits" : "jobs wait"},
      {.value = count(f.running), .label = f.running == 1 ? "job runs" : "jobs run"},
      {.value = count(f.ended), .label = "have ended"},
      {.value = page_percent(f.mean_share, 1),
       .label = "of its time limit is what a job that ended ran for, on average"},
      {.value = count(f.draws),
       .label = f.draws > 1 ? "draws of how long the others will run"
                            : "draw: the others run as long as they may"}});
}

}  // namespace

std::string followed_page(const Followed& f, const WrittenScenario& written,
                          const PresetStore& presets) {
  Page page("Followed job", fmt::format("Job {}", f.spec.job_name(f.job)));
  if (!f.spec.about.empty()) page.about(f.spec.about);
  add_followed_headline(page, f);
  if (!f.result.waits.empty()) {
    add_reasons(page, f);
    add_free_gpus(page, f);
    add_wait_spans(page, f);
  }
  add_basis(page, {.simulated = cluster_words(f.spec.cluster),
                   .written = written,
                   .assumptions = f.spec.assumptions,
                   .presets = &presets});
  page.foot(fmt::format("Scenario: {}.", f.spec.file));
  return page.html(chart_library());
}

std::string forecast_page(const QueueSpec& spec, const QueueForecast& f,
                          const WrittenScenario& written, const PresetStore& presets) {
  Page page("Forecast of a queue",
            fmt::format("{} on {}", counted(static_cast<double>(f.waiting.size()), "waiting job"),
                        counted(spec.cluster.gpus(), "GPU")));
  if (!spec.about.empty()) page.about(spec.about);
  add_forecast_headline(page, f);
  if (!f.waiting.empty()) {
    add_starts(page, spec, f);
    add_start_bars(page, spec, f);
  }
  std::vector<std::string> assumptions{
      "no other job is submitted; a job that exceeds its time limit ends"};
  assumptions.insert(assumptions.end(), spec.assumptions.begin(), spec.assumptions.end());
  add_basis(page, {.simulated = cluster_words(spec.cluster),
                   .written = written,
                   .assumptions = std::move(assumptions),
                   .presets = &presets});
  page.foot(fmt::format("Scenario: {}.", spec.file));
  return page.html(chart_library());
}

}  // namespace lockstep
