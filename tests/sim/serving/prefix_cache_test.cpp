// What prompts share, kept for others: closed forms and books that balance.
#include "sim/serving/prefix_cache.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// A second for each thousand tokens of a prompt, 10 ms a step.
class PrefixClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{load.prompt_tokens / 1000};
    if (load.sequences > 0) out.products = Seconds{0.01};
    return out;
  }
};

constexpr int kPrefixBlock = 16;

/// Requests one after the other, each behind one of `count` beginnings of `blocks` blocks.
std::vector<ServedRequest> shared_requests(int requests, const std::vector<PrefixNode>& nodes,
                                           double zipf) {
  RandomStream random({.seed = 3, .purpose = 1});
  std::vector<double> weights;
  double sum = 0;
  for (std::size_t k = 1; k <= nodes.size(); ++k) {
    weights.push_back(sum += std::pow(static_cast<double>(k), -zipf));
  }
  std::vector<ServedRequest> out(static_cast<std::size_t>(requests));
  RunTime at = 0;
  for (ServedRequest& r : out) {
    const double drawn = random.uniform() * sum;
    std::size_t k = 0;
    while (weights[k] <= drawn) ++k;
    r.arrival = at;
    at += to_run_time(Seconds{10});
    r.prefix = static_cast<std::int32_t>(k);
    r.input = nodes[k].tokens + 1;
    r.output = 1;
  }
  return out;
}

ServePlan sharing_plan(PassClock& clock, const std::vector<PrefixNode>& nodes, double tokens) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.rules = {.pass_tokens = 1 << 30,
                        .most_sequences = 1 << 30,
                        .block = kPrefixBlock,
                        .cache_tokens = tokens,
                        .prefixes = &nodes};
  return plan;
}

double found_of_all(const std::vector<ServedRequest>& requests, std::size_t from) {
  double found = 0;
  for (std::size_t i = from; i < requests.size(); ++i) found += requests[i].found > 0;
  return found / static_cast<double>(requests.size() - from);
}

}  // namespace

TEST_CASE("prefix cache: one beginning that all share is worked on once") {
  PrefixClock clock;
  const std::vector<PrefixNode> nodes{{.parent = -1, .tokens = 1600}};
  std::vector<ServedRequest> requests = shared_requests(100, nodes, 0);
  (void)serve(sharing_plan(clock, nodes, 1e6), requests);
  CHECK(requests[0].found == 0);
  CHECK(to_seconds(requests[0].time_to_first()).base_units() == test::near(1.601));
  for (std::size_t i = 1; i < requests.size(); ++i) {
    CHECK(requests[i].found == 1600);
    CHECK(to_seconds(requests[i].time_to_first()).base_units() == test::near(0.001));
  }
}

