#include "tools/views/queue/queue_page.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"
#include "tools/views/queue/queue_gantt.hpp"
#include "tools/views/queue/queue_table.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/claim_section.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::size_t kFirstRows = 12;
constexpr std::size_t kLongestWaits = 20;
/// Fields that are often asked for beside the figures of the page.
constexpr std::array<std::string_view, 3> kMoreOfQueue{"wait_p99_s", "slowdown_mean",
                                                       "useful_share"};

std::string count_text(std::size_t count) { return grouped(static_cast<double>(count)); }

/// A figure of a spread; "-" without jobs.
std::string spread_figure(const std::optional<QueueSpread>& spread, double QueueSpread::* which) {
  return spread ? page_duration((*spread).*which) : "-";
}

/// "of 100 jobs ended", and what became of the others.
std::string ended_words(const QueueSummary& s) {
  std::string out = fmt::format("of {} jobs ended", count_text(s.all.jobs));
  const std::size_t running = s.all.jobs - s.all.ended - s.never_started;
  if (running > 0) out += fmt::format("; {} had started and not ended", count_text(running));
  if (s.never_started > 0) out += fmt::format("; {} never started", count_text(s.never_started));
  return out;
}

void add_queue_headline(Page& page, const QueueAnswer& a) {
  const QueueSummary& s = a.summary;
  Html words = escaped("No job waits.");
  if (s.all.wait_s && s.all.wait_s->most > 0) {
    words = escaped(s.all.waiting > 0 ? "A job waits at least " : "A job waits ") +
            strong(page_duration(s.all.wait_s->mean)) +
            escaped(s.all.wait_s->p99 < s.all.wait_s->most
                        ? " on average, one in a hundred longer than "
                        : " on average, the longest ") +
            strong(page_duration(s.all.wait_s->p99)) + escaped(".");
  }
  if (s.all.waiting > 0) {
    words += escaped(
        fmt::format(" {} at the end, counted as far as {}.",
                    s.all.waiting == 1 ? "One job waits" : count_text(s.all.waiting) + " jobs wait",
                    s.all.waiting == 1 ? "it has" : "they have"));
  }
  words += escaped(" Jobs hold ") + strong(page_percent(s.utilisation, 1)) +
           escaped(" of the GPU time.");
  if (s.power) {
    const std::string warning = limit_warning(s.power->peak, *a.spec.power);
    if (!warning.empty()) words = strong(warning) + escaped(". ") + words;
  }
  if (const std::string stands = stand_in_words(a.spec); !stands.empty()) {
    words += escaped(" ") + strong(stands) + escaped(".");
  }
  if (a.result.stopped) words += escaped(" The simulation was interrupted: all is of before.");
  page.headline(words);
  std::vector<PageFigure> figures{
      {.value = spread_figure(s.all.wait_s, &QueueSpread::mean),
       .label = "mean wait",
       .field = "wait_mean_s"},
      {.value = spread_figure(s.all.wait_s, &QueueSpread::p50),
       .label = "median wait",
       .field = "wait_p50_s"},
      {.value = spread_figure(s.all.completion_s, &QueueSpread::mean),
       .label = "mean completion time",
       .field = "completion_mean_s"},
      {.value = page_percent(s.utilisation, 1),
       .label = "of the GPU time held",
       .field = "utilisation"},
      {.value = count_text(s.all.ended), .label = ended_words(s), .field = "ended"}};
  if (s.cut > 0) {
    figures.push_back({.value = count_text(s.cut),
                       .label = "jobs cut by their time limit or their reservation's end",
                       .field = "cut"});
  }
  if (s.cancelled > 0) {
    figures.push_back({.value = count_text(s.cancelled),
                       .label = "jobs cancelled: refused, preempted for good, or by a dependency "
                                "that cannot be met"});
  }
  if (a.result.suspensions > 0) {
    figures.push_back({.value = grouped(static_cast<double>(a.result.suspensions)),
                       .label = "suspensions",
                       .field = "suspensions"});
  }
  if (a.result.evictions > 0) {
    figures.push_back({.value = grouped(static_cast<double>(a.result.evictions)),
                       .label = "evictions",
                       .field = "evictions"});
  }
  if (a.result.node_failures > 0) {
    figures.push_back({.value = grouped(static_cast<double>(a.result.node_failures)),
                       .label = "node failures",
                       .field = "node_failures"});
  }
  if (s.burst && s.burst->jobs > 0) {
    figures.push_back({.value = page_usd(s.burst->counts.usd()),
                       .label = fmt::format("for {} on rented nodes",
                                            counted(static_cast<double>(s.burst->jobs), "job")),
                       .field = "burst.usd"});
  }
  if (s.power) {
    figures.push_back(
        {.value = page_energy(s.power->energy.base_units()),
         .label = fmt::format("at the site's meter, {} on average",
                              page_watts(mean_power(s.power->facility).base_units()))});
  }
  if (const auto rate = s.bill.usd_per_held_gpu_hour()) {
    figures.push_back({.value = page_usd(*rate),
                       .label = "an hour of a GPU that a job held, " + billed_words(a.spec, s.bill),
                       .field = "usd_per_held_gpu_hour"});
    if (s.bill.owned_usd && s.bill.rent_usd) {
      figures.push_back({.value = page_usd(*s.bill.rent_usd),
                         .label = "to rent all machines, to compare: no job is billed by it",
                         .field = "rent_usd"});
    }
  }
  page.figures(figures);
}

