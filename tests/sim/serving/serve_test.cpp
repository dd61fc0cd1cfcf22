// Requests on replicas against closed forms, with passes whose time is a law that is written down.
#include "sim/serving/serve.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/serving/serving_figures.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

/// Passes of a + b n for n running sequences, and c for each token of a prompt.
class LawClock final : public PassClock {
 public:
  LawClock(double a, double b, double c) : a_(a), b_(b), c_(c) {}
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{c_ * load.prompt_tokens};
    if (load.sequences > 0) out.products = Seconds{a_ + b_ * load.sequences};
    return out;
  }

 private:
  double a_, b_, c_;
};

struct PromptLengths {
  int input = 1, output = 1;
  bool exponential_input = false, exponential_output = false;
};

std::vector<ServedRequest> poisson(int count, double rate, const PromptLengths& of) {
  RandomStream random({.seed = 11, .purpose = 1});
  std::vector<ServedRequest> out(static_cast<std::size_t>(count));
  double at = 0;
  const auto drawn = [&](int mean, bool exponential) {
    if (!exponential) return mean;
    return std::max(1, static_cast<int>(std::ceil(mean * random.exponential())));
  };
  for (ServedRequest& r : out) {
    at += random.exponential() / rate;
    r.arrival = to_run_time(Seconds{at});
    r.input = drawn(of.input, of.exponential_input);
    r.output = drawn(of.output, of.exponential_output);
  }
  return out;
}

constexpr double kUnbounded = 1e15;

ServePlan plan_of(PassClock& clock, int replicas = 1) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.replicas = replicas;
  plan.serving.rules = {
      .pass_tokens = 1 << 30, .most_sequences = 1 << 30, .block = 16, .cache_tokens = kUnbounded};
  plan.router = ServingRouter::round_robin;
  return plan;
}

/// One prompt at a time, and nothing else.
ServePlan prompts_alone(PassClock& clock, int replicas = 1) {
  ServePlan plan = plan_of(clock, replicas);
  plan.serving.rules.most_sequences = 1;
  return plan;
}

constexpr int kMany = 1'000'000;
constexpr int kPromptTokens = 100'000;  // so that whole tokens are fine steps

double mean_e2e(const std::vector<ServedRequest>& requests) {
  double sum = 0;
  for (const ServedRequest& r : requests) sum += to_seconds(r.end_to_end()).base_units();
  return sum / static_cast<double>(requests.size());
}

}  // namespace

TEST_CASE("serve: equal prompts one at a time wait as in M/D/1") {
  LawClock clock(0, 0, 1.0 / kPromptTokens);  // a second each
  for (const double load : {0.3, 0.8}) {
    CAPTURE(load);
    std::vector<ServedRequest> requests = poisson(kMany, load, {.input = kPromptTokens});
    (void)serve(prompts_alone(clock), requests);
    // Pollaczek and Khinchine: rho / (2 (1 - rho)) of a service, and the service.
    CHECK(mean_e2e(requests) == test::near(1 + load / (2 * (1 - load))).epsilon(0.01));
  }
}

TEST_CASE("serve: prompts of exponential length have the sojourn quantiles of M/M/1") {
  LawClock clock(0, 0, 1.0 / kPromptTokens);
  constexpr double kLoad = 0.7;
  std::vector<ServedRequest> requests =
      poisson(kMany, kLoad, {.input = kPromptTokens, .exponential_input = true});
  const ServeResult result = serve(prompts_alone(clock), requests);
  const ServingFigures figures = serving_figures(requests, result);
  for (const auto& [share, value] :
       {std::pair{0.5, figures.e2e_s.p50}, std::pair{0.9, figures.e2e_s.p90}}) {
    CHECK(value == test::near(-std::log(1 - share) / (1 - kLoad)).epsilon(0.02));
  }
}

TEST_CASE("serve: round robin over four makes arrivals of Erlang's law") {
  LawClock clock(0, 0, 1.0 / kPromptTokens);
  constexpr int kReplicas = 4;
  constexpr double kLoad = 0.6;
  std::vector<ServedRequest> requests =
      poisson(kMany, kLoad * kReplicas, {.input = kPromptTokens, .exponential_input = true});
  (void)serve(prompts_alone(clock, kReplicas), requests);
  // Of G/M/1: s = A*(1 - s) with the transform of Erlang-4; mean sojourn 1 / (1 - s).
  double s = 0.5;
  for (int i = 0; i < 1000; ++i) {
    const double rate = kLoad * kReplicas;
    s = std::pow(rate / (rate + 1 - s), kReplicas);
  }
  CHECK(mean_e2e(requests) == test::near(1 / (1 - s)).epsilon(0.01));
}

