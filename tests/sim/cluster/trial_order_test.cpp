// The order in which questions are answered earliest: against all orders, and a queue that runs
// them.
#include "sim/cluster/trial_order.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double mean_of(const std::vector<OrderedTrials>& parts, const std::vector<std::size_t>& order) {
  double at = 0, mean = 0;
  for (const std::size_t i : order) {
    at += parts[i].alone_s;
    mean += parts[i].weight * at;
  }
  return mean;
}

/// Trials of a whole cluster of two nodes, all of which run to their ends.
Json search_of(const std::string& name, int trials, double minutes) {
  return {{"name", name}, {"trials", trials}, {"job", {{"runs", 60 * minutes}, {"gpus", 16}}}};
}

QueueSummary run_searches(const std::vector<Json>& campaigns) {
  const Json scenario{
      {"cluster", {{"node", "dgx_h100"}, {"nodes", 2}}},
      {"price", {{"usd_per_gpu_hour", 2.5}}},
      {"queue", {{"order", "fifo"}, {"admission", "strict"}, {"campaigns", campaigns}}}};
  QueueSpec spec = read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
  QueueResult result = simulate_queue(spec);
  settle_campaigns(spec, result);
  return summary_of(spec, result);
}

}  // namespace

TEST_CASE("trial order: no order of all has results earlier, in the mean or at any deadline") {
  std::mt19937_64 engine(test::test_seed());
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const bool alike = i % 2 == 0;
    std::vector<OrderedTrials> parts(1 + engine() % 6);
    double weights = 0;
    for (OrderedTrials& part : parts) {
      part.alone_s = 1 + 1000 * uniform();
      part.gpu_hours = 10 * uniform();
      part.weight = alike ? 1 : uniform();
      weights += part.weight;
    }
    for (OrderedTrials& part : parts) part.weight /= weights;
    const TrialOrder found = earliest_results(parts, 2.0);
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    CHECK(found.written_mean_s == doctest::Approx(mean_of(parts, order)).epsilon(1e-12));
    double least = 1e300;
    do {
      least = std::min(least, mean_of(parts, order));
      if (!alike) continue;
      double at = 0;
      for (std::size_t k = 0; k < order.size(); ++k) {
        at += parts[order[k]].alone_s;
        CHECK(found.parts[k].result_s <= at * (1 + 1e-12));
      }
    } while (std::ranges::next_permutation(order).found);
    CHECK(found.mean_result_s == doctest::Approx(least).epsilon(1e-12));
    CHECK(found.saved_s() >= -1e-9);
    double hours = 0;
    for (const OrderedTrials& part : found.parts) {
      hours += part.gpu_hours;
      CHECK(*part.by_then_usd == doctest::Approx(2 * hours).epsilon(1e-12));
    }
  }
}

TEST_CASE("trial order: a queue that runs campaigns in the order that is told has them earliest") {
  const std::vector<Json> written{search_of("long", 6, 50), search_of("short", 2, 7),
                                  search_of("middle", 3, 30)};
  const QueueSummary as_written = run_searches(written);
  REQUIRE(as_written.campaign_order);
  const TrialOrder& order = *as_written.campaign_order;
  std::vector<Json> best;
  for (const OrderedTrials& part : order.parts) best.push_back(written[part.written]);
  CHECK(best[0]["name"] == "short");
  CHECK(best[1]["name"] == "middle");
  const auto mean_done = [](const QueueSummary& summary) {
    double sum = 0;
    for (const CampaignSummary& c : summary.campaigns) sum += *c.done_s;
    return sum / static_cast<double>(summary.campaigns.size());
  };
  CHECK(mean_done(as_written) == doctest::Approx(order.written_mean_s).epsilon(1e-12));
  const QueueSummary in_order = run_searches(best);
  CHECK(mean_done(in_order) == doctest::Approx(order.mean_result_s).epsilon(1e-12));
  CHECK(in_order.campaign_order->saved_s() == 0);
  // 14, 104 and 404 min of 16 GPUs.
  CHECK(order.parts[0].result_s == doctest::Approx(14 * 60));
  CHECK(order.parts[2].by_then_gpu_hours == doctest::Approx(16.0 * 404 / 60));
  CHECK(*order.parts[1].by_then_usd == doctest::Approx(2.5 * 16.0 * 104 / 60).epsilon(1e-6));
  // A single one has no order.
  CHECK_FALSE(run_searches({written[0]}).campaign_order);
}

TEST_CASE("trial order: hyperband's brackets by how likely each has the best, over its time") {
  Json campaign = search_of("search", 40, 81);
  campaign["stopping"] = {{"kind", "hyperband"}, {"eta", 3}, {"least", 1.0 / 27}};
  const QueueSummary summary = run_searches({campaign});
  const CampaignSummary& of = summary.campaigns.front();
  REQUIRE(of.brackets);
  double weights = 0, hours = 0;
  for (std::size_t i = 0; i < of.brackets->parts.size(); ++i) {
    const OrderedTrials& part = of.brackets->parts[i];
    weights += part.weight;
    hours += part.gpu_hours;
    if (i == 0) continue;
    const OrderedTrials& before = of.brackets->parts[i - 1];
    CHECK(before.weight / before.alone_s >= part.weight / part.alone_s);
  }
  CHECK(weights == doctest::Approx(1).epsilon(1e-12));
  CHECK(hours == doctest::Approx(of.gpu_hours).epsilon(1e-12));
  // All work on two nodes that are one place.
  CHECK(of.brackets->parts.back().result_s == doctest::Approx(*of.makespan_s).epsilon(1e-9));
}

}  // namespace lockstep