void add_queue_buckets(Page& page, const QueueAnswer& a) {
  constexpr std::array<std::string_view, kQueueBuckets> kWords{
      "work that lasts",
      "held by a job that restarts or was placed anew",
      "work that an eviction or a failure threw away",
      "held by a training beyond what its work takes alone on the cluster's first nodes: where it "
      "is, and who is beside it",
      "free while jobs wait: none fits, or the order, a quota or a reservation holds them",
      "free, set aside by an advance reservation",
      "free while no job waits",
      "in repair",
      "kept for suspended jobs, and unused",
      "free on nodes that take no jobs: drained, in a lemon's repair, or tested",
      "free while jobs wait, without power: the site's cap"};
  const std::array<double, kQueueBuckets> shares = queue_shares(a);
  const double longest = std::max(*std::ranges::max_element(shares), 1e-12);
  PageTable table{.columns = {{.title = "GPU time"},
                              {.title = "of all", .numeric = true},
                              {.title = "GPU hours", .numeric = true},
                              {.title = "What it is"}}};
  for (std::size_t b = 0; b < kQueueBuckets; ++b) {
    if (shares[b] <= 0) continue;
    const double hours = a.result.books[b].gpu_hours();
    table.rows.push_back(
        {PageCell::text(kQueueBucketNames[b]),
         {.content = with_bar(page_part(shares[b]), shares[b] / longest), .sort = shares[b]},
         PageCell::number(grouped(hours), hours),
         PageCell::text(kWords[b])});
  }
  std::string looked_after = health_words(a);
  if (!looked_after.empty()) looked_after = " Health of the nodes: " + looked_after + ".";
  page.section("Where the GPU time goes",
               fmt::format("{} over {}.{}", counted(a.spec.cluster.gpus(), "GPU"),
                           page_duration(to_seconds(a.result.end).base_units()), looked_after));
  page.table(table);
}

