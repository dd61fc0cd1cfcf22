#include "tools/views/serving/serving_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/claim_section.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/serving/serving_words.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kServingBins = 240;
constexpr int kServingQuantiles = 200;
/// The headline's numbers, and what is often asked beside them and the figures.
constexpr std::array<std::string_view, 6> kMoreOfService{
    "ttft_mean_s", "ttft_p99_s",     "tpot_mean_s",
    "tpot_p99_s",  "attained_share", "usd_per_million_output_tokens"};

double serving_seconds(RunTime time) { return to_seconds(time).base_units(); }

/// The price of a million tokens of answers, and beside what is owned what it would be rented;
/// empty if there is none.
Html money_words(const ServingAnswer& a) {
  const std::optional<ServingMoney> money = money_of(a.spec, a.report);
  if (!money) return {};
  const CostSpec* const prices = a.spec.power ? &a.spec.power->cost : nullptr;
  const auto text = [](const TokenPrice& price, const std::string& how) {
    return strong(page_with(price.per_million_output, "USD")) + escaped(", " + how);
  };
  const bool rented = money->of == MoneyOf::rent;
  const std::string rent = a.report.rent ? serving_rent_words(a.spec) : std::string();
  Html out = escaped(" A million tokens of answers cost ") +
             text(money->price, rented ? rent : words_of(money->of, prices));
  if (!rented && a.report.rent) out += escaped("; for comparison ") + text(*a.report.rent, rent);
  if (rented && prices != nullptr && has_prices(*prices)) {
    out += escaped("; for comparison ") +
           text(cost_price(a.report), words_of(MoneyOf::partial, prices));
  }
  return out + escaped(".");
}

/// " The step of training takes 1.28 times as long as without the service."
Html beside_words(const ServingBeside& beside) {
  Html out;
  for (const BesideJob& job : beside.jobs) {
    if (job.alone_s <= 0) continue;
    out += escaped(" A step of ") + strong(job.name) + escaped(" takes ") +
           strong(fmt::format("{:.2f} times", job.step_s / job.alone_s)) +
           escaped(" as long as without the service.");
  }
  return out;
}

void add_serving_headline(Page& page, const ServingAnswer& a) {
  const ServingFigures& f = a.report.figures;
  if (f.served == 0) {
    page.headline(escaped("No request was served to its end."));
    return;
  }
  Html words = escaped("The first token is there after ") + strong(page_duration(f.ttft_s.mean)) +
               escaped(" on average, for one request in a hundred later than ") +
               strong(page_duration(f.ttft_s.p99)) + escaped("; then one every ") +
               strong(page_duration(f.tpot_s.mean)) + escaped(".");
  if (a.spec.limits_requests()) {
    // Where only some users ask for something, all others' requests have to be served.
    const Html share = strong(page_percent(a.report.attained, 1));
    words += a.spec.objectives.per_request()
                 ? escaped(" The objectives are kept for ") + share + escaped(" of the requests.")
                 : escaped(" ") + share +
                       escaped(
                           " of the requests are served, and within the limits of their users "
                           "where these have any.");
  }
  if (a.report.beside) words += beside_words(*a.report.beside);
  if (a.report.stopped) words += escaped(" The simulation was interrupted: all is of before.");
  words += money_words(a);
  if (const std::string course = load_course_words(a); !course.empty()) {
    words += escaped(" " + course);
  }
  page.headline(words);
  std::vector<PageFigure> figures{
      {.value = page_duration(f.ttft_s.p50), .label = "median time to the first token"},
      {.value = page_duration(f.tpot_s.p50), .label = "median time per token"},
      {.value = compact(f.output_per_s / a.spec.gpus()),
       .label = "output tokens/s per GPU",
       .field = "output_tokens_per_s_per_gpu"},
      {.value = significant(f.per_user),
       .label = "tokens/s that a user sees",
       .field = "tokens_per_s_per_user"},
      {.value = grouped(static_cast<double>(f.served)),
       .label = fmt::format("of {} requests served",
                            grouped(static_cast<double>(a.spec.requests.size()))),
       .field = "served"}};
  if (a.spec.failures) {
    figures.push_back({.value = grouped(a.report.retried),
                       .label = fmt::format("requests computed again, of {} that failed",
                                            counted(a.report.failures, "replica")),
                       .field = "retried_requests"});
  }
  if (a.spec.admission && a.spec.admission->limits()) {
    figures.push_back({.value = grouped(a.report.shed),
                       .label = "requests shed, as all replicas were busy",
                       .field = "shed"});
  }
  if (a.spec.admission && a.spec.admission->patience) {
    figures.push_back({.value = grouped(a.report.gave_up),
                       .label = "requests given up by users who waited",
                       .field = "gave_up"});
  }
  if (a.spec.restarts) {
    figures.push_back({.value = grouped(a.report.restarts),
                       .label = restart_words(a),
                       .field = "replica_restarts"});
  }
  if (!a.spec.prefixes.empty()) {
    figures.push_back({.value = page_percent(a.report.found_share, 1),
                       .label = "of the tokens of prompts were held already",
                       .field = "prefix_found_share"});
  }
  page.figures(figures);
}

