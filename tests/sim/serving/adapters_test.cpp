// Adapters of requests: which run together, what is loaded, and what passes take longer.
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "models/generation/served_adapters.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/serving/adapter_slots.hpp"
#include "sim/serving/serve.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// A second for each prompt, a tenth for each step.
class AdapterClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{1.0 * load.prompts};
    if (load.sequences > 0) out.products = Seconds{0.1};
    return out;
  }
};

RunTime adapter_time(double s) { return to_run_time(Seconds{s}); }
double adapter_seconds(RunTime t) { return to_seconds(t).base_units(); }

ServePlan adapted_plan(PassClock& clock, const AdapterRules& rules, int replicas = 1) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.replicas = replicas;
  plan.serving.rules = {.pass_tokens = 1 << 30, .most_sequences = 1 << 20, .cache_tokens = 1e12};
  plan.serving.adapters = rules;
  return plan;
}

ServingSpec adapted_spec(const std::string& adapters, const std::string& pools = "{}") {
  return read_serving(JsonCursor::parse("s.json", R"({"model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1}, "serving": {
      "load": {"rate": 20, "requests": 2000, "input": {"mean": 500}, "output": {"mean": 100}},
      "pools": {"both": )" + pools + R"(}, "adapters": )" +
                                                      adapters + "}}"),
                      test::presets());
}

}  // namespace

TEST_CASE("adapters: of two that may not run together the first one's requests go first") {
  AdapterClock clock;
  ServePlan plan =
      adapted_plan(clock, {.count = 2, .on_gpu = 1, .in_host = 2, .from_host = adapter_time(0.25)});
  std::vector<ServedRequest> requests(5, {.input = 10, .output = 1});
  for (std::size_t i = 0; i < 4; ++i) requests[i].adapter = static_cast<std::int32_t>(i % 2);
  const ServeResult result = serve(plan, requests);
  // First those of adapter 0 and the model's own, with one load; then those of adapter 1.
  CHECK(adapter_seconds(requests[0].first) == test::near(3.25));
  CHECK(adapter_seconds(requests[2].first) == test::near(3.25));
  CHECK(adapter_seconds(requests[4].first) == test::near(3.25));
  CHECK(adapter_seconds(requests[1].first) == test::near(5.5));
  CHECK(adapter_seconds(requests[3].first) == test::near(5.5));
  CHECK(result.serving.adapters.loads == 2);
  CHECK(result.serving.adapters.from_storage == 2);
  CHECK(result.serving.adapters.loading.base_units() == test::near(0.5));
}

TEST_CASE("adapters: a pass takes longer once, by its adapters and by its tokens") {
  AdapterClock clock;
  ServePlan plan = adapted_plan(clock, {.count = 3,
                                        .on_gpu = 3,
                                        .in_host = 3,
                                        .pass = Seconds{0.5},
                                        .adapter = Seconds{0.05},
                                        .row = Seconds{0.001}});
  std::vector<ServedRequest> requests(3, {.input = 100, .output = 2});
  requests[0].adapter = 0;
  requests[1].adapter = 2;
  (void)serve(plan, requests);
  const double first = 3 + 0.5 + 2 * 0.05 + 200 * 0.001;
  CHECK(adapter_seconds(requests[2].first) == test::near(first));
  CHECK(adapter_seconds(requests[2].last) == test::near(first + 0.1 + 0.5 + 2 * 0.05 + 2 * 0.001));
}

TEST_CASE("adapters: with room for all, and kernels that take nothing, times are as without them") {
  AdapterClock clock;
  ServePlan plan = adapted_plan(clock, {.count = 50, .on_gpu = 50, .in_host = 50}, 3);
  plan.serving.rules.cache_tokens = 3000;
  RandomStream random({.seed = 3, .purpose = 997});
  std::vector<ServedRequest> with(3000);
  double at = 0;
  for (ServedRequest& r : with) {
    at += 0.2 * random.exponential();
    r = {.arrival = adapter_time(at),
         .input = 1 + static_cast<std::int32_t>(random.below(500)),
         .output = 1 + static_cast<std::int32_t>(random.below(40)),
         .adapter = static_cast<std::int32_t>(random.below(50))};
  }
  std::vector<ServedRequest> without = with;
  (void)serve(plan, with);
  plan.serving.adapters.reset();
  (void)serve(plan, without);
  for (std::size_t i = 0; i < with.size(); ++i) CHECK(with[i].last == without[i].last);
}