/// What was rented, where that GPU time went, and what the queue would be without.
void add_burst(Page& page, const QueueAnswer& a) {
  if (!a.summary.burst) return;
  const BurstSummary& of = *a.summary.burst;
  std::string words = of.jobs > 0 ? burst_words(of) + "." : "No job ran on rented nodes.";
  if (of.without) words += " Without them: " + unburst_words(of) + ".";
  page.section("Rented nodes", words);
  const double all = of.counts.rented.gpu_seconds();
  if (all <= 0) return;
  constexpr std::array<std::string_view, kRentedBuckets> kWords{
      "work, as long as it takes on the cluster",
      "held beyond what the work takes there; below 0 where rented nodes are faster",
      "held by a job whose nodes do not serve yet, or that restarts",
      "held by a job that moves its data",
      "of nodes that are kept for the next job, and what jobs leave of their nodes"};
  PageTable table{.columns = {{.title = "Rented GPU time"},
                              {.title = "of all", .numeric = true},
                              {.title = "GPU hours", .numeric = true},
                              {.title = "What it is"}}};
  for (std::size_t b = 0; b < kRentedBuckets; ++b) {
    const GpuTime& time = of.counts.books[b];
    if (time == GpuTime()) continue;
    const double share = time.gpu_seconds() / all;
    table.rows.push_back(
        {PageCell::text(kRentedBucketNames[b]), PageCell::number(page_percent(share, 1), share),
         PageCell::number(grouped(time.gpu_hours()), time.gpu_hours()), PageCell::text(kWords[b])});
  }
  page.table(table);
}

json series_line(const std::string& name, const std::string& colour, bool filled,
                 const std::vector<double>& values, double bin, double end) {
  json points = json::array();
  for (std::size_t b = 0; b < values.size(); ++b) {
    points.push_back({four_digits(static_cast<double>(b) * bin), four_digits(values[b])});
  }
  if (!values.empty()) points.push_back({four_digits(end), four_digits(values.back())});
  json out{{"type", "line"},
           {"name", name},
           {"step", "end"},
           {"showSymbol", false},
           {"lineStyle", {{"width", 1.5}, {"color", colour}}},
           {"itemStyle", {{"color", colour}}},
           {"data", points}};
  if (filled) out["areaStyle"] = {{"color", colour}, {"opacity", 0.15}};
  return out;
}

struct SeriesChart {
  std::string title, about, unit;
  std::vector<std::pair<std::string, const std::vector<double>*>> lines;
  double most = 0;  ///< of the axis; 0: as the values go
};

void add_series(Page& page, const QueueAnswer& a, const SeriesChart& chart) {
  const double end_s = to_seconds(a.result.end).base_units();
  const AxisUnit unit = long_time_unit(end_s);
  json series = json::array();
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const auto& [name, values] = chart.lines[i];
    series.push_back(series_line(name, chart_colour(i), i == 0, *values,
                                 a.result.series.bin_s / unit.size, end_s / unit.size));
  }
  json axis{{"type", "value"}, {"min", 0}, {"name", chart.unit}};
  if (chart.most > 0) {
    axis["max"] = chart.most;
    axis["interval"] = chart.most / 4;
  }
  // The axis has its unit above it, and several lines a row of names above that.
  const bool named = chart.lines.size() > 1;
  page.chart({.title = chart.title,
              .about = chart.about,
              .summary = chart.title + " over time, as lines.",
              .height_px = named ? 262 : 240},
             {{"grid", plot_grid(named ? 56 : 34, 4)},
              {"legend", {{"top", 0}, {"left", 0}, {"show", named}}},
              {"tooltip", {{"trigger", "axis"}}},
              {"xAxis", time_axis(end_s / unit.size, unit.name)},
              {"yAxis", axis},
              {"series", series}});
}

void add_power_series(Page& page, const QueueAnswer& a) {
  if (!a.summary.power) return;
  const QueuePower& p = *a.summary.power;
  const AxisUnit unit = power_unit(p.peak.base_units());
  std::vector<double> power;
  power.reserve(a.result.series.facility_w.size());
  for (const double watts : a.result.series.facility_w) power.push_back(watts / unit.size);
  std::string about =
      fmt::format("At the site's meter; at most {} at any time{}.", page_watts(p.peak.base_units()),
                  a.spec.power_cap ? ", of a cap of " + page_watts(a.spec.power_cap->base_units())
                                   : std::string());
  if (p.least < p.most) {
    about += fmt::format(
        " A GPU of a job that does not say what it draws is taken to draw {}; the energy is "
        "between "
        "{} and {}, by what it is.",
        page_watts(p.given_gpu.base_units()), page_energy(p.least.base_units()),
        page_energy(p.most.base_units()));
  }
  add_series(page, a,
             {.title = "Power of the site",
              .about = about,
              .unit = unit.name,
              .lines = {{unit.name, &power}}});
}

