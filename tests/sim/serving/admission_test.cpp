// Requests that are shed, users who hang up, and replicas that are restarted in turn.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/serving/serve.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// A millisecond for each token of a prompt, a tenth of a second for each step.
class DoorClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{1e-3 * load.prompt_tokens};
    if (load.sequences > 0) out.products = Seconds{0.1};
    return out;
  }
};

RunTime door_time(double s) { return to_run_time(Seconds{s}); }
double door_seconds(RunTime t) { return to_seconds(t).base_units(); }

/// Replicas that work on one request at a time.
ServePlan door_plan(PassClock& clock, int replicas) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.replicas = replicas;
  plan.serving.rules = {.pass_tokens = 1 << 30, .most_sequences = 1, .cache_tokens = 1e9};
  plan.router = ServingRouter::least_loaded;
  return plan;
}

/// Poisson arrivals of prompts of `tokens` each, or of exponential length, with answers of a token.
std::vector<ServedRequest> poisson_load(int count, double rate, double tokens, bool exponential) {
  RandomStream random({.seed = 7, .purpose = 999});
  std::vector<ServedRequest> out(static_cast<std::size_t>(count));
  double at = 0;
  for (ServedRequest& r : out) {
    at += random.exponential() / rate;
    const double length = exponential ? tokens * random.exponential() : tokens;
    r = {.arrival = door_time(at),
         .input = std::max(1, static_cast<std::int32_t>(std::lround(length))),
         .output = 1};
  }
  return out;
}

double share(std::int64_t of, const std::vector<ServedRequest>& all) {
  return static_cast<double>(of) / static_cast<double>(all.size());
}

}  // namespace

