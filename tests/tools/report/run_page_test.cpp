#include "tools/views/report/run_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tests/support/near.hpp"
#include "tests/support/sample_run.hpp"
#include "tests/tools/report/contains.hpp"
#include "tools/console/percent.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_timeline.hpp"
#include "tools/views/report/run_waterfall.hpp"
#include "tools/views/report/run_words.hpp"
#include "tools/views/run/data_table.hpp"
#include "tools/views/run/rent_words.hpp"

using namespace lockstep;
using lockstep::test::charts_of;
using lockstep::test::contains;
using nlohmann::json;

namespace {

constexpr Seconds kDay{86'400};
const std::string kEvil = "</script><script>alert(1)</script>";

std::string page_of(const CampaignResult& result) {
  Page page("Run report", run_title(result));
  add_run_headline(page, result);
  add_run_sections(page, result);
  return page.html({.script = "", .licences = ""});
}

std::string headline_of(const CampaignResult& result) {
  const std::string text =
      std::regex_replace(run_headline(result).str(), std::regex("<[^>]*>"), "");
  return std::regex_replace(text, std::regex("\u00a0"), " ");
}

/// Ten days of 16 GPUs at 2 USD an hour, 90 % of them productive; steps of 10 s.
const Scenario& small_scenario() {
  static const Scenario scenario = [] {
    Scenario s;
    s.file = "small.json";
    s.job.model.name = "tiny";
    s.job.parallelism.tensor = 8;
    s.job.parallelism.data = 2;
    s.job.batch.sequences = 100;
    s.job.batch.tokens = 1000;
    s.usd_per_gpu_hour = 2;
    return s;
  }();
  return scenario;
}

CampaignResult small_result() {
  CampaignResult result{.scenario = small_scenario(), .plan = {}, .summary = {}};
  result.plan.step_s = 10;
  result.plan.writes = {{.each = Bytes{1e12},
                         .blocks = Seconds{5},
                         .sustained = BytesPerSecond{1e11},
                         .most_share = 0.1}};
  RunSummary& s = result.summary;
  s.trajectories = 1000;
  s.finished = 1;
  result.plan.campaign.tiers.resize(1);
  s.goodput = {.mean = 0.9, .half_width = 0.005, .low = 0.85, .median = 0.9, .high = 0.95};
  s.wall_s = {.mean = 864'000, .half_width = 0, .low = 864e3, .median = 864e3, .high = 864e3};
  s.interruptions.mean = 40;
  s.mttf.mean_s = 21'600;
  s.shares = {0.9, 0, 0.02, 0.05, 0.01, 0.005, 0.0148, 0.0002};
  s.modes = {{"power", 4, 2160}, {"GPU", 36, 34'560}};
  for (const ModeSummary& mode : s.modes) {
    result.plan.campaign.modes.push_back({.name = mode.name});
  }
  result.mfu = 0.42;
  result.step.step_s = 10;
  const auto set = [&](Bucket bucket, double seconds) {
    result.step.seconds[static_cast<std::size_t>(bucket)] = seconds;
  };
  set(Bucket::model_flops, 4);
  set(Bucket::kernel_inefficiency, 3.3);
  set(Bucket::pipeline_bubble, 2.7);
  return result;
}

/// Two days: one of training, then half a day lost, then it waits for a node.
TrajectoryResult small_trajectory() {
  TrajectoryResult run;
  const RunTime day = to_run_time(kDay);
  run.wall = 2 * day;
  run.phases = {
      {0, RunBucket::productive}, {day, RunBucket::lost}, {day + day / 2, RunBucket::repair_wait}};
  run.buckets = {day, 0, 0, day / 2, 0, 0, 0, day / 2};
  run.events = {{day, 1, day}};
  return run;
}

IntervalOptimum small_optimum() {
  const IntervalPoint given{Seconds{1800}, 0.9, 0.005}, best{Seconds{720}, 0.92, 0.004},
      closed{Seconds{700}, 0.9199, 0.004};
  return {.best = best, .given = given, .young = closed, .daly = closed, .curve = {best, given}};
}

/// Cells of the column of the table whose head is `title`, without tags, spaces plain.
std::vector<std::string> rows_of(const std::string& html, const std::string& title) {
  const std::size_t head = html.find(">" + title + "</button>");
  REQUIRE(head != std::string::npos);
  const std::size_t begin = html.find("<tbody>", head), end = html.find("</tbody>", begin);
  std::vector<std::string> rows;
  for (std::size_t at = html.find("<tr>", begin); at < end; at = html.find("<tr>", at + 1)) {
    const std::string row = html.substr(at, html.find("</tr>", at) - at);
    const std::string text = std::regex_replace(std::regex_replace(row, std::regex("</td>"), "|"),
                                                std::regex("<[^>]*>"), "");
    rows.push_back(std::regex_replace(text, std::regex("\u00a0"), " "));
  }
  return rows;
}

}  // namespace

TEST_CASE(
    "run headline: goodput, what costs most, a better interval and what is paid for nothing") {
  CampaignResult result = small_result();
  result.optimum = small_optimum();
  CHECK(headline_of(result) ==
        "90.0 % of the wall time advances training (± 0.50 % with 95 % confidence, from 1,000 "
        "simulated runs). Of the rest, work done again takes most, 5.0 %. Of all causes "
        "GPU cost most in these runs: 36.0 failures a run took 4.00 % of the wall time. A "
        "checkpoint every 12 min instead of every 30 min would bring goodput to 92.0 %, 2.0 points "
        "more. It writes 1.38 GB/s "
        "while steps run, 119 TB a day, 1.4 % of what the storage sustains; all of them together "
        "are at most 1.19 PB. Of 7,680 USD for the GPU-hours, 768 USD buys no training.");
}

TEST_CASE("run figures: the step time and what 90 % of published runs alike would take") {
  CampaignResult result = small_result();
  const std::size_t without = run_figures(result).size();
  result.interval = {.low = 0.9,
                     .high = 1.2,
                     .known = SoftwareKnown::release,
                     .group = "dense, hopper",
                     .rows = 312,
                     .sources = 5};
  const std::vector<PageFigure> figures = run_figures(result);
  REQUIRE(figures.size() == without + 1);
  const std::string label = std::regex_replace(figures[5].label, std::regex("\u00a0"), " ");
  CHECK(label.starts_with("a healthy step; 90 % interval 9.00 s to 12.0 s ("));
  CHECK(label.ends_with("dense, hopper: 312 published runs of 5 sources)"));
}

TEST_CASE("run headline: an interval is better from 0.05 points on") {
  CampaignResult result = small_result();
  result.optimum = small_optimum();
  result.optimum->best.goodput = result.optimum->given.goodput + 0.00049;
  CHECK(
      contains(headline_of(result), "No checkpoint interval is noticeably better than the 30 min"));
  result.optimum->best.goodput = result.optimum->given.goodput + 0.00051;
  CHECK(contains(headline_of(result), "A checkpoint every 12 min instead"));
}

TEST_CASE("run headline: runs that are given up, and failures without checkpoints, come first") {
  CampaignResult result = small_result();
  result.plan.campaign.work = Seconds{864e3};
  result.summary.finished = 0.75;
  result.plan.campaign.tiers.clear();
  const std::string text = headline_of(result);
  CHECK(text.starts_with("Not finished: 250 of 1,000 runs are not done after "));
  CHECK(contains(text, "every failure starts the run again (run.checkpoint)"));
  CHECK(text.find("Not finished") < text.find("every failure"));
}

TEST_CASE("run headline: a run that nothing happens to") {
  CampaignResult result = small_result();
  result.summary.shares = {1};
  result.summary.goodput = {.mean = 1};
  result.summary.trajectories = 1;
  result.summary.modes.clear();
  CHECK(headline_of(result) ==
        "100.0 % of the wall time advances training (in one simulated run). Nothing is lost. Of "
        "7,680 USD for the GPU-hours, 0 USD buys no training.");
}

TEST_CASE(
    "run headline: what is nearly all of the wall time, or nearly nothing, is not rounded so") {
  CampaignResult result = small_result();
  result.summary.goodput = {.mean = 0.99954, .half_width = 0.0002};
  result.summary.shares = {0.99954, 0, 0, 0.00046, 0, 0, 0, 0};
  CHECK(contains(headline_of(result), "99.95 % of the wall time advances training"));
  CHECK(contains(headline_of(result), " takes most, 0.05 %."));
  CHECK(contains(page_of(result), "<dd>99.95\u00a0%</dd>"));
}

TEST_CASE("run page: its figures are the result's") {
  const std::string html = page_of(small_result());
  CHECK(contains(html, "<title>tiny on 16 GPUs for 10\u00a0days · Run report</title>"));
  CHECK(contains(html, "<dt>goodput: wall time that advances training</dt><dd>90.0\u00a0%</dd>"));
  CHECK(contains(html, "MFU 42.0\u00a0% × goodput</dt><dd>37.8\u00a0%</dd>"));
  // 777,600 s of productive time: 77,760 steps of 100,000 tokens.
  CHECK(contains(html, "steps of 10.0\u00a0s</dt><dd>7.78\u00a0B</dd>"));
  CHECK(contains(html, "<dt>to rent 3,840 GPU-hours at 2.00\u00a0USD</dt><dd>7,680\u00a0USD</dd>"));
  CHECK(rows_of(html, "Cause") == std::vector<std::string>{"GPU|4.00 %|36.0|16.0 min|9.60 h|",
                                                           "power|0.25 %|4.00|9.00 min|36.0 min|"});
  CHECK(rows_of(html, "Of a run").front() == "Goodput|90.00 %|± 0.50 %|85.00 %|90.00 %|95.00 %|");
}

TEST_CASE("waterfall: losses and what remains are all of the peak, also as printed") {
  const CampaignResult result = small_result();
  const std::vector<WaterfallPart> parts = waterfall(result);
  double sum = 0, left = 1;
  for (const WaterfallPart& part : parts) {
    if (part.is_loss()) sum += part.share, left -= part.share;
    // Each total is what the losses above it leave.
    if (!part.is_loss()) CHECK(part.share == test::near(left).epsilon(1e-12));
  }
  CHECK(sum + parts.back().share == test::near(1).epsilon(1e-12));
  CHECK(parts.back().kind == WaterfallPart::Kind::useful);
  CHECK(parts.back().share == test::near(0.36));
  CHECK(
      rows_of(page_of(result), "Part") ==
      std::vector<std::string>{
          "Peak FLOPs × wall time|100.0 %|3,840|7,680 USD||",
          "Work done again|−5.0 %|192|384 USD|checkpoints closer together, or parts that fail less "
          "often|",
          "Waiting for checkpoints|−2.0 %|76.8|154 USD|checkpoints that are asynchronous or "
          "further "
          "apart|",
          "Restarting and reading checkpoints|−1.5 %|56.8|114 USD|quicker start of processes and "
          "communicators, or faster storage to read from|",
          "Detecting failures|−1.0 %|38.4|76.8 USD|shorter time-outs and health checks|",
          std::string(run_bucket_names()[5].words) + "|−0.5 %|19.2|38.4 USD|automatic diagnosis|",
          "Waiting for a healthy node|&lt; 0.1 %|0.768|1.54 USD|more spare nodes, or quicker "
          "repair|",
          "Healthy steps at full speed|90.0 %|3,456|6,912 USD||",
          "Kernels below peak|−29.7 %|1,140|2,281 USD|larger products (bigger micro batch, less "
          "tensor "
          "parallelism), a newer GPU or attention kernel|",
          "Pipeline bubble|−24.3 %|933|1,866 USD|more micro batches per replica, more virtual "
          "stages, "
          "or fewer pipeline stages|",
          "Useful model FLOPs|36.0 %|1,382|2,765 USD||"});
}

TEST_CASE("run page: the rent of hot spares buys no training, and is no part of the job's") {
  CampaignResult result = small_result();
  // As many GPUs again, at 2 USD an hour; 90 % of the job's 3,840 GPU-hours train.
  result.plan.campaign.spares.hot = result.scenario.nodes;
  CHECK(headline_of(result).ends_with(
      "Of 15.4 k USD for the GPU-hours, 8,448 USD buys no training, 7,680 USD of it hot spares."));
  const std::vector<std::string> rows = rows_of(page_of(result), "Part");
  CHECK(rows.front() == "Peak FLOPs × wall time|100.0 %|3,840|7,680 USD||");
  CHECK(rows.back() ==
        "Hot spares, beside these|–|3,840|7,680 USD|fewer of them, or warm ones that are in other "
        "use|");
}

TEST_CASE("waterfall: losses too small to be seen become one, and still add up") {
  CampaignResult result = small_result();
  result.summary.shares = {0.9, 0, 0.0004, 0.0992, 0, 0.0003, 0, 0.0001};
  const std::vector<WaterfallPart> parts = waterfall(result);
  REQUIRE(parts.size() == 7);
  CHECK(parts[2].name == "All other wall time");
  CHECK(parts[2].share == test::near(0.0008));
  CHECK(contains(parts[2].sum_of, std::string(run_bucket_names()[7].words)));
  result.summary.shares[2] = 0.0006;  // is seen
  result.summary.shares[3] = 0.0990;
  CHECK(waterfall(result)[2].name == run_bucket_names()[2].words);
}

TEST_CASE("waterfall: a share of wall time is printed as the run's tables print it") {
  CampaignResult result = small_result();
  result.summary.shares = {0.70146, 0.15854, 0.05048, 0.03047, 0.02646, 0.01847, 0.01412, 0};
  const std::string html = page_of(result);
  const std::vector<std::string> rows = rows_of(html, "Part");
  const auto has = [&](const std::string& begin) {
    return std::ranges::any_of(rows,
                               [&](const std::string& row) { return row.starts_with(begin); });
  };
  CHECK(has("Healthy steps at full speed|70.1 %|"));
  // The nearest tenth of each, though they then add up to 99.8 %.
  constexpr std::array<std::string_view, 6> kPrinted{"15.9", "5.0", "3.0", "2.6", "1.8", "1.4"};
  for (std::size_t b = 1; b <= kPrinted.size(); ++b) {
    CHECK(has(fmt::format("{}|−{} %|", run_bucket_names()[b].words, kPrinted[b - 1])));
    CHECK(part_percent(result.summary.shares[b]) == fmt::format("{} %", kPrinted[b - 1]));
  }
}

TEST_CASE("waterfall: a bar stands where the one above it ends") {
  const json options = charts_of(page_of(small_result())).front();
  const json &bases = options["series"][0]["data"], &bars = options["series"][1]["data"];
  REQUIRE(bases.size() == bars.size());
  double left = 100;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double base = bases[i].get<double>(), bar = bars[i]["value"].get<double>();
    CHECK(base + bar == test::near(left).epsilon(1e-3));
    if (base > 0) left = base;
  }
}

TEST_CASE("waterfall: an iteration of rl is split by its phases, training by its buckets") {
  CampaignResult result = small_result();
  RlReport iteration;
  iteration.step = Seconds{10};
  iteration.training_gpus = 8;
  iteration.generation = Seconds{6};
  iteration.training = Seconds{4};
  iteration.gpu_seconds[static_cast<std::size_t>(RlBucket::decode_products)] = 40;
  iteration.gpu_seconds[static_cast<std::size_t>(RlBucket::drain)] = 8;
  iteration.gpu_seconds[static_cast<std::size_t>(RlBucket::training)] = 32;
  const std::vector<WaterfallPart> plain = waterfall(result);
  result.plan.iteration = iteration;
  const std::vector<WaterfallPart> parts = waterfall(result);
  const auto share_of = [&](std::string_view name) {
    for (const WaterfallPart& part : parts) {
      if (part.name == name) return part.share;
    }
    return -1.0;
  };
  const double healthy = result.summary.shares[0];
  CHECK(share_of("Decode: weights") == test::near(0.5 * healthy));
  CHECK(share_of("Wait for last response") == test::near(0.1 * healthy));
  REQUIRE(parts.back().kind == WaterfallPart::Kind::useful);
  CHECK(parts.back().share == test::near(0.4 * plain.back().share));
  double sum = 0;
  for (const WaterfallPart& part : parts) {
    if (part.is_loss() || part.kind == WaterfallPart::Kind::useful) sum += part.share;
  }
  CHECK(sum == test::near(1));
  CHECK(contains(page_of(result), "How long each takes"));
}

TEST_CASE("waterfall: without a step it ends at the steps") {
  CampaignResult result = small_result();
  result.step = {};
  CHECK(waterfall(result).back().kind == WaterfallPart::Kind::steps);
  CHECK(charts_of(page_of(result)).size() == 1);
}

TEST_CASE("run page: sections are there for what the result has") {
  CampaignResult result = small_result();
  const auto headings = [](const std::string& html) {
    std::vector<std::string> found;
    for (std::size_t at = html.find("<h2>"); at != std::string::npos;
         at = html.find("<h2>", at + 1)) {
      found.push_back(html.substr(at + 4, html.find('<', at + 4) - at - 4));
    }
    return found;
  };
  CHECK(headings(page_of(result)) ==
        std::vector<std::string>{"From peak FLOPs to useful training", "Goodput by cause", "Cost",
                                 "How runs differ", "What was simulated"});
  result.typical = small_trajectory();
  result.optimum = small_optimum();
  result.projections = {{.gpus = 1024, .mttf = Seconds{3600}}};
  result.plan.assumptions = {"racks of <4> nodes"};
  result.interrupted = true;
  const std::string html = page_of(result);
  CHECK(headings(html) ==
        std::vector<std::string>{
            "Where the wall time goes", "One run, from its first step to its last",
            "From peak FLOPs to useful training", "Goodput by cause", "Checkpoint interval", "Cost",
            "The same parts in jobs of other sizes", "How runs differ", "What was simulated",
            "Assumed"});
  CHECK(contains(html, "<li>racks of &lt;4&gt; nodes</li>"));
  CHECK(contains(html, "Stopped early"));
  CHECK(rows_of(html, "Size") == std::vector<std::string>{"1,024 GPUs|60.0 min|24.0|"});
  CHECK(rows_of(html, "Checkpoint interval").front() ==
        "best simulated|12 min|92.00 % ± 0.40 %|8.00 %|+2.00 points|");
}

TEST_CASE("run figures: money without a price of machines names what it is of") {
  Scenario scenario = small_result().scenario;
  CostSpec& prices = scenario.power.emplace().cost;
  CampaignResult result{.scenario = scenario, .plan = {}, .summary = {}};
  CostReport& cost = result.bill.emplace().cost;
  cost.energy_usd = 100;
  CHECK(partial_money_words(result) == "energy only");
  cost.building_usd = 20;
  CHECK(partial_money_words(result) == "energy, and the site's plants, written off over 5 years");
  prices.usd_per_facility_w = 10;
  CHECK(partial_money_words(result) == "building only");
}

TEST_CASE("run page: a dataset has its hops, and storage by month of each tier") {
  CampaignResult result = small_result();
  DataPlan plan;
  plan.dataset = Bytes{60e12};
  plan.epochs = 3;
  plan.hops = {{.from = "archive <A>",
                .to = "scratch",
                .starts = {},
                .takes = kDay,
                .rate = BytesPerSecond{2e9}}};
  plan.tiers = {{.name = "archive <A>", .from = {}, .read_at = kDay, .usd_per_month = 600},
                {.name = "scratch", .from = {}, .read_at = kDay, .usd_per_month = 0}};
  result.plan.data = plan;
  const std::string html = page_of(result);
  CHECK(contains(html, "<h2>The dataset</h2>"));
  CHECK(contains(html, escaped(data_words(plan)).str()));
  // 60 TB at 2 GB/s move in 8.33 hours: the rest of the day went by before.
  CHECK(rows_of(html, "Staged from").front().starts_with("archive &lt;A&gt;|scratch|15.7 h|2.00|"));
  // Ten days of a month of 365.25 / 12.
  CHECK(rows_of(html, "Storage in month") ==
        std::vector<std::string>{"1|197 USD|197 USD|", "all|197 USD|197 USD|"});
  result.plan.data->tiers.front().usd_per_month = 0;
  result.plan.data->hops.front().takes = Seconds{30'000};
  const std::string plain = page_of(result);
  CHECK(!contains(plain, "Storage in month"));
  CHECK(!contains(plain, "First byte"));
}

TEST_CASE("run page: a run that was stopped before anything was drawn says so") {
  CampaignResult result = small_result();
  result.summary = {};
  result.interrupted = true;
  const std::string html = page_of(result);
  CHECK(contains(html, "No trajectory was finished."));
  CHECK_FALSE(contains(html, "nan"));
  CHECK(charts_of(html).empty());
}

TEST_CASE("run page: names are text wherever they stand") {
  CampaignResult result = small_result();
  result.typical = small_trajectory();
  result.optimum = small_optimum();
  for (ModeSummary& mode : result.summary.modes) mode.name = kEvil;
  for (FailureMode& mode : result.plan.campaign.modes) mode.name = kEvil;
  result.plan.assumptions = {kEvil};
  Scenario scenario = small_scenario();
  scenario.job.model.name = scenario.about = kEvil;
  const CampaignResult evil{.scenario = scenario,
                            .plan = result.plan,
                            .summary = result.summary,
                            .step = result.step,
                            .typical = result.typical,
                            .optimum = result.optimum};
  const std::string html = page_of(evil);
  CHECK_FALSE(contains(html, "<script>alert"));
  CHECK(charts_of(html).front()["lockstep"]["causes"][0] == kEvil);
}

TEST_CASE("run timeline: dots are failures, and shares of each stretch add up to 100 %") {
  CampaignResult result = small_result();
  result.typical = small_trajectory();
  const json options = charts_of(page_of(result)).front();
  const json& series = options["series"];
  REQUIRE(series.size() == 1 + 3);
  // A day and an hour of 24 cost; the costliest cause has the first row.
  CHECK(series[0]["data"][0]["value"] == json({24.0, 0, 1, 86400.0}));
  CHECK(options["yAxis"][0]["data"] == json({"GPU · 1", "power · 0"}));
  const std::size_t points = series[1]["data"].size();
  CHECK(options["lockstep"]["bins"] == points - 2);
  for (std::size_t i = 0; i < points; ++i) {
    double sum = 0;
    // The last one lies lowest.
    for (std::size_t k = series.size() - 1; k >= 1; --k) {
      const json& point = series[k]["data"][i];
      CHECK(point[0] == series[1]["data"][i][0]);
      sum += point[2].get<double>();
      CHECK(point[1].get<double>() == test::near(sum));
    }
    CHECK(sum == test::near(100));
  }
  CHECK(rows_of(page_of(result), "Where wall time goes").front() ==
        "Training at full speed|90.0 %|9.00 days|50.0 %|");
}

TEST_CASE("run timeline: of very many failures the costliest are marked, and it says so") {
  CampaignResult result = small_result();
  result.typical = small_trajectory();
  result.typical->events.clear();
  constexpr RunTime kFailures = 2000;
  for (RunTime i = 0; i < kFailures; ++i)
    result.typical->events.push_back({i * 1000, 0, i * 1'000'000'000});
  const std::string html = page_of(result);
  CHECK(contains(html, "(1,200 of 2,000, the costliest)"));
  CHECK(charts_of(html).front()["yAxis"][0]["data"][1] == "power · 2,000");
  const json dots = charts_of(html).front()["series"][0]["data"];
  REQUIRE(dots.size() == kMarkedFailures);
  CHECK(dots.front()["value"][3] == 800.0);
  CHECK(dots.back()["value"][3] == 1999.0);
}

TEST_CASE("run page: what no cause of failures has is told beside them") {
  CampaignResult result = small_result();
  const std::string more = "Restarts with replicas that have come back cost";
  // 8 % of the time is lost, detected, restarted or waits; the causes have 4.25 %.
  CHECK(contains(page_of(result), more));
  CHECK(contains(page_of(result), "3.75"));
  result.summary.modes.front().cost_s += 0.0375 * 864'000;
  CHECK_FALSE(contains(page_of(result), more));
}

TEST_CASE("run page: a rent beside the cost of owning says that it takes its place") {
  Scenario scenario = small_result().scenario;
  CostSpec& prices = scenario.power.emplace().cost;
  CampaignResult result{.scenario = scenario, .plan = {}, .summary = {}};
  CHECK(instead_of_owning(result).empty());
  result.bill.emplace();
  CHECK(instead_of_owning(result).empty());  // energy without prices
  prices.usd_per_kwh.values = {0.1};
  CHECK(instead_of_owning(result).empty());  // a tariff alone owns nothing
  prices.usd_per_gpu = 25'000;
  CHECK(instead_of_owning(result) == ", instead of owning them");
}

TEST_CASE("run page: what a simulated run of 54 days says, and the same bytes again") {
  const test::SampleRun sample = test::sample_run();
  const CampaignResult result = test::simulate_sample(sample, 4);
  const std::string html = page_of(result);
  CHECK(html == page_of(result));
  CHECK(contains(html, fmt::format("{} of it for energy", page_usd(result.bill->cost.energy_usd))));
  CHECK(contains(html, "<dd>" + page_energy(result.bill->usage.energy.base_units()) + "</dd>"));
  const std::vector<std::string> bill = rows_of(html, "Owned");
  REQUIRE(bill.size() == 7);
  CHECK(bill.back().starts_with("Total|"));
  const std::vector<json> charts = charts_of(html);
  CHECK(charts.size() == 6);
  CHECK(charts[0]["lockstep"]["bins"] == 432);  // 54 days in stretches of 3 h
  for (const json& chart : charts) {
    for (const json& line : chart["series"]) CHECK(line["data"].size() <= 1200);
  }
  CHECK(html.size() < 400'000);
}