TEST_CASE("serve: a random router makes of c replicas c times M/M/1") {
  LawClock clock(0, 0, 1.0 / kPromptTokens);
  constexpr double kLoad = 0.6;
  std::vector<ServedRequest> requests =
      poisson(kMany, kLoad * 3, {.input = kPromptTokens, .exponential_input = true});
  ServePlan plan = prompts_alone(clock, 3);
  plan.router = ServingRouter::random;
  (void)serve(plan, requests);
  CHECK(mean_e2e(requests) == test::near(1 / (1 - kLoad)).epsilon(0.01));
}

TEST_CASE("serve: steps that take the same for any batch are M/G/infinity") {
  constexpr double kStep = 0.001, kRate = 20;
  constexpr int kTokens = 1000;
  LawClock clock(kStep, 0, 0);
  std::vector<ServedRequest> requests =
      poisson(kMany / 10, kRate, {.output = kTokens, .exponential_output = true});
  const ServeResult result = serve(plan_of(clock), requests);
  const ServingFigures figures = serving_figures(requests, result);
  CHECK(figures.tpot_s.mean == test::near(kStep).epsilon(0.01));
  // Poisson with the mean of rate x tokens x step.
  CHECK(figures.in_system == test::near(kRate * kTokens * kStep).epsilon(0.01));
}

TEST_CASE("serve: steps in proportion to the batch share a processor, whatever the lengths' law") {
  constexpr double kEach = 0.005, kRate = 0.5;
  constexpr int kTokens = 200;
  LawClock clock(0, kEach, 0);
  for (const bool exponential : {false, true}) {
    CAPTURE(exponential);
    std::vector<ServedRequest> requests =
        poisson(kMany / 5, kRate, {.output = kTokens, .exponential_output = exponential});
    (void)serve(plan_of(clock), requests);
    // E[time | x] = x / (1 - rho), thus on average of all. The first token comes with the prompt,
    // and a request waits for the step that is under way: half a percent each.
    CHECK(mean_e2e(requests) == test::near(1 / (1 - kRate)).epsilon(0.02));
  }
}

TEST_CASE("serve: clients in a closed loop get C / (T step(C)) requests a second") {
  constexpr int kClients = 32, kTokens = 200;
  LawClock clock(0.01, 0.0005, 0);
  ServePlan plan = plan_of(clock);
  plan.clients = kClients;
  std::vector<ServedRequest> requests(kClients * 20);
  for (ServedRequest& r : requests) r.output = kTokens;
  const ServeResult result = serve(plan, requests);
  const double step = 0.01 + 0.0005 * kClients;
  const double rate = static_cast<double>(requests.size()) / to_seconds(result.end).base_units();
  // The first token comes with the prompt, which takes no time here.
  CHECK(rate == test::near(kClients / ((kTokens - 1) * step)).epsilon(1e-6));
}

TEST_CASE("serve: a request alone is its prompt and its steps, in one pool or in two") {
  LawClock clock(0.01, 0.001, 1e-5);
  ServePlan one = plan_of(clock);
  one.request_host = to_run_time(Seconds{0.02});
  std::vector<ServedRequest> alone{{.input = 1000, .output = 11}};
  (void)serve(one, alone);
  CHECK(to_seconds(alone[0].time_to_first()).base_units() == test::near(0.02 + 0.01));
  CHECK(to_seconds(alone[0].end_to_end()).base_units() == test::near(0.02 + 0.01 + 10 * 0.011));
  ServePlan two = one;
  two.decoding = one.serving;
  std::vector<ServedRequest> split{{.input = 1000, .output = 11}};
  (void)serve(two, split);
  CHECK(split[0].first == alone[0].first);
  CHECK(split[0].last == alone[0].last);
}

