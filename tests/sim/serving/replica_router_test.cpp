// Routers that look at what replicas have, on loads whose answer follows by hand.
#include "sim/serving/replica_router.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "sim/serving/serve.hpp"

namespace lockstep {
namespace {

/// 10 ms for each token of a prompt, 1 ms a step.
class RouterClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{0.01 * load.prompt_tokens};
    if (load.sequences > 0) out.products = Seconds{0.001};
    return out;
  }
};

ServePlan routed_plan(PassClock& clock, ServingRouter router, int replicas) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.replicas = replicas;
  plan.serving.rules = {.pass_tokens = 64, .most_sequences = 1 << 20, .block = 16};
  plan.router = router;
  return plan;
}

}  // namespace

TEST_CASE("router cost: a replica with few long prompts is fuller than one with many short ones") {
  RouterClock clock;
  // The first and the second go to replicas 0 and 1. Of the next, short ones, all go to replica 1
  // until its prompts are as many tokens as the first's.
  const auto replicas_of = [&](ServingRouter router) {
    std::vector<ServedRequest> requests{{.input = 1600, .output = 2}, {.input = 160, .output = 2}};
    for (int i = 0; i < 4; ++i) requests.push_back({.input = 160, .output = 2});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i].arrival = static_cast<RunTime>(i);
    }
    (void)serve(routed_plan(clock, router, 2), requests);
    std::vector<int> out;
    for (const ServedRequest& r : requests) out.push_back(r.replica);
    return out;
  };
  CHECK(replicas_of(ServingRouter::cost) == std::vector<int>{0, 1, 1, 1, 1, 1});
  CHECK(replicas_of(ServingRouter::least_loaded) == std::vector<int>{0, 1, 0, 1, 0, 1});
}

TEST_CASE("router cost: what is held of a prompt need not be computed") {
  RouterClock clock;
  const std::vector<PrefixNode> nodes{{.parent = -1, .tokens = 320}};
  ServePlan plan = routed_plan(clock, ServingRouter::cost, 3);
  plan.serving.rules.prefixes = &nodes;
  std::vector<ServedRequest> requests;
  for (int i = 0; i < 5; ++i) {
    requests.push_back({.arrival = to_run_time(Seconds{100.0 * i}), .input = 330, .output = 2});
    requests.back().prefix = 0;
  }
  (void)serve(plan, requests);
  for (const ServedRequest& r : requests) CHECK(r.replica == requests[0].replica);
  CHECK(requests[4].found == 320);
}

TEST_CASE("router session: turns stay where the first one went, and move when that replica fails") {
  RouterClock clock;
  const auto conversation = [] {
    std::vector<ServedRequest> out;  // three conversations of three turns
    for (int i = 0; i < 9; ++i) {
      out.push_back({.arrival = static_cast<RunTime>(i < 3 ? i : 0), .input = 50, .output = 20});
      if (i < 6) out.back().next = i + 3;
      out.back().think = to_run_time(Seconds{5.0 + i});
    }
    return out;
  };
  ServePlan plan = routed_plan(clock, ServingRouter::session, 3);
  plan.coming = 3;
  std::vector<ServedRequest> requests = conversation();
  (void)serve(plan, requests);
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(requests[i].served());
    CHECK(requests[i].replica == static_cast<int>(i % 3));
  }
  plan.serving.life.down = to_run_time(Seconds{1000});
  plan.serving.life.planned = {{.at = to_run_time(Seconds{4}), .replica = 1}};
  requests = conversation();
  (void)serve(plan, requests);
  CHECK(requests[1].replica == 1);
  CHECK(requests[4].replica != 1);
  CHECK(requests[7].replica == requests[4].replica);
  CHECK(requests[8].replica == 2);
}

}  // namespace lockstep
