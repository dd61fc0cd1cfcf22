// Replicas that fail, come back, and are switched on and off.
#include "sim/serving/replica_lives.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// A second for each prompt, a tenth for each step.
class LivesClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{1.0 * load.prompts};
    if (load.sequences > 0) out.products = Seconds{0.1};
    return out;
  }
};

RunTime at_second(double s) { return to_run_time(Seconds{s}); }
double second(RunTime t) { return to_seconds(t).base_units(); }

ServePlan living_plan(PassClock& clock, int replicas) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.replicas = replicas;
  plan.serving.rules = {.pass_tokens = 1 << 30, .most_sequences = 1 << 30, .cache_tokens = 1e9};
  plan.router = ServingRouter::round_robin;
  return plan;
}

/// One request every `gap` seconds of 1 + `steps` tokens.
std::vector<ServedRequest> steady(int count, double gap, int steps) {
  std::vector<ServedRequest> out(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = {
        .arrival = at_second(i * gap), .input = 10, .output = 1 + steps};
  }
  return out;
}

}  // namespace

TEST_CASE("failures: a request is computed again elsewhere, and keeps the tokens that it had") {
  LivesClock clock;
  ServePlan plan = living_plan(clock, 2);
  plan.serving.life.planned = {{.at = at_second(2.05), .replica = 0}};
  plan.serving.life.down = at_second(1000);
  plan.detect = at_second(3);
  std::vector<ServedRequest> requests = steady(1, 1, 30);
  const ServeResult result = serve(plan, requests);
  CHECK(result.failures == 1);
  CHECK(result.retried == 1);
  // First token after a second; ten more until the failure; noticed at 5.05 s, the prompt and what
  // was generated again in a second with one more token, then the other 19.
  CHECK(second(requests[0].first) == test::near(1.0));
  CHECK(second(requests[0].last) == test::near(5.05 + 1 + 19 * 0.1));
  CHECK(requests[0].replica == 1);
  CHECK(second(result.serving.down) == test::near(7.95 - 2.05));
}

TEST_CASE("failures: with nobody left requests wait until one is back") {
  LivesClock clock;
  ServePlan plan = living_plan(clock, 1);
  plan.serving.life.planned = {{.at = at_second(0.5), .replica = 0}};
  plan.serving.life.down = at_second(20);
  std::vector<ServedRequest> requests = steady(3, 1, 0);
  (void)serve(plan, requests);
  // All three at 20.5 s, in one pass.
  for (const ServedRequest& r : requests) CHECK(second(r.first) == test::near(23.5));
}

TEST_CASE("failures: a prefix that the dead replica held has to be worked on again") {
  LivesClock clock;
  const std::vector<PrefixNode> nodes{{.parent = -1, .tokens = 160}};
  ServePlan plan = living_plan(clock, 1);
  plan.serving.rules.prefixes = &nodes;
  plan.serving.life.planned = {{.at = at_second(15), .replica = 0}};
  plan.serving.life.down = at_second(1);
  std::vector<ServedRequest> requests = steady(4, 10, 0);
  for (ServedRequest& r : requests) r.prefix = 0, r.input = 170;
  (void)serve(plan, requests);
  CHECK(requests[0].found == 0);
  CHECK(requests[1].found == 160);
  CHECK(requests[2].found == 0);
  CHECK(requests[3].found == 160);
}

TEST_CASE("failures: down for repair over repair and mean time, and no request is lost") {
  LivesClock clock;
  ServePlan plan = living_plan(clock, 20);
  plan.router = ServingRouter::least_loaded;
  plan.serving.life.mean_time = Seconds{900};
  plan.serving.life.down = at_second(100);
  plan.detect = at_second(1);
  std::vector<ServedRequest> requests = steady(100'000, 1, 20);
  const ServeResult result = serve(plan, requests);
  for (const ServedRequest& r : requests) REQUIRE(r.served());
  CHECK(result.retried > 0);
  // 20 x 100,000 s at one failure in 1,000: 2,000 of them, with a spread of their root.
  CHECK(static_cast<double>(result.failures) == test::near(2000).epsilon(0.07));
  CHECK(second(result.serving.down) / (20 * second(result.end)) == test::near(0.1).epsilon(0.07));
  const std::int64_t failures = result.failures;
  CHECK(serve(plan, requests).failures == failures);
}

TEST_CASE("failures: of two pools the prompt is worked on again and sent again") {
  LivesClock clock;
  ServePlan plan = living_plan(clock, 1);
  plan.decoding = plan.serving;
  plan.decoding.replicas = 2;
  plan.decoding.life.planned = {{.at = at_second(2.05), .replica = 0}};
  plan.decoding.life.down = at_second(1000);
  std::vector<ServedRequest> requests = steady(1, 1, 30);
  const ServeResult result = serve(plan, requests);
  CHECK(result.retried == 1);
  CHECK(second(requests[0].last) == test::near(2.05 + 1 + 19 * 0.1));
}

TEST_CASE("scaling: a pool grows after the time to start, shrinks in calm, and serves everybody") {
  LivesClock clock;
  ServePlan plan = living_plan(clock, 8);
  plan.router = ServingRouter::least_loaded;
  ReplicaLife& life = plan.serving.life;
  life.least = 1;
  life.target = 5;
  life.start = at_second(30);
  life.check = at_second(5);
  life.calm = at_second(60);
  // Each takes 11 s, so 20 are there at once: four replicas. Then one a minute, for an hour.
  std::vector<ServedRequest> requests = steady(600, 0.55, 100);
  for (int i = 0; i < 60; ++i) {
    requests.push_back({.arrival = at_second(330 + 60.0 * i), .input = 10, .output = 101});
  }
  const ServeResult result = serve(plan, requests);
  for (const ServedRequest& r : requests) REQUIRE(r.served());
  const double all = 8 * second(result.end);
  const double on = all - second(result.serving.off);
  // One all the time, and at most seven more for the six minutes of the rush and the calm after.
  CHECK(on > second(result.end) + 3 * 200);
  CHECK(on < second(result.end) + 7 * 1000);
  SUBCASE("where all are always on, nothing is off") {
    life.least = 8;
    CHECK(serve(plan, requests).serving.off == 0);
  }
}

TEST_CASE("lives: shares of GPU time add up with replicas that are down and off") {
  ServingSpec spec = read_serving(JsonCursor::parse("s.json", R"({
    "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
    "serving": {
      "load": {"rate": 20, "requests": 4000, "input": {"mean": 500}, "output": {"mean": 100}},
      "pools": {"both": {"replicas": 8, "autoscale": {"least": 2, "target": 10, "calm": "20 s"}}},
      "failures": {"gpu_mean_time": "10 min", "repair": "20 s",
                   "events": [{"at": "10 s", "replica": 1}]}
    }})"),
                                  test::presets());
  const ServingReport report = simulate_serving(spec);
  CHECK(report.figures.served == 4000);
  CHECK(report.failures >= 1);
  CHECK(report.pools[0].on < 8);
  double sum = 0;
  for (const double share : report.shares) sum += share;
  CHECK(sum == test::near(1.0));
  CHECK(report.shares[static_cast<std::size_t>(ServingBucket::down)] > 0);
}

}  // namespace lockstep