TEST_CASE("serve: of two pools the first token comes with keys and values, once there is room") {
  LawClock clock(0.01, 0, 1e-5);
  ServePlan plan = plan_of(clock);
  plan.decoding = plan.serving;
  plan.transfer = {.per_token = Bytes{1e6}, .rate = BytesPerSecond{1e9}, .latency = Seconds{0.5}};
  std::vector<ServedRequest> requests(2, ServedRequest{.input = 1000, .output = 11});
  requests[1].arrival = to_run_time(Seconds{4});
  const auto first = [&](std::size_t i) {
    return to_seconds(requests[i].time_to_first()).base_units();
  };
  SUBCASE("a pass, a second for the bytes, and the latency") {
    (void)serve(plan, requests);
    CHECK(first(0) == test::near(0.01 + 1 + 0.5));
    CHECK(first(1) == test::near(first(0)));
    // Its other tokens come step by step behind it.
    CHECK(to_seconds(requests[0].last - requests[0].first).base_units() == test::near(10 * 0.01));
  }
  SUBCASE("and what the decoding side's host takes, where it is told afterwards") {
    plan.handover = to_run_time(Seconds{0.25});
    (void)serve(plan, requests);
    CHECK(first(0) == test::near(0.01 + 1 + 0.5 + 0.25));
  }
  SUBCASE("the second waits until the first has left the cache") {
    plan.decoding.rules.cache_tokens = 1500;
    requests[0].output = 300;
    requests[1].arrival = to_run_time(Seconds{0.02});
    (void)serve(plan, requests);
    REQUIRE(requests[1].served());
    // It is sent behind the first, and is there a second after that begins, which takes 3 seconds.
    CHECK(first(1) + 0.02 == test::near(0.01 + 1 + 0.5 + 299 * 0.01));
  }
}

TEST_CASE("serve: n equal transfers out of one replica end n times later than one") {
  LawClock clock(0.01, 0, 0);
  ServePlan plan = plan_of(clock);
  plan.decoding = plan.serving;
  plan.transfer = {.per_token = Bytes{1e6}, .rate = BytesPerSecond{1e9}, .latency = {}};
  std::vector<ServedRequest> requests(5);
  for (ServedRequest& r : requests) r = {.input = 1000, .output = 2};
  const ServeResult result = serve(plan, requests);
  CHECK(result.transferred == Bytes{5e9});
  RunTime last = 0;
  for (const ServedRequest& r : requests) last = std::max(last, r.last);
  CHECK(to_seconds(last).base_units() >= 5.0);
  CHECK(to_seconds(last).base_units() < 5.03);
}

TEST_CASE("serve: a full cache lets the last one leave, and every token still comes out") {
  LawClock clock(0.001, 1e-5, 1e-6);
  ServePlan plan = plan_of(clock);
  plan.serving.rules.cache_tokens = 3200;
  std::vector<ServedRequest> requests =
      poisson(500, 200, {.input = 150, .output = 400, .exponential_output = true});
  for (ServedRequest& r : requests) r.output = std::min(r.output, 2000);
  const ServeResult result = serve(plan, requests);
  CHECK(result.serving.preempted > 0);
  double tokens = 0;
  for (const ServedRequest& r : requests) {
    CHECK(r.served());
    CHECK(r.first <= r.last);
    tokens += r.output - 1;
  }
  // Every token but the first of each is an interval; a token that is computed again is none.
  CHECK(result.serving.intervals.count() <= static_cast<std::int64_t>(tokens));
  SUBCASE("reserved for the longest answer, nobody leaves") {
    plan.serving.rules.reserved = 1;
    for (ServedRequest& r : requests) r.first = r.last = r.scheduled = -1;
    CHECK(serve(plan, requests).serving.preempted == 0);
  }
}

TEST_CASE("serve: an engine that looks for requests now and then works on all that it has seen") {
  LawClock clock(0.01, 0, 1e-5);
  ServePlan plan = plan_of(clock);
  plan.serving.rules.order = PassOrder::prompts_first;
  plan.serving.rules.pass_tokens = 1000;
  plan.serving.rules.poll = 30;
  std::vector<ServedRequest> requests(
      9, ServedRequest{.arrival = to_run_time(Seconds{0.05}), .input = 1000, .output = 2});
  requests[0] = {.input = 1, .output = 1000};
  (void)serve(plan, requests);
  // It looks after its first prompt, and 30 steps of 10 ms later; then one prompt follows another.
  CHECK(to_seconds(requests[1].first).base_units() == test::near(0.31).epsilon(0.05));
  CHECK(to_seconds(requests[8].first - requests[1].first).base_units() == test::near(7 * 0.01));
}

TEST_CASE("serve: attention ranks wait for prompts of all of them, but not for ever") {
  LawClock clock(0.01, 0, 1e-6);
  ServePlan plan = plan_of(clock);
  plan.serving.rules.attention_ranks = 4;
  const auto first_of_fifth = [&](int wait, double last_three) {
    plan.serving.rules.balance_wait = wait;
    std::vector<ServedRequest> requests(8, ServedRequest{.input = 1000, .output = 200});
    requests[4].arrival = to_run_time(Seconds{0.055});
    for (std::size_t r = 5; r < 8; ++r) requests[r].arrival = to_run_time(Seconds{last_three});
    (void)serve(plan, requests);
    return to_seconds(requests[4].first).base_units();
  };
  CHECK(first_of_fifth(0, 0.3) < 0.08);
  CHECK(first_of_fifth(60, 0.3) == test::near(0.32).epsilon(0.05));
  CHECK(first_of_fifth(60, 1.5) == test::near(0.62).epsilon(0.05));
}