TEST_CASE("prefix cache: independent references find what Che's approximation says") {
  // Che, Tung and Wang 2002, IEEE J. Sel. Areas Commun. 20(7), 1305-1314: with T such that sum of
  // 1 - exp(-p T) is what the cache holds, beginning k is found with that chance.
  PrefixClock clock;
  constexpr int kBeginnings = 200, kBlocks = 10;
  constexpr double kZipf = 0.8;
  const std::vector<PrefixNode> nodes(kBeginnings,
                                      {.parent = -1, .tokens = kBlocks * kPrefixBlock});
  std::vector<double> p;
  double sum = 0;
  for (int k = 1; k <= kBeginnings; ++k) sum += std::pow(k, -kZipf);
  for (int k = 1; k <= kBeginnings; ++k) p.push_back(std::pow(k, -kZipf) / sum);
  for (const int held : {20, 60, 120}) {
    CAPTURE(held);
    // The request under way needs a block more for its own token and the answer's.
    const double tokens = (held * kBlocks + 1) * kPrefixBlock;
    std::vector<ServedRequest> requests = shared_requests(200'000, nodes, kZipf);
    (void)serve(sharing_plan(clock, nodes, tokens), requests);
    double low = 0, high = 1e9;
    for (int i = 0; i < 200; ++i) {
      const double t = (low + high) / 2;
      double holds = 0;
      for (const double each : p) holds += 1 - std::exp(-each * t);
      (holds < held ? low : high) = t;
    }
    double hits = 0;
    for (const double each : p) hits += each * (1 - std::exp(-each * low));
    CHECK(found_of_all(requests, 20'000) == test::near(hits).epsilon(0.02));
  }
}

TEST_CASE("prefix cache: ends leave before starts, and what is in use stays") {
  const std::vector<PrefixNode> nodes{
      {.parent = -1, .tokens = 32}, {.parent = 0, .tokens = 64}, {.parent = -1, .tokens = 48}};
  PrefixCache cache(&nodes, kPrefixBlock);
  cache.take(1);
  cache.take(0);
  CHECK(cache.used() == 4);
  cache.give(1);
  CHECK(cache.used() == 2);
  CHECK(cache.unused() == 2);
  cache.take(2);
  cache.give(2);
  cache.shrink(4);
  CHECK(cache.longest(1, 1000) == 0);
  CHECK(cache.longest(2, 1000) == 2);
  CHECK(cache.longest(2, 47) == -1);
  cache.give(0);
  CHECK(cache.unused_of(1) == 2);
  cache.shrink(0);
  CHECK(cache.unused() == 0);
  CHECK(cache.longest(0, 1000) == -1);
}

TEST_CASE("prefix cache: turns find all that was said before, in whole blocks") {
  ServingSpec spec = read_serving(JsonCursor::parse("s.json", R"({
    "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
    "serving": {
      "load": {"rate": 1, "requests": 40, "input": {"mean": 500}, "output": {"mean": 100},
               "prefix": {"tokens": 1000}, "conversation": {"turns": 4, "think": "5 s"}},
      "pools": {"both": {"replicas": 1}}
    }})"),
                                  test::presets());
  const ServingReport report = simulate_serving(spec);
  CHECK(report.figures.served == 40);
  REQUIRE(spec.coming == 10);
  for (std::size_t i = 10; i < 40; ++i) {
    const ServedRequest& before = spec.requests[i - 10];
    CHECK(spec.requests[i].found == (before.input + before.output) / 16 * 16);
    CHECK(spec.requests[i].arrival == before.last + spec.requests[i].think);
  }
  // Without, everything is worked on again.
  ServingSpec without = spec;
  for (ServedRequest& r : without.requests) r.first = r.last = r.scheduled = -1, r.found = 0;
  without.prefix_cache = false;
  const ServingReport plain = simulate_serving(without);
  CHECK(plain.found_share == 0);
  CHECK(plain.figures.ttft_s.mean > report.figures.ttft_s.mean);
}

TEST_CASE("prefix cache: a small cache under load preempts, and every token still comes out") {
  PrefixClock clock;
  std::vector<PrefixNode> nodes(8, {.parent = -1, .tokens = 320});
  std::vector<ServedRequest> requests = shared_requests(400, nodes, 1);
  RandomStream random({.seed = 5, .purpose = 2});
  for (ServedRequest& r : requests) {
    r.arrival /= 20;
    r.output = 1 + static_cast<std::int32_t>(300 * random.uniform());
    r.input += static_cast<std::int32_t>(100 * random.uniform());
  }
  const ServeResult result = serve(sharing_plan(clock, nodes, 2000), requests);
  CHECK(result.serving.preempted > 0);
  CHECK(result.serving.fullest <= 1.0);
  for (const ServedRequest& r : requests) CHECK(r.served());
  CHECK(found_of_all(requests, 0) > 0.3);
}

TEST_CASE("prefix_aware: finds more than a router that does not look") {
  const auto run = [](const char* router) {
    ServingSpec spec = read_serving(JsonCursor::parse("s.json", std::string(R"({
    "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
    "serving": {
      "load": {"rate": 20, "requests": 2000, "input": {"mean": 500}, "output": {"mean": 50},
               "prefix": {"tokens": 4000, "count": 8},
               "conversation": {"turns": 5, "think": "2 s"}},
      "pools": {"both": {"replicas": 8}}, "router": ")") + router + "\"}}"),
                                    test::presets());
    return simulate_serving(spec);
  };
  const ServingReport aware = run("prefix_aware"), blind = run("least_loaded");
  CHECK(aware.found_share > blind.found_share);
  CHECK(aware.figures.ttft_s.mean < blind.figures.ttft_s.mean);
}

}  // namespace lockstep
