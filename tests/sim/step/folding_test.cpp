// A step with replicas folded against the same step with every replica on its own.
#include <cmath>
#include <cstddef>
#include <doctest/doctest.h>
#include <string>

#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/sim/step/random_scenarios.hpp"

namespace lockstep {
namespace {

// Shares of a link that are equal on paper differ in their last bits with the number of flows that
// are added up; ends then move by a tick.
constexpr double kRounding = 1e-9;

void check_equal(const StepReport& folded, const StepReport& unfolded) {
  CHECK(std::abs(folded.step_s - unfolded.step_s) <= kRounding * unfolded.step_s);
  for (std::size_t b = 0; b < kBuckets; ++b) {
    CAPTURE(buckets()[b].name);
    CHECK(std::abs(folded.seconds[b] - unfolded.seconds[b]) <= kRounding * unfolded.step_s);
  }
}

void check_random_scenarios(int count, const test::RandomScenarioOptions& options) {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  test::RandomScenarios scenarios{seed, options};
  for (int i = 0; i < count; ++i) {
    const Scenario scenario = scenarios.next();
    CAPTURE(i);
    CAPTURE(scenarios.text());
    const StepReport folded = simulate_step(scenario);
    CHECK(folded.folded_exactly);
    check_equal(folded, simulate_step(scenario, {.unfold = true}));
  }
}

}  // namespace

TEST_CASE("folding: the same step as unfolded, on symmetric routes") {
  check_random_scenarios(60, {});
}

TEST_CASE("folding: the same step as unfolded with one slow GPU, on symmetric routes") {
  check_random_scenarios(60, {.straggler = true});
}

}  // namespace lockstep