void add_served_times(Page& page, const ServingAnswer& a) {
  const ServingFigures& f = a.report.figures;
  PageTable table{.columns = {{.title = "Time"},
                              {.title = "Mean", .numeric = true},
                              {.title = "Median", .numeric = true},
                              {.title = "90 %", .numeric = true},
                              {.title = "99 %", .numeric = true},
                              {.title = "90 % interval of the mean", .numeric = true}}};
  const auto add = [&](const char* name, const ServingSpread& s, const std::string& interval) {
    if (s.p50 <= 0) return;
    const auto cell = [](double seconds) {
      return PageCell::number(page_duration(seconds), seconds);
    };
    table.rows.push_back({PageCell::text(name), cell(s.mean), cell(s.p50), cell(s.p90), cell(s.p99),
                          interval.empty() ? PageCell::unknown() : PageCell::text(interval)});
  };
  const auto& interval = a.report.interval;
  const auto between = [&](double low, double high) {
    return interval ? fmt::format("{} to {}", page_duration(low), page_duration(high))
                    : std::string();
  };
  add("to the first token (TTFT)", f.ttft_s,
      interval ? between(interval->ttft_low_s, interval->ttft_high_s) : "");
  add("per token behind it (TPOT)", f.tpot_s,
      interval ? between(interval->tpot_low_s, interval->tpot_high_s) : "");
  add("between tokens (ITL)", f.itl_s, "");
  add("end to end", f.e2e_s, "");
  page.section("What requests see",
               interval ? fmt::format("Intervals: {}.", interval->basis) : std::string());
  page.table(table);
}

/// "requests that keep their limits", of some users alone where the name begins with them.
std::string attained_words(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string words = "requests that keep their limits";
  return dot == std::string::npos ? words : name.substr(0, dot) + ": " + words;
}

void add_objectives(Page& page, const ServingAnswer& a) {
  if (a.report.objectives.empty()) return;
  PageTable table{.columns = {{.title = "Objective"},
                              {.title = "Limit", .numeric = true},
                              {.title = "Came to", .numeric = true},
                              {.title = "Kept"}}};
  for (const ObjectiveCheck& check : a.report.objectives) {
    const bool share = check.name.ends_with("attained");
    const auto cell = [&](double value) {
      return PageCell::number(share ? page_percent(value, 1) : page_duration(value), value);
    };
    table.rows.push_back({PageCell::text(share ? attained_words(check.name) : check.name),
                          cell(check.limit), cell(check.value),
                          PageCell::text(check.kept ? "yes" : "no")});
  }
  page.section("Objectives");
  page.table(table);
}

/// The share of requests whose time is not above each of some lengths, as a line.
nlohmann::json cumulative_line(const char* name, std::size_t colour, std::vector<double> values,
                               double unit) {
  std::ranges::sort(values);
  nlohmann::json points = nlohmann::json::array();
  for (int q = 0; q <= kServingQuantiles && !values.empty(); ++q) {
    const auto at = static_cast<std::size_t>(
        std::round(static_cast<double>(values.size() - 1) * q / kServingQuantiles));
    points.push_back({four_digits(values[at] / unit), four_digits(100.0 * q / kServingQuantiles)});
  }
  return {{"type", "line"},
          {"name", name},
          {"showSymbol", false},
          {"lineStyle", {{"width", 1.5}, {"color", chart_colour(colour)}}},
          {"itemStyle", {{"color", chart_colour(colour)}}},
          {"data", points}};
}