void add_over_time(Page& page, const QueueAnswer& a) {
  const QueueSeries& s = a.result.series;
  if (s.held_gpus.empty()) return;
  page.section("Over time", fmt::format("Means over {}.", page_duration(s.bin_s)));
  SeriesChart held{.title = "GPUs held",
                   .about = "By running jobs, of those that the cluster has.",
                   .unit = "GPUs",
                   .lines = {{"held", &s.held_gpus}},
                   .most = static_cast<double>(a.spec.cluster.gpus())};
  if (a.result.node_failures > 0) held.lines.emplace_back("in repair", &s.broken_gpus);
  const auto is_some = [](double gpus) { return gpus > 0; };
  if (std::ranges::any_of(s.drained_gpus, is_some)) {
    held.lines.emplace_back("drained, and free", &s.drained_gpus);
  }
  add_series(page, a, held);
  const auto is_rented = [](double gpus) { return gpus > 0; };
  if (std::ranges::any_of(s.rented_gpus, is_rented)) {
    add_series(page, a,
               {.title = "GPUs rented",
                .about = "Of nodes that are paid for, whether jobs hold them or not.",
                .unit = "GPUs",
                .lines = {{"rented", &s.rented_gpus}}});
  }
  add_power_series(page, a);
  const auto some_wait = [](double jobs) { return jobs > 0; };
  if (std::ranges::none_of(s.waiting_jobs, some_wait)) return;
  add_series(page, a,
             {.title = "Jobs that wait",
              .about = {},
              .unit = "jobs",
              .lines = {{"jobs", &s.waiting_jobs}}});
  add_series(page, a,
             {.title = "GPUs that they ask for",
              .about = {},
              .unit = "GPUs",
              .lines = {{"GPUs", &s.waiting_gpus}}});
}

void add_groups(Page& page, std::string_view title, const std::vector<QueueGroup>& groups) {
  if (groups.size() < 2) return;
  using Spread = std::optional<QueueSpread>;
  const auto duration = [](const Spread& spread, double QueueSpread::* which) {
    if (!spread) return PageCell::unknown();
    return PageCell::number(page_duration((*spread).*which), (*spread).*which);
  };
  PageTable table{.columns = {{.title = std::string(title)},
                              {.title = "Jobs", .numeric = true},
                              {.title = "GPU hours", .numeric = true},
                              {.title = "Waiting",
                               .numeric = true,
                               .about = "at the end; their waits count as far as they have come"},
                              {.title = "Mean wait", .numeric = true},
                              {.title = "Median", .numeric = true},
                              {.title = "90 %", .numeric = true},
                              {.title = "Longest", .numeric = true},
                              {.title = "Mean completion", .numeric = true},
                              {.title = "Mean slowdown",
                               .numeric = true,
                               .about = "completion over duration, of which 10 s count at least"}},
                  .first_rows = kFirstRows};
  const bool bursts = groups.front().burst.has_value();
  if (bursts) table.columns.push_back({.title = "Rented GPU hours", .numeric = true});
  const bool paid = groups.front().usd.has_value();
  if (paid) {
    table.columns.push_back({.title = "USD",
                             .numeric = true,
                             .about = "if those who hold GPUs pay for all machines, by the hour"});
  }
  for (const QueueGroup& g : groups) {
    std::vector<PageCell> row{
        PageCell::text(g.name),
        PageCell::number(count_text(g.jobs), static_cast<double>(g.jobs)),
        PageCell::number(grouped(g.gpu_hours), g.gpu_hours),
        PageCell::number(count_text(g.waiting), static_cast<double>(g.waiting)),
        duration(g.wait_s, &QueueSpread::mean),
        duration(g.wait_s, &QueueSpread::p50),
        duration(g.wait_s, &QueueSpread::p90),
        duration(g.wait_s, &QueueSpread::most),
        duration(g.completion_s, &QueueSpread::mean),
        g.slowdown ? PageCell::number(significant(g.slowdown->mean), g.slowdown->mean)
                   : PageCell::unknown()};
    if (bursts) {
      row.push_back(PageCell::number(grouped(g.burst->gpu_hours), g.burst->gpu_hours));
    }
    if (paid) row.push_back(PageCell::number(page_usd(*g.usd), *g.usd));
    table.rows.push_back(std::move(row));
  }
  page.section("By " + in_sentence(title));
  page.table(table);
}