/// Che, Tung and Wang 2002 (IEEE JSAC 20(7)): of independent requests adapter k is there with
/// 1 - exp(-q_k t), where t is such that the sum of these is the room.
TEST_CASE("adapters: of independent requests as many are loaded as Che's approximation says") {
  constexpr int kAdapters = 200, kRoom = 20;
  std::vector<double> weights;
  double sum = 0;
  for (int k = 1; k <= kAdapters; ++k) sum += weights.emplace_back(1.0 / k);
  const auto held = [&](double t) {
    double all = 0;
    for (const double w : weights) all += 1 - std::exp(-w / sum * t);
    return all;
  };
  double low = 0, high = 1e6;
  for (int i = 0; i < 100; ++i) (held((low + high) / 2) < kRoom ? low : high) = (low + high) / 2;
  double missed = 0;
  for (const double w : weights) missed += w / sum * std::exp(-w / sum * low);

  AdapterClock clock;
  ServePlan plan = adapted_plan(clock, {.count = kAdapters, .on_gpu = kRoom, .in_host = 60});
  RandomStream random({.seed = 5, .purpose = 996});
  const ZipfDraw law(kAdapters, 1);
  std::vector<ServedRequest> requests(60'000);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i] = {.arrival = adapter_time(2.0 * static_cast<double>(i)),
                   .input = 1,
                   .output = 1,
                   .adapter = static_cast<std::int32_t>(law.next(random))};
  }
  const AdapterAccount account = serve(plan, requests).serving.adapters;
  CHECK(static_cast<double>(account.loads) / 60'000 == test::near(missed).epsilon(0.02));
  CHECK(account.from_storage < account.loads);
  CHECK(account.from_storage > 0);
}

TEST_CASE("adapters: adapter_aware loads less than least_loaded, and keeps loads even") {
  AdapterClock clock;
  const auto loads = [&](ServingRouter router) {
    ServePlan plan = adapted_plan(clock, {.count = 64, .on_gpu = 16, .in_host = 64}, 4);
    plan.router = router;
    RandomStream random({.seed = 6, .purpose = 995});
    std::vector<ServedRequest> requests(4000);
    double at = 0;
    for (ServedRequest& r : requests) {
      at += 0.5 * random.exponential();
      r = {.arrival = adapter_time(at),
           .input = 10,
           .output = 10,
           .adapter = static_cast<std::int32_t>(random.below(64))};
    }
    const ServeResult result = serve(plan, requests);
    std::vector<int> of_replica(4, 0);
    for (const ServedRequest& r : requests) ++of_replica[static_cast<std::size_t>(r.replica)];
    for (const int count : of_replica) CHECK(count > 500);
    return result.serving.adapters.loads;
  };
  const std::int64_t blind = loads(ServingRouter::least_loaded);
  const std::int64_t aware = loads(ServingRouter::adapter_aware);
  CHECK(blind > 2000);
  CHECK(aware < blind / 3);
}

TEST_CASE("adapters: a failure or restart loses what the replica held") {
  AdapterClock clock;
  ServePlan plan = adapted_plan(clock, {.count = 1, .on_gpu = 1, .in_host = 1});
  plan.serving.life.planned = {{.at = adapter_time(15), .replica = 0}};
  plan.serving.life.down = adapter_time(1);
  std::vector<ServedRequest> requests(4, {.input = 10, .output = 1, .adapter = 0});
  for (std::size_t i = 0; i < 4; ++i)
    requests[i].arrival = adapter_time(10.0 * static_cast<double>(i));
  CHECK(serve(plan, requests).serving.adapters.loads == 2);
}