void add_distribution(Page& page, const ServingAnswer& a) {
  std::vector<double> first, whole;
  for (const ServedRequest& r : a.spec.requests) {
    if (!r.served()) continue;
    first.push_back(serving_seconds(r.time_to_first()));
    whole.push_back(serving_seconds(r.end_to_end()));
  }
  if (first.empty()) return;
  const double longest = std::max(*std::ranges::max_element(whole), 1e-9);
  const AxisUnit unit = long_time_unit(longest);
  page.chart(
      {.title = "Requests that have their first and last token within a time",
       .about = {},
       .summary = "Shares of requests by their time to the first token and end to end.",
       .height_px = 260},
      {{"grid", plot_grid(34, 4)},
       {"legend", {{"top", 0}, {"left", 0}}},
       {"tooltip", {{"trigger", "axis"}}},
       {"xAxis", time_axis(longest / unit.size, unit.name)},
       {"yAxis",
        {{"type", "value"}, {"min", 0}, {"max", 100}, {"axisLabel", {{"formatter", "{value} %"}}}}},
       {"series",
        {cumulative_line("first token", 0, std::move(first), unit.size),
         cumulative_line("last token", 1, std::move(whole), unit.size)}}});
}

void add_serving_time(Page& page, const ServingAnswer& a) {
  if (a.report.figures.span_s <= 0) return;
  constexpr std::array<std::string_view, kServingBuckets> kWords{
      "passes over prompts, and what decoding requests wait for beside them",
      "of passes that decode: products, most of it the reading of weights",
      "of passes that decode: attention, the reading of keys and values",
      "of passes that decode: between the GPUs of a replica",
      "of passes: the engine's own, which the GPU waits for",
      "no request is there",
      "broken, or being started again"};
  const std::array<double, kServingBuckets>& shares = a.report.shares;
  const double longest = std::max(*std::ranges::max_element(shares), 1e-12);
  PageTable table{.columns = {{.title = "GPU time"},
                              {.title = "of all", .numeric = true},
                              {.title = "What it is"}}};
  for (std::size_t b = 0; b < kServingBuckets; ++b) {
    if (shares[b] <= 0) continue;
    table.rows.push_back(
        {PageCell::text(kServingBucketNames[b]),
         {.content = with_bar(page_part(shares[b]), shares[b] / longest), .sort = shares[b]},
         PageCell::text(kWords[b])});
  }
  page.section("Where the GPU time goes", fmt::format("{} over {}.", counted(a.spec.gpus(), "GPU"),
                                                      page_duration(a.report.figures.span_s)));
  page.table(table);
}

void add_serving_pools(Page& page, const ServingAnswer& a) {
  PageTable table{.columns = {{.title = "Pool"},
                              {.title = "Replicas", .numeric = true},
                              {.title = "GPUs", .numeric = true},
                              {.title = "Weights per GPU", .numeric = true},
                              {.title = "Cache of a replica, tokens",
                               .numeric = true,
                               .about = "whose keys and values fit"},
                              {.title = "Filled at most", .numeric = true},
                              {.title = "Preempted", .numeric = true},
                              {.title = "Replicas on", .numeric = true, .about = "on average"},
                              {.title = "Busy", .numeric = true}}};
  constexpr double kWhole = 0.005;  // less of one that was off now and then does not print
  const double span = a.report.figures.span_s;
  for (const ServingPoolReport& p : a.report.pools) {
    const double gib = p.weights_bytes / (1 << 30);
    const double busy = span > 0 ? p.busy_s / (span * p.replicas) : 0;
    table.rows.push_back(
        {PageCell::text(p.name), PageCell::number(grouped(p.replicas), p.replicas),
         PageCell::number(grouped(p.gpus), p.gpus),
         PageCell::number(fmt::format("{:.1f} GiB", gib), gib),
         PageCell::number(grouped(std::floor(p.cache_tokens)), p.cache_tokens),
         PageCell::number(page_percent(p.fullest, 1), p.fullest),
         PageCell::number(grouped(p.preempted), p.preempted),
         PageCell::number(
             std::abs(p.on - p.replicas) < kWhole ? grouped(p.replicas) : significant(p.on), p.on),
         PageCell::number(page_percent(busy, 1), busy)});
  }
  page.section("Pools");
  page.table(table);
}