void add_campaigns(Page& page, const QueueAnswer& a) {
  if (a.summary.campaigns.empty()) return;
  PageTable table{
      .columns = {{.title = "Campaign"},
                  {.title = "Stopping"},
                  {.title = "Trials", .numeric = true},
                  {.title = "To their ends", .numeric = true},
                  {.title = "Done", .numeric = true},
                  {.title = "Makespan", .numeric = true},
                  {.title = "At best",
                   .numeric = true,
                   .about = "if the cluster were its own: what its longest trial works, "
                            "or what all work over as many as fit at a time"},
                  {.title = "Mean wait", .numeric = true},
                  {.title = "GPU hours", .numeric = true},
                  {.title = "Saved",
                   .numeric = true,
                   .about = "against all trials running to their ends"}},
      .first_rows = kFirstRows};
  const bool paid = a.summary.campaigns.front().usd.has_value();
  if (paid) table.columns.push_back({.title = "USD", .numeric = true});
  const auto time = [](const std::optional<double>& seconds) {
    return seconds ? PageCell::number(page_duration(*seconds), *seconds) : PageCell::unknown();
  };
  const auto count = [](std::size_t of) {
    return PageCell::number(count_text(of), static_cast<double>(of));
  };
  for (const CampaignSummary& c : a.summary.campaigns) {
    std::vector<PageCell> row{
        PageCell::text(c.name),
        PageCell::text(kStoppingNames[static_cast<std::size_t>(c.stopping)]),
        count(c.trials),
        count(c.finished),
        time(c.done_s),
        time(c.makespan_s),
        time(c.ideal_s),
        time(c.wait_s ? std::optional(c.wait_s->mean) : std::nullopt),
        PageCell::number(grouped(c.gpu_hours), c.gpu_hours),
        c.saved_gpu_hours ? PageCell::number(grouped(*c.saved_gpu_hours), *c.saved_gpu_hours)
                          : PageCell::unknown()};
    if (paid) row.push_back(PageCell::number(page_usd(*c.usd), *c.usd));
    table.rows.push_back(std::move(row));
  }
  page.section("Campaigns", "Trials of one job, the worse of which may be stopped early.");
  page.table(table);
  if (const std::vector<std::string> orders = order_sentences(a); !orders.empty()) {
    page.list(orders);
  }
}

void add_trainings(Page& page, const QueueAnswer& a) {
  if (a.summary.trainings.empty()) return;
  PageTable table{.columns = {{.title = "Training"},
                              {.title = "Jobs", .numeric = true},
                              {.title = "Step alone", .numeric = true},
                              {.title = "Mean slowdown", .numeric = true},
                              {.title = "Largest", .numeric = true}}};
  for (const TrainingSummary& t : a.summary.trainings) {
    const auto times = [](const std::optional<double>& slowdown) {
      if (!slowdown) return PageCell::unknown();
      return PageCell::number(fmt::format("{:.3f}×", *slowdown), *slowdown);
    };
    table.rows.push_back({PageCell::text(t.name),
                          PageCell::number(count_text(t.jobs), static_cast<double>(t.jobs)),
                          PageCell::number(page_duration(t.reference_step_s), t.reference_step_s),
                          times(t.mean_slowdown), times(t.most_slowdown)});
  }
  page.section("Trainings",
               "Steps are simulated where each job is placed, beside the jobs that it shares links "
               "with; a step alone is one on the cluster's first nodes.");
  page.table(table);
}

