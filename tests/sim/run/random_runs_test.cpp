// Runs of weeks at random: every second is booked, every failure has its cost, and what makes a run
// better loses no goodput.
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

#include "sim/laws/run_books.hpp"
#include "sim/power/run_power.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/summary.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep {
namespace {

constexpr test::RandomScenarioOptions kWeeks{.weeks = true, .most_nodes = 12};
constexpr test::RandomScenarioOptions kWeeksWithPower{
    .power = true, .weeks = true, .most_nodes = 8};

void check_book(const LawBook& book) {
  for (const LawBreak& each : book.breaks()) {
    FAIL_CHECK(each.what << ": found " << each.found << ", expected " << each.expected);
  }
}

void check_books(const Scenario& scenario, const std::string& text) {
  const CampaignPlan plan = plan_campaign(scenario, test::run_of(text));
  std::vector<TrajectoryResult> results;
  LawBook book;
  for (std::uint32_t number = 0; number < 3; ++number) {
    hold_books(plan.campaign, number, book);
    results.push_back(run_trajectory(plan.campaign, number));
  }
  check_book(book);
  const RunSummary summary = summarise(plan.campaign, results);
  CHECK(summary.goodput.low >= 0);
  CHECK(summary.goodput.high <= 1);
  CHECK(std::accumulate(summary.shares.begin(), summary.shares.end(), 0.0) ==
        doctest::Approx(1).epsilon(1e-12));
}

void check_better_runs(const Scenario& scenario, const std::string& text) {
  LawBook book;
  hold_better_runs(scenario, test::run_of(text), 40, book);
  check_book(book);
}

// --- power -------------------------------------------------------------------------------------

void check_energy(const Scenario& scenario, const std::string& text) {
  const StepPower power =
      step_power(scenario, simulate_step(scenario, {.record_timeline = true, .keep_actors = true}));
  const CampaignPlan plan = plan_campaign(scenario, test::run_of(text));
  const TrajectoryResult result = run_trajectory(plan.campaign, 0, RunDetail::timeline);
  const PowerSeries series = run_series(result.phases, result.wall, power.levels);
  const Joules all = energy(series);
  CHECK(run_energy(result, power.levels).base_units() ==
        doctest::Approx(all.base_units()).epsilon(1e-9));
  const Seconds wall = to_seconds(result.wall);
  CHECK(mean_power(series) <= peak_power(series) * (1 + 1e-12));
  CHECK(all <= power.levels.training.facility * wall * (1 + 1e-12));
  CHECK(all >= power.levels.idle.facility * wall * (1 - 1e-12));
  const Usage usage = run_usage(series, scenario.power->cost, 1, Flops{1});
  CHECK(usage.energy.base_units() == doctest::Approx(all.base_units()).epsilon(1e-9));
}

}  // namespace

TEST_CASE("random runs: every second and every failure is in the books") {
  test::hold("books of a run", test::test_seed() + 31, 60, kWeeks, check_books);
}

TEST_CASE("random runs: fewer failures, faster storage and recovery lose no goodput") {
  test::hold("better runs", test::test_seed() + 32, 40, kWeeks, check_better_runs);
}

TEST_CASE("random runs: their energy is that of their phases, between idle and training") {
  test::hold("energy of a run", test::test_seed() + 33, 30, kWeeksWithPower, check_energy);
}

}  // namespace lockstep