PageCell region_cell(const std::optional<double>& value, double unit = 1) {
  return value ? PageCell::number(significant(*value / unit), *value) : PageCell::unknown();
}

/// Adds what users of each place saw, and where they were served.
void add_populations(Page& page, const ServingAnswer& a) {
  if (a.report.populations.empty()) return;
  const bool away = !a.spec.regions.all.empty();
  PageTable table{.columns = {{.title = "Users"},
                              {.title = "Requests", .numeric = true},
                              {.title = "First token", .numeric = true, .about = "mean"},
                              {.title = "99 %", .numeric = true},
                              {.title = "Per token", .numeric = true, .about = "mean"},
                              {.title = "99 %", .numeric = true}}};
  if (a.spec.limits_requests()) {
    table.columns.push_back({.title = "Within their limits", .numeric = true});
  }
  if (away) {
    table.columns.push_back({.title = "Network", .numeric = true, .about = "there and back, mean"});
    table.columns.push_back({.title = "Served in"});
  }
  const auto time = [](const ServingSpread& s, double seconds) {
    return s.any ? PageCell::number(page_duration(seconds), seconds) : PageCell::unknown();
  };
  for (const ServingPopulationReport& p : a.report.populations) {
    const ServingSpread &first = p.figures.ttft_s, &each = p.figures.tpot_s;
    std::vector<PageCell> row{
        PageCell::text(p.name),  PageCell::number(grouped(p.requests), p.requests),
        time(first, first.mean), time(first, first.p99),
        time(each, each.mean),   time(each, each.p99)};
    if (a.spec.limits_requests()) {
      row.push_back(PageCell::number(page_percent(p.attained, 1), p.attained));
    }
    if (away) {
      row.push_back(PageCell::number(page_duration(p.away_s), p.away_s));
      row.push_back(PageCell::text(region_shares_words(p)));
    }
    table.rows.push_back(std::move(row));
  }
  page.section("Users");
  page.table(table);
}

/// Adds what replicas in each place did, drew and cost.
void add_regions(Page& page, const ServingAnswer& a) {
  if (a.report.regions.empty()) return;
  PageTable table{.columns = {{.title = "Region"},
                              {.title = "GPUs", .numeric = true},
                              {.title = "Requests", .numeric = true},
                              {.title = "Output tokens", .numeric = true},
                              {.title = "Busy", .numeric = true},
                              {.title = "Rent, USD", .numeric = true},
                              {.title = "Energy, MWh", .numeric = true},
                              {.title = "Energy, USD", .numeric = true},
                              {.title = "CO₂, t", .numeric = true}}};
  for (const ServingRegionReport& r : a.report.regions) {
    table.rows.push_back({PageCell::text(r.name), PageCell::number(grouped(r.gpus), r.gpus),
                          PageCell::number(grouped(r.requests), r.requests),
                          PageCell::number(grouped(r.output_tokens), r.output_tokens),
                          PageCell::number(page_percent(r.busy, 1), r.busy),
                          region_cell(r.rent_usd), region_cell(r.energy_j, kServedMegawattHour),
                          region_cell(r.energy_usd), region_cell(r.tonnes_co2)});
  }
  page.section("Regions");
  page.table(table);
}