TEST_CASE("serve: prompts wait for enough of them while something runs, but not for ever") {
  LawClock clock(0.01, 0, 1e-6);
  ServePlan plan = plan_of(clock);
  plan.serving.rules.enough = 2500;
  const auto first_of_second = [&](int wait, double third) {
    plan.serving.rules.batch_wait = wait;
    std::vector<ServedRequest> requests(4, ServedRequest{.input = 1000, .output = 200});
    requests[1].arrival = to_run_time(Seconds{0.055});
    for (std::size_t r = 2; r < 4; ++r) requests[r].arrival = to_run_time(Seconds{third});
    (void)serve(plan, requests);
    return to_seconds(requests[1].first).base_units();
  };
  CHECK(first_of_second(0, 0.2) < 0.08);
  CHECK(first_of_second(20, 0.15) == test::near(0.17).epsilon(0.05));
  CHECK(first_of_second(20, 1.5) == test::near(0.27).epsilon(0.05));
  plan.serving.rules.attention_ranks = 2;
  CHECK(first_of_second(20, 0.2) < 0.08);
}

TEST_CASE("serve: what does not fit in an empty cache is refused, the rest is served") {
  LawClock clock(0.001, 0, 0);
  ServePlan plan = plan_of(clock);
  plan.serving.rules.cache_tokens = 1600;
  std::vector<ServedRequest> requests{{.input = 1590, .output = 10},
                                      {.input = 1591, .output = 10},
                                      {.input = 10'000'000, .output = 1}};
  const ServeResult result = serve(plan, requests);
  CHECK(result.refused == 2);
  CHECK(requests[0].served());
  CHECK_FALSE(requests[1].served());
}

TEST_CASE("serve: the same bytes again, and least loaded is not worse than round robin") {
  LawClock clock(0.005, 0.0005, 1e-5);
  const auto run = [&](ServingRouter router) {
    ServePlan plan = plan_of(clock, 4);
    plan.router = router;
    std::vector<ServedRequest> requests =
        poisson(20'000, 24, {.input = 800, .output = 150, .exponential_output = true});
    (void)serve(plan, requests);
    return mean_e2e(requests);
  };
  CHECK(run(ServingRouter::power_of_two) == run(ServingRouter::power_of_two));
  CHECK(run(ServingRouter::least_loaded) <= run(ServingRouter::round_robin));
}

TEST_CASE("interval histogram: the class of each length is that of its logarithm, near edges too") {
  constexpr double kWidth = 0.0198026272961797;  // ln 1.02
  RandomStream random({.seed = 7, .purpose = 3});
  const auto middle_of = [](RunTime length) {
    const double seconds = std::max(to_seconds(length).base_units(), 1e-6);
    const double at = std::floor(std::max(0.0, portable_log(seconds / 1e-6) / kWidth));
    return 1e-6 * portable_exp((std::min(at, 1399.0) + 0.5) * kWidth);
  };
  std::vector<RunTime> lengths{1, to_run_time(Seconds{1e7})};
  for (int i = 0; i < 1000; ++i) {
    const double edge = 1e-6 * portable_exp(std::floor(1000 * random.uniform()) * kWidth);
    for (const int off : {-5, -1, 0, 1, 5, 5000}) {
      lengths.push_back(std::max<RunTime>(1, to_run_time(Seconds{edge}) + off));
    }
  }
  for (const RunTime length : lengths) {
    IntervalHistogram one;
    one.add(length, 1);
    REQUIRE(one.quantile_s(0.5) == middle_of(length));
  }
}

TEST_CASE("interval histogram: quantiles within a hundredth, the mean exactly") {
  IntervalHistogram histogram;
  CHECK(histogram.quantile_s(0.5) == 0);
  for (int ms = 1; ms <= 1000; ++ms) histogram.add(to_run_time(Seconds{ms * 1e-3}), 3);
  CHECK(histogram.count() == 3000);
  CHECK(histogram.mean_s() == test::near(0.5005));
  CHECK(histogram.quantile_s(0.5) == test::near(0.5).epsilon(0.011));
  CHECK(histogram.quantile_s(0.99) == test::near(0.99).epsilon(0.011));
}

}  // namespace lockstep
