// What a step says by default where hashed paths tell replicas apart: the exact answer within a
// budget of work, else a band that holds it.
#include <algorithm>
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/sample.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep {
namespace {

constexpr double kTicks = 1e-9;  // as in folding_test.cpp

StepReport unfolded(const Scenario& scenario) {
  return simulate_step(scenario, {.folding = Folding::unfolded});
}

Scenario hashed(const std::vector<std::string>& sets = {}) {
  const PresetStore presets;
  const std::string text = R"({"model": "llama3_8b",
    "stack": {"preset": "megatron_core", "allow": ["schedules.dualpipe"]},
    "cluster": {"node": "dgx_h100", "nodes": 32, "fabric": "fat_tree_ecmp"},
    "parallelism": {"tensor": 4, "pipeline": 4, "data": 16, "sharding": "none"},
    "batch": {"sequences": 256, "tokens": 4096, "micro": 1}})";
  return read_scenario("hashed.json", text, presets, {.set = sets});
}

}  // namespace

TEST_CASE("hashed paths: by default a step takes what every replica on its own takes") {
  test::RandomScenarios scenarios{test::test_seed() + 11, {.fabrics = test::RandomFabrics::hashed}};
  for (int i = 0; i < 200; ++i) {
    const Scenario scenario = scenarios.next();
    CAPTURE(i);
    CAPTURE(scenarios.text());
    const StepReport report = simulate_step(scenario);
    CHECK(report.method == StepMethod::exact);
    CHECK(report.step_s == doctest::Approx(unfolded(scenario).step_s).epsilon(kTicks));
    REQUIRE(report.band);
    CHECK(report.band->low_s == report.step_s);
    CHECK(report.band->high_s == report.step_s);
  }
}

TEST_CASE("hashed paths: schedules that fold fast are simulated on their own") {
  for (const char* schedule : {"1f1b", "dualpipe"}) {
    CAPTURE(schedule);
    // Over few uplinks, where collisions cost more than two connections of each pair even out.
    const Scenario scenario = hashed({std::string("parallelism.schedule=") + schedule,
                                      "cluster.fabric.leaf_oversubscription=4"});
    const double exact = unfolded(scenario).step_s;
    CHECK(simulate_step(scenario).step_s == doctest::Approx(exact).epsilon(kTicks));
    CHECK(simulate_step(scenario, {.folding = Folding::folded}).step_s < 0.99 * exact);
  }
}

TEST_CASE("hashed paths: replicas without pipeline messages are one, exactly") {
  const Scenario scenario =
      hashed({"parallelism.pipeline=1", "parallelism.data=64", "parallelism.sharding=zero3"});
  const StepReport report = simulate_step(scenario), whole = unfolded(scenario);
  CHECK(report.method == StepMethod::exact);
  CHECK(report.replicas_simulated == 1);
  CHECK(whole.replicas_simulated == 64);
  CHECK(report.step_s == doctest::Approx(whole.step_s).epsilon(kTicks));
}

namespace {

constexpr test::RandomScenarioOptions kManyReplicas{.fabrics = test::RandomFabrics::hashed,
                                                    .many_replicas = true};

/// Half of a band's width over the step.
double half_width(const StepReport& report) {
  return (report.band->high_s - report.band->low_s) / 2 / report.step_s;
}

}  // namespace

// A budget of a single event leaves the least sample, however wide its band.
TEST_CASE("hashed paths: above the budget the band of a sample holds the exact step") {
  test::RandomScenarios scenarios{test::test_seed() + 12, kManyReplicas};
  int sampled = 0;
  for (int i = 0; i < 40; ++i) {
    const Scenario scenario = scenarios.next();
    CAPTURE(i);
    CAPTURE(scenarios.text());
    const StepReport report = simulate_step(scenario, {.budget = 1});
    REQUIRE(report.band);
    const double exact = unfolded(scenario).step_s;
    CAPTURE(exact);
    CHECK(report.band->low_s <= exact * (1 + kTicks));
    CHECK(report.band->high_s >= exact * (1 - kTicks));
    CHECK(report.band->low_s <= report.step_s);
    CHECK(report.band->high_s >= report.step_s);
    sampled += report.method == StepMethod::sampled ? 1 : 0;
  }
  CHECK(sampled >= 5);
}

// The sample doubles while that costs no more than eight budgets: here it may come to all replicas.
TEST_CASE("hashed paths: a band is narrow where narrowing it is worth its cost") {
  test::RandomScenarios scenarios{test::test_seed() + 13, kManyReplicas};
  std::vector<double> halves;
  for (int i = 0; i < 40; ++i) {
    const Scenario scenario = scenarios.next();
    CAPTURE(i);
    CAPTURE(scenarios.text());
    const StepPlan plan = plan_step(scenario);
    const std::vector<ReplicaClass> all(static_cast<std::size_t>(plan.placement.data));
    const StepReport report = simulate_step(scenario, {.budget = step_events(plan, all) / 6});
    REQUIRE(report.band);
    halves.push_back(half_width(report));
  }
  std::ranges::sort(halves);
  CHECK(halves[halves.size() * 9 / 10] <= 0.0305);  // over the step, not over the band's middle
  CHECK(halves.back() <= 0.08);
}

TEST_CASE("hashed paths: a sample's buckets add up, and it says that it is one") {
  const Scenario scenario =
      hashed({"parallelism.pipeline=2", "parallelism.tensor=2", "parallelism.data=64"});
  const StepReport report = simulate_step(scenario, {.record_timeline = true, .budget = 1});
  CHECK(report.method == StepMethod::sampled);
  CHECK(report.replicas_simulated < report.replicas);
  double sum = 0;
  for (const double seconds : report.seconds) sum += seconds;
  CHECK(sum == doctest::Approx(report.step_s).epsilon(1e-12));
  CHECK(std::ranges::count_if(report.notes, [](const std::string& note) {
          return note.find("(--unfold)") != std::string::npos;
        }) == 1);
  int copies = 0;
  for (const ActorReport& actor : report.actors) copies += actor.stage == 0 ? actor.copies : 0;
  CHECK(copies == static_cast<int>(report.replicas));
}

TEST_CASE("a step says how far its simulation is, and is the same step") {
  struct Case {
    StepOptions options;
    bool sampled;
  };
  // Far below what all replicas take: a sample, replayed three times and perhaps doubled.
  for (const Case& of :
       {Case{.options = {}, .sampled = false}, Case{.options = {.budget = 500}, .sampled = true}}) {
    CAPTURE(of.sampled);
    const Scenario scenario = hashed({"cluster.nodes=256", "parallelism.data=128"});
    std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
    StepOptions watched = of.options;
    watched.progress = [&](std::uint64_t done, std::uint64_t all) { told.emplace_back(done, all); };
    const StepReport report = simulate_step(scenario, watched);
    REQUIRE(told.size() > 2);
    CHECK(told.front().first == 0);
    CHECK(told.back().first == told.back().second);
    CHECK(std::ranges::is_sorted(told, {}, &std::pair<std::uint64_t, std::uint64_t>::first));
    CHECK(std::ranges::all_of(told, [](const auto& t) { return t.first <= t.second; }));
    CHECK((report.method == StepMethod::sampled) == of.sampled);
    CHECK(report.step_s == simulate_step(scenario, of.options).step_s);
  }
}

}  // namespace lockstep