/// Adds the tiers behind the caches of replicas, and their hits.
void add_cache_tiers(Page& page, const ServingAnswer& a) {
  if (!a.report.tiers) return;
  PageTable table{
      .columns = {
          {.title = "Memory"},
          {.title = "Of all", .numeric = true, .about = "tokens of prompts that were found there"},
          {.title = "Holds at most", .numeric = true},
          {.title = "Written", .numeric = true},
          {.title = "Loaded", .numeric = true},
          {.title = "Left", .numeric = true},
          {.title = "Held in the end", .numeric = true}}};
  const auto share = [](double of) { return PageCell::number(page_percent(of, 1), of); };
  const auto gigabytes = [](double bytes) {
    return PageCell::number(significant(bytes / 1e9) + " GB", bytes);
  };
  table.rows.push_back({PageCell::text("GPUs"), share(a.report.tiers->gpu_found_share),
                        PageCell::unknown(), PageCell::unknown(), PageCell::unknown(),
                        PageCell::unknown(), PageCell::unknown()});
  for (const ServingTier& tier : a.report.tiers->tiers) {
    table.rows.push_back({PageCell::text(std::string(tier_words(tier.name))),
                          share(tier.found_share), gigabytes(tier.capacity_bytes),
                          gigabytes(tier.written_bytes), gigabytes(tier.loaded_bytes),
                          gigabytes(tier.left_bytes), gigabytes(tier.held_bytes)});
  }
  page.section("Memory behind the caches", cache_tiers_words(*a.report.tiers) + ".");
  page.table(table);
}

void add_adapters(Page& page, const ServingAnswer& a) {
  if (a.report.adapters) page.section("Adapters", adapter_words(a) + ".");
}

void add_transfers_of_pools(Page& page, const ServingAnswer& a) {
  if (a.spec.pools.size() < 2) return;
  page.section("Keys and values between the pools", transfer_words(a) + ".");
}

/// Adds the effects of the service and the trainings on each other.
void add_serving_beside(Page& page, const ServingAnswer& a) {
  if (!a.report.beside) return;
  const ServingBeside& b = *a.report.beside;
  PageTable table{.columns = {{.title = "Who"},
                              {.title = "What"},
                              {.title = "Alone", .numeric = true},
                              {.title = "Beside", .numeric = true},
                              {.title = "Slower", .numeric = true}}};
  const auto add = [&](const std::string& who, const char* what, double alone, double beside) {
    if (alone <= 0) return;
    table.rows.push_back(
        {PageCell::text(who), PageCell::text(what), PageCell::number(page_duration(alone), alone),
         PageCell::number(page_duration(beside), beside),
         PageCell::number(fmt::format("{:.2f}×", beside / alone), beside / alone)});
  };
  const ServingFigures& f = a.report.figures;
  add("service", "first token, mean", b.alone.ttft_s.mean, f.ttft_s.mean);
  add("service", "per token, mean", b.alone.tpot_s.mean, f.tpot_s.mean);
  add("service", "per token, 99 %", b.alone.tpot_s.p99, f.tpot_s.p99);
  add("service", "wait for keys and values", b.transfer_alone_s, a.report.transfer_s);
  for (const BesideJob& job : b.jobs) add(job.name, "step", job.alone_s, job.step_s);
  page.section("Who slows whom", "Alone: with nothing else on the fabric.");
  page.table(table);
  PageTable links{.columns = {{.title = "Where they meet"},
                              {.title = "Full", .numeric = true},
                              {.title = "Service", .numeric = true},
                              {.title = "Trainings", .numeric = true}}};
  const auto gigabytes = [](double bytes) {
    return PageCell::number(significant(bytes / 1e9) + " GB", bytes);
  };
  for (const BesideLink& l : b.links) {
    links.rows.push_back({PageCell::text(l.name),
                          PageCell::number(page_percent(l.share, 1), l.share),
                          gigabytes(l.service_bytes), gigabytes(l.training_bytes)});
  }
  if (!links.rows.empty()) page.table(links);
  if (b.transfers.empty()) return;
  PageTable held{.columns = {{.title = "Held back by the other"},
                             {.title = "Slower", .numeric = true},
                             {.title = "On the link"}},
                 .first_rows = 12};
  for (const BesideTransfer& t : b.transfers) {
    const double slower = t.alone_s > 0 ? t.mean_s / t.alone_s : 0;
    held.rows.push_back({PageCell::text(t.job + ": " + t.name),
                         PageCell::number(fmt::format("{:.2f}×", slower), slower),
                         PageCell::text(t.link)});
  }
  page.table(held);
}