TEST_CASE("admission: M/D/1 with one waiting place sheds 1 - 1 / (exp(-rho) + rho)") {
  DoorClock clock;
  for (const double rho : {0.5, 0.9, 2.0}) {
    CAPTURE(rho);
    ServePlan plan = door_plan(clock, 1);
    plan.admission.most_waiting = 1;
    std::vector<ServedRequest> requests = poisson_load(200'000, rho, 1000, false);
    const ServeResult result = serve(plan, requests);
    CHECK(share(result.shed, requests) == test::near(1 - 1 / (std::exp(-rho) + rho)).epsilon(0.02));
    for (const ServedRequest& r : requests) {
      CHECK(r.served() == (r.became == ServedEnd::served));
      if (r.served()) CHECK(door_seconds(r.last - r.arrival) <= 2 + 1e-9);
    }
  }
}

/// Barrer 1957 (Operations Research 5(5)): with patience t of all and E = exp(-(mu - lambda) t), of
/// M/M/1 leave rho E / (1 + rho (1 - E) / (1 - rho) + rho E).
TEST_CASE("patience: of M/M/1 as many hang up as with deadlines until the beginning of service") {
  DoorClock clock;
  for (const double rho : {0.5, 0.8, 1.6}) {
    for (const double patience : {0.5, 2.0}) {
      CAPTURE(rho);
      CAPTURE(patience);
      ServePlan plan = door_plan(clock, 1);
      plan.admission.patience = door_time(patience);
      std::vector<ServedRequest> requests = poisson_load(300'000, rho, 1000, true);
      const ServeResult result = serve(plan, requests);
      const double e = std::exp(-(1 - rho) * patience);
      const double leave = rho * e / (1 + rho * (1 - e) / (1 - rho) + rho * e);
      CHECK(share(result.gave_up, requests) == test::near(leave).epsilon(0.025));
      for (const ServedRequest& r : requests) {
        if (r.served()) CHECK(r.scheduled - r.arrival <= door_time(patience));
      }
    }
  }
}

TEST_CASE("patience: who hangs up makes room for the one behind") {
  DoorClock clock;
  ServePlan plan = door_plan(clock, 1);
  plan.admission.patience = door_time(5);
  std::vector<ServedRequest> requests;
  for (const double at : {0.0, 1.0, 2.0, 8.0, 9.0}) {
    requests.push_back({.arrival = door_time(at), .input = 10'000, .output = 1});
  }
  const ServeResult result = serve(plan, requests);
  CHECK(result.gave_up == 3);
  CHECK(requests[1].became == ServedEnd::gave_up);
  CHECK(requests[2].became == ServedEnd::gave_up);
  CHECK(door_seconds(requests[3].first) == test::near(20.0));
  CHECK(requests[4].became == ServedEnd::gave_up);
}

TEST_CASE("patience: where nobody hangs up, times are as without it") {
  DoorClock clock;
  ServePlan plan = door_plan(clock, 3);
  plan.serving.rules.most_sequences = 8;
  std::vector<ServedRequest> without = poisson_load(2000, 5, 300, true);
  for (ServedRequest& r : without) r.output = 5;
  std::vector<ServedRequest> with = without;
  (void)serve(plan, without);
  plan.admission.patience = door_time(1e5);
  plan.admission.most_waiting = 1 << 20;
  CHECK(serve(plan, with).gave_up == 0);
  for (std::size_t i = 0; i < with.size(); ++i) CHECK(with[i].last == without[i].last);
}

TEST_CASE("admission: a closed-loop client that was shed asks again after retry_after") {
  DoorClock clock;
  ServePlan plan = door_plan(clock, 1);
  plan.clients = 3;
  plan.admission.most_waiting = 1;
  plan.admission.retry_after = door_time(4);
  std::vector<ServedRequest> requests(5, {.input = 3000, .output = 1});
  const ServeResult result = serve(plan, requests);
  // All come at once: the first waits for the next pass, the others are shed, and come again at 4
  // s, where one is taken.
  CHECK(result.shed == 3);
  CHECK(requests[2].became == ServedEnd::shed);
  CHECK(door_seconds(requests[3].arrival) == test::near(4.0));
  CHECK(door_seconds(requests[3].last) == test::near(7.0));
  CHECK(requests[4].became == ServedEnd::shed);
}

TEST_CASE("restarts: one replica at a time, when it has ended what it had") {
  DoorClock clock;
  ServePlan plan = door_plan(clock, 2);
  plan.serving.rules.most_sequences = 100;
  plan.serving.life.restart_at = door_time(10);
  plan.serving.life.start = door_time(30);
  plan.serving.life.grace = door_time(1000);
  // Of 1 + 99 x 0.1 s each, one a second, in turn.
  std::vector<ServedRequest> requests(200);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i] = {.arrival = door_time(static_cast<double>(i)), .input = 1, .output = 100};
  }
  const auto count_between = [&](double from, double to, int replica) {
    return std::ranges::count_if(requests, [&](const ServedRequest& r) {
      return r.arrival > door_time(from) && r.arrival < door_time(to) && r.replica == replica;
    });
  };
  SUBCASE("with time enough nothing is computed again") {
    const ServeResult result = serve(plan, requests);
    CHECK(result.restarts == 2);
    CHECK(result.failures == 0);
    CHECK(result.retried == 0);
    for (const ServedRequest& r : requests) CHECK(r.served());
    CHECK(door_seconds(result.serving.down) == test::near(60.0));
    // The first is away from 10 s until at least 40, the second from then until at least 70.
    CHECK(count_between(10, 40, 0) == 0);
    CHECK(count_between(52, 80, 1) == 0);
    CHECK(count_between(95, 199, 0) > 40);
    CHECK(count_between(95, 199, 1) > 40);
  }
  SUBCASE("what is not over in the time of grace is computed again elsewhere") {
    plan.serving.life.grace = door_time(2);
    const ServeResult result = serve(plan, requests);
    CHECK(result.restarts == 2);
    CHECK(result.retried > 4);
    CHECK(door_seconds(result.serving.down) == test::near(60.0));
    for (const ServedRequest& r : requests) CHECK(r.served());
  }
  SUBCASE("all at once: requests wait until they are back") {
    plan.serving.life.restart_at_once = 2;
    plan.serving.life.grace = 0;
    const ServeResult result = serve(plan, requests);
    CHECK(result.restarts == 2);
    for (const ServedRequest& r : requests) CHECK(r.served());
    CHECK(door_seconds(requests[12].first) >= 40);
    CHECK(door_seconds(requests[12].first) == test::near(40.03).epsilon(0.02));
  }
  SUBCASE("a round every hundred seconds") {
    plan.serving.life.restart_every = door_time(100);
    CHECK(serve(plan, requests).restarts == 4);
  }
  SUBCASE("those whose turn has not come when the load is over are counted apart") {
    CHECK(serve(plan, requests).restarts_left == 0);
    // The first replica is away from 10 s on until 40 at least, and then there is nothing to do.
    std::vector<ServedRequest> few(requests.begin(), requests.begin() + 15);
    const ServeResult result = serve(plan, few);
    CHECK(result.restarts == 1);
    CHECK(result.restarts_left == 1);
    plan.serving.life.restart_at = door_time(1000);
    const ServeResult before = serve(plan, few);
    CHECK(before.restarts == 0);
    CHECK(before.restarts_left == 2);
  }
}

TEST_CASE("admission: with failures, restarts and patience every request ends in one way") {
  DoorClock clock;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = 998});
    ServePlan plan = door_plan(clock, 1 + static_cast<int>(random.below(4)));
    plan.seed = seed;
    plan.serving.rules.most_sequences = 1 + random.below(6);
    plan.serving.rules.cache_tokens = 4000;
    plan.serving.life.mean_time = Seconds{200};
    plan.serving.life.down = door_time(20);
    plan.serving.life.restart_at = door_time(50);
    plan.serving.life.restart_every = door_time(150);
    plan.serving.life.start = door_time(5);
    plan.serving.life.grace = door_time(random.uniform() * 10);
    plan.detect = door_time(1);
    if (random.below(2) == 0) plan.admission.patience = door_time(0.1 + 20 * random.uniform());
    if (random.below(2) == 0) plan.admission.most_waiting = 1 + random.below(8);
    if (random.below(2) == 0) plan.admission.most_cache = 0.2 + 0.7 * random.uniform();
    if (random.below(3) == 0) plan.clients = 1 + static_cast<int>(random.below(40));
    plan.admission.retry_after = door_time(0.5);
    std::vector<ServedRequest> requests = poisson_load(3000, 3, 400, true);
    for (ServedRequest& r : requests) r.output = 1 + static_cast<std::int32_t>(random.below(30));
    requests[17].input = 5000;  // would not fit
    const ServeResult result = serve(plan, requests);
    std::array<std::int64_t, 4> counted{};
    for (const ServedRequest& r : requests) {
      ++counted[static_cast<std::size_t>(r.became)];
      CHECK(r.served() == (r.became == ServedEnd::served));
      if (r.became == ServedEnd::refused) CHECK(r.input + r.output > 4000 - 16);
    }
    CHECK(counted[1] == result.refused);
    CHECK(counted[2] == result.shed);
    CHECK(counted[3] == result.gave_up);
  }
}

TEST_CASE("admission: of users those are shed that it names, and a scenario says how many") {
  const std::string text = R"({
    "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
    "serving": {
      "load": {"rate": 400, "requests": 6000, "input": {"mean": 2000}, "output": {"mean": 200},
        "populations": [{"name": "batch", "share": 3}, {"name": "chat"}]},
      "pools": {"both": {"replicas": 2}},
      "admission": {"most_waiting": 5, "sheds": ["batch"], "patience": "90 s"}
    }})";
  ServingSpec spec = read_serving(JsonCursor::parse("s.json", text), test::presets());
  const ServingReport report = simulate_serving(spec);
  CHECK(report.shed > 100);
  CHECK(static_cast<double>(report.figures.served) + report.shed + report.gave_up == 6000);
  for (const ServedRequest& r : spec.requests) {
    if (r.became == ServedEnd::shed) CHECK(r.population == 0);
  }
}

}  // namespace lockstep