void add_recorded(Page& page, const QueueAnswer& a) {
  if (!a.summary.recorded) return;
  const RecordedQueue& r = *a.summary.recorded;
  PageTable table{.columns = {{.title = "What"}, {.title = "Here", .numeric = true}}};
  const auto add = [&](const char* what, const std::string& value) {
    table.rows.push_back({PageCell::text(what), PageCell::text(value)});
  };
  add("Jobs with a recorded start", count_text(r.jobs));
  add("Mean wait as recorded", page_duration(r.mean_wait_s));
  add("Mean wait as simulated", page_duration(r.simulated_mean_wait_s));
  add("Starts of a job apart, median", page_duration(r.median_gap_s));
  add("The same, at most", page_duration(r.most_gap_s));
  if (r.with_nodes > 0) {
    add("Jobs on the same nodes",
        fmt::format("{} of {}", count_text(r.same_nodes), count_text(r.with_nodes)));
  }
  page.section("Against what was recorded",
               "What a real scheduler made of the same jobs, beside this simulation.");
  page.table(table);
}

void add_longest_waits(Page& page, const QueueAnswer& a) {
  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < a.result.jobs.size(); ++j) {
    if (a.result.jobs[j].waited > 0) order.push_back(j);
  }
  const std::size_t shown = std::min(order.size(), kLongestWaits);
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(shown),
                            [&](std::size_t x, std::size_t y) {
                              const RunTime of_x = a.result.jobs[x].waited;
                              const RunTime of_y = a.result.jobs[y].waited;
                              return of_x != of_y ? of_x > of_y : x < y;
                            });
  if (shown == 0) return;
  PageTable table{.columns = {{.title = "Job"},
                              {.title = "GPUs", .numeric = true},
                              {.title = "Waited", .numeric = true},
                              {.title = "Submitted", .numeric = true},
                              {.title = "Duration", .numeric = true},
                              {.title = "Evicted", .numeric = true}},
                  .first_rows = kFirstRows};
  for (std::size_t i = 0; i < shown; ++i) {
    const QueueJob& job = a.spec.jobs[order[i]];
    const JobOutcome& of = a.result.jobs[order[i]];
    const auto cell = [](RunTime time) {
      const double seconds = to_seconds(time).base_units();
      return PageCell::number(page_duration(seconds), seconds);
    };
    table.rows.push_back({PageCell::text(a.spec.job_name(order[i])),
                          PageCell::number(grouped(job.gpus), job.gpus), cell(of.waited),
                          cell(job.submit), cell(job.runs),
                          PageCell::number(grouped(of.evictions), of.evictions)});
  }
  page.section("Who waits longest");
  page.table(table);
}

}  // namespace

std::string queue_page(const QueueAnswer& a, const Behind* behind, const ClaimCheck* claim) {
  Page page("Queue",
            fmt::format("{} on {}", counted(static_cast<double>(a.spec.jobs.size()), "job"),
                        counted(a.spec.cluster.gpus(), "GPU")));
  if (behind != nullptr) behind->open_figures(page);
  if (!a.spec.about.empty()) page.about(a.spec.about);
  add_queue_headline(page, a);
  add_claim_section(page, claim);
  add_queue_buckets(page, a);
  add_burst(page, a);
  add_over_time(page, a);
  add_queue_gantt(page, a);
  add_campaigns(page, a);
  add_trainings(page, a);
  add_groups(page, "GPUs", a.summary.by_gpus);
  add_groups(page, "Account", a.summary.by_account);
  add_groups(page, "User", a.summary.by_user);
  add_groups(page, "Partition", a.summary.by_partition);
  add_groups(page, "Quality of service", a.summary.by_qos);
  add_recorded(page, a);
  add_longest_waits(page, a);
  add_basis(page, {.simulated = cluster_words(a.spec.cluster),
                   .written = a.written,
                   .assumptions = a.spec.assumptions,
                   .presets = behind != nullptr ? &behind->presets() : nullptr});
  if (behind != nullptr) behind->add_to(page, kMoreOfQueue);
  page.foot(fmt::format("Scenario: {}.", a.spec.file));
  return page.html(chart_library());
}

}  // namespace lockstep