/// Requests, by bins of time.
struct ServingBins {
  double bin_s = 0;
  std::vector<double> arrivals, in_system, first_s;  ///< a second; on average; mean TTFT
};

ServingBins bins_of(const ServingAnswer& a) {
  ServingBins out;
  double end = 0;
  for (const ServedRequest& r : a.spec.requests) {
    if (r.served()) end = std::max(end, serving_seconds(r.last));
  }
  if (end <= 0) return out;
  out.bin_s = end / static_cast<double>(kServingBins);
  out.arrivals.assign(kServingBins, 0);
  out.in_system.assign(kServingBins, 0);
  out.first_s.assign(kServingBins, 0);
  const auto bin = [&](double time) {
    return std::min(static_cast<std::size_t>(time / out.bin_s), kServingBins - 1);
  };
  for (const ServedRequest& r : a.spec.requests) {
    if (!r.served()) continue;
    const double from = serving_seconds(r.arrival), to = serving_seconds(r.last);
    out.arrivals[bin(from)] += 1;
    out.first_s[bin(from)] += serving_seconds(r.time_to_first());
    for (std::size_t b = bin(from); b <= bin(to); ++b) {
      const double begin = static_cast<double>(b) * out.bin_s;
      out.in_system[b] +=
          std::max(0.0, std::min(to, begin + out.bin_s) - std::max(from, begin)) / out.bin_s;
    }
  }
  for (std::size_t b = 0; b < kServingBins; ++b) {
    out.first_s[b] = out.arrivals[b] > 0 ? out.first_s[b] / out.arrivals[b]
                                         : std::numeric_limits<double>::quiet_NaN();
    out.arrivals[b] /= out.bin_s;
  }
  return out;
}

/// A line over the run.
void add_serving_line(Page& page, const char* title, const char* unit_name,
                      const nlohmann::json& points, double end, std::size_t colour) {
  const AxisUnit unit = long_time_unit(end);
  page.chart({.title = title,
              .about = {},
              .summary = fmt::format("{} over time, as a line.", title),
              .height_px = 220},
             {{"grid", plot_grid(12, 4)},
              {"tooltip", {{"trigger", "axis"}}},
              {"xAxis", time_axis(end / unit.size, unit.name)},
              {"yAxis",
               {{"type", "value"},
                {"min", 0},
                {"axisLabel", {{"formatter", std::string("{value} ") + unit_name}}}}},
              {"series",
               {{{"type", "line"},
                 {"name", title},
                 {"symbol", "none"},
                 {"lineStyle", {{"width", 1.5}, {"color", chart_colour(colour)}}},
                 {"itemStyle", {{"color", chart_colour(colour)}}},
                 {"data", points}}}}});
}

void add_serving_chart(Page& page, const ServingBins& bins, const char* title,
                       const char* unit_name, const std::vector<double>& values,
                       std::size_t colour) {
  const double end = bins.bin_s * static_cast<double>(kServingBins);
  const AxisUnit unit = long_time_unit(end);
  const auto there = [&](std::size_t b) { return b < values.size() && !std::isnan(values[b]); };
  nlohmann::json points = nlohmann::json::array();
  for (std::size_t b = 0; b < values.size(); ++b) {
    const double at = four_digits((static_cast<double>(b) + 0.5) * bins.bin_s / unit.size);
    nlohmann::json point = {at,
                            there(b) ? nlohmann::json(four_digits(values[b])) : nlohmann::json()};
    // A line has two ends: a bin between empty ones is a dot, or nobody sees it.
    const bool alone = there(b) && !there(b + 1) && (b == 0 || !there(b - 1));
    if (alone) point = {{"value", point}, {"symbol", "circle"}, {"symbolSize", 4}};
    points.push_back(std::move(point));
  }
  add_serving_line(page, title, unit_name, points, end, colour);
}