TEST_CASE("adapters: a GPU holds its part of both thin matrices") {
  const ServingSpec spec = adapted_spec(R"({"count": 10, "rank": 16})", R"({"tensor": 8})");
  const ServingReplica eight(replica_spec(spec.pools[0], spec));
  // Llama 3 8B, 32 layers: of 4,096 into 4,096 + 2 x 1,024; back; into 2 x 14,336; back.
  const double cut =
      4096 + 6144 / 8.0 + 4096 / 8.0 + 4096 + 4096 + 28672 / 8.0 + 14336 / 8.0 + 4096;
  const ServedAdapterCost of_eight = served_adapter_cost(eight, spec.adapters->shape);
  CHECK(of_eight.bytes.base_units() == test::near(2 * 16 * 32 * cut));
  CHECK(of_eight.all_bytes.base_units() == test::near(8 * 2 * 16 * 32 * cut));

  const ServingSpec one_spec = adapted_spec(R"({"count": 10, "rank": 16})");
  const ServingReplica one(replica_spec(one_spec.pools[0], one_spec));
  const ServedAdapterCost of_one = served_adapter_cost(one, one_spec.adapters->shape);
  const double whole = 4096 + 6144 + 4096 + 4096 + 4096 + 28672 + 14336 + 4096;
  CHECK(of_one.bytes.base_units() == test::near(2 * 16 * 32 * whole));
  CHECK(of_one.adapter > of_eight.adapter);
  const ServedAdapterCost wider = [&] {
    Adapters shape = one_spec.adapters->shape;
    shape.rank = 64;
    return served_adapter_cost(one, shape);
  }();
  CHECK(wider.bytes / of_one.bytes == test::near(4.0));
  CHECK(wider.pass == of_one.pass);
}

TEST_CASE("adapters: a scenario's answer has their room, loads and time") {
  ServingSpec spec = adapted_spec(R"({"count": 100, "rank": 32, "on_gpu": 16, "without": 0.25})");
  const ServingReport report = simulate_serving(spec);
  REQUIRE(report.adapters);
  CHECK(report.figures.served == 2000);
  CHECK(report.adapters->requests == test::near(1500).epsilon(0.05));
  CHECK(report.adapters->loads >= 16);
  CHECK(report.adapters->kernel_s > 0);
  ServingSpec alone = adapted_spec(R"({"count": 100, "rank": 32, "without": 1})");
  const ServingReport without = simulate_serving(alone);
  CHECK(without.adapters->loads == 0);
  CHECK(without.figures.tpot_s.mean < report.figures.tpot_s.mean);
  CHECK(report.pools[0].cache_tokens < without.pools[0].cache_tokens);
}

TEST_CASE("adapters: a conversation keeps its adapter") {
  const ServingSpec spec = read_serving(JsonCursor::parse("s.json", R"({"model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1}, "serving": {
      "load": {"rate": 20, "requests": 300, "input": {"mean": 50}, "output": {"mean": 10},
               "conversation": {"turns": 3}},
      "pools": {"both": {}}, "adapters": {"count": 40, "rank": 8}}})"),
                                        test::presets());
  for (const ServedRequest& r : spec.requests) {
    if (r.next >= 0) CHECK(spec.requests[static_cast<std::size_t>(r.next)].adapter == r.adapter);
  }
}

TEST_CASE("adapters: what a scenario may not say") {
  const auto refused = [](const std::string& adapters, const std::string& pools = "{}") {
    try {
      (void)adapted_spec(adapters, pools);
    } catch (const InputError& error) {
      return error.first_line();
    }
    return std::string("taken");
  };
  CHECK(refused(R"({"count": 4, "rank": 8})") == "taken");
  CHECK(refused(R"({"count": 100, "rank": 8, "in_host": 4})").find("at least the 8") !=
        std::string::npos);
  CHECK(refused(R"({"count": 100000, "rank": 256, "on_gpu": 4000})").find("at most") !=
        std::string::npos);
  CHECK(refused(R"({"count": 4, "rank": 8, "modules": ["expert_up"]})").find("modules") !=
        std::string::npos);
  CHECK(refused(R"({"count": 4, "rank": 8})", R"({"attention_data": 2})").find("adapters") !=
        std::string::npos);
}

}  // namespace lockstep