void add_serving_over_time(Page& page, const ServingAnswer& a) {
  const ServingBins bins = bins_of(a);
  if (bins.bin_s <= 0) return;
  page.section("Over time", fmt::format("Means over {}, of requests that were served to the end.",
                                        page_duration(bins.bin_s)));
  add_serving_chart(page, bins, "Requests that arrive a second, of those served", "", bins.arrivals,
                    0);
  add_serving_chart(page, bins, "Requests being served or waiting", "", bins.in_system, 1);
  double longest = 0;
  for (const double first : bins.first_s) {
    if (!std::isnan(first)) longest = std::max(longest, first);
  }
  const AxisUnit unit = time_unit(longest);
  std::vector<double> first = bins.first_s;
  for (double& each : first) each /= unit.size;
  add_serving_chart(page, bins, "Time to the first token, by arrival", unit.name.c_str(), first, 2);
}

void add_power_over_time(Page& page, const ServingAnswer& a) {
  if (!a.report.power) return;
  const ServingPower& p = *a.report.power;
  page.section("Power and energy",
               fmt::format("The nodes that the replicas fill, their share of the fabric, and what "
                           "cools and feeds them (PUE {:.3f}).",
                           p.pue));
  const std::vector<PageFigure> figures{
      {.value = page_watts(mean_power(p.gpus).base_units() / a.spec.gpus()),
       .label = fmt::format("a GPU on average; its limit is {}",
                            page_watts(gpu_limit(a.spec).base_units()))},
      {.value = page_watts(mean_power(p.facility).base_units()),
       .label = fmt::format("the site on average, at most {}",
                            page_watts(peak_power(p.facility).base_units()))},
      {.value = page_with(p.joules_per_output_token, "J"), .label = "per token of an answer"},
      {.value = page_with(p.joules_per_token, "J"), .label = "per token of a prompt or an answer"}};
  page.figures(figures);
  const AxisUnit unit = long_time_unit(p.facility.end.base_units());
  nlohmann::json points = nlohmann::json::array();
  for (std::size_t i = 0; i < p.facility.size(); ++i) {
    const double kw = four_digits(1e-3 * p.facility.power[i].base_units());
    points.push_back({four_digits(p.facility.start[i].base_units() / unit.size), kw});
    points.push_back({four_digits(p.facility.until(i).base_units() / unit.size), kw});
  }
  add_serving_line(page, "Power of the site", "kW", points, p.facility.end.base_units(), 3);
}

/// Machine, pools, formats, load and objectives, as the table has them.
std::vector<NamedWords> serving_basis(const ServingSpec& spec) {
  std::vector<NamedWords> out = cluster_words(spec.cluster);
  for (const ServingPool& pool : spec.pools) {
    out.push_back({pool_label(pool), replicas_words(pool, spec)});
  }
  out.push_back({"Formats", formats_words(spec)});
  out.push_back({"Load", spec.load});
  if (spec.objectives.per_request()) {
    out.push_back({"Objectives of a request",
                   fmt::format("{}, for {} of them", request_limits_words(spec.objectives),
                               percent_text(spec.objectives.attained))});
  }
  return out;
}

}  // namespace

std::string serving_page(const ServingAnswer& a, const Behind* behind, const ClaimCheck* claim) {
  Page page("Serving",
            fmt::format("{} served by {}", a.spec.model.name, counted(a.spec.gpus(), "GPU")));
  if (behind != nullptr) behind->open_figures(page);
  if (!a.spec.about.empty()) page.about(a.spec.about);
  add_serving_headline(page, a);
  add_claim_section(page, claim);
  add_served_times(page, a);
  add_objectives(page, a);
  add_distribution(page, a);
  add_serving_time(page, a);
  add_serving_pools(page, a);
  add_transfers_of_pools(page, a);
  add_populations(page, a);
  add_regions(page, a);
  add_cache_tiers(page, a);
  add_adapters(page, a);
  add_serving_beside(page, a);
  add_serving_over_time(page, a);
  add_power_over_time(page, a);
  add_basis(page, {.simulated = serving_basis(a.spec),
                   .written = a.written,
                   .assumptions = a.spec.assumptions,
                   .presets = behind != nullptr ? &behind->presets() : nullptr});
  if (behind != nullptr) behind->add_to(page, kMoreOfService);
  page.foot(fmt::format("Scenario: {}.", a.spec.file));
  return page.html(chart_library());
}

}  // namespace lockstep
