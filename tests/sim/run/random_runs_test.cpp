// Runs of weeks at random: every second is booked, every failure has its cost, and what makes a run
// better loses no goodput.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "sim/power/run_power.hpp"
#include "sim/run/failure_source.hpp"
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

RunTime booked(const TrajectoryResult& result, RunBucket bucket) {
  return result.buckets[static_cast<std::size_t>(bucket)];
}
RunTime booked_anywhere(const TrajectoryResult& result) {
  return std::accumulate(result.buckets.begin(), result.buckets.end(), RunTime{0});
}

// --- books -------------------------------------------------------------------------------------

void check_time(const Campaign& campaign, const TrajectoryResult& result) {
  CHECK(booked_anywhere(result) == result.wall);
  CHECK(std::ranges::all_of(result.buckets, [](RunTime t) { return t >= 0; }));
  CHECK(booked(result, RunBucket::productive) == result.work);
  CHECK(result.work <= to_run_time(campaign.work));
  CHECK(result.wall <= campaign.horizon);
  std::array<RunTime, kRunBuckets> sums{};
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    const RunTime end = i + 1 < result.phases.size() ? result.phases[i + 1].begin : result.wall;
    sums[static_cast<std::size_t>(result.phases[i].bucket)] += end - result.phases[i].begin;
  }
  CHECK(sums == result.buckets);
}

/// Drawn until then, by mode.
std::vector<std::uint32_t> drawn(const Campaign& campaign, std::uint32_t number, RunTime until) {
  std::vector<std::uint32_t> counts(campaign.modes.size());
  FailureSource source(campaign, number, campaign.horizon);
  while (source.next_at() < until) ++counts[source.take().mode];
  return counts;
}

/// All that fails is met, but for what happens in the last phase: nobody looks at it any more.
void check_failures(const Campaign& campaign, std::uint32_t number,
                    const TrajectoryResult& result) {
  const std::vector<std::uint32_t> all = drawn(campaign, number, result.wall);
  const std::vector<std::uint32_t> early =
      drawn(campaign, number, result.phases.empty() ? 0 : result.phases.back().begin);
  for (std::size_t m = 0; m < campaign.modes.size(); ++m) {
    CAPTURE(campaign.modes[m].name);
    CHECK(result.failures[m] <= all[m]);
    CHECK(result.failures[m] >= early[m]);
  }
}

/// What interruptions cost is what they are booked as. A job that goes on without replicas also
/// restarts when their nodes come back, which nothing that failed is blamed for.
void check_costs(const Campaign& campaign, const TrajectoryResult& result) {
  CHECK(result.events.size() == result.interruptions);
  std::vector<RunTime> cost(campaign.modes.size());
  for (const RunEvent& event : result.events) cost[event.mode] += event.cost;
  CHECK(cost == result.cost);
  RunTime recovering = 0;
  for (const RunBucket bucket : {RunBucket::lost, RunBucket::detection, RunBucket::diagnosis,
                                 RunBucket::restart, RunBucket::repair_wait}) {
    recovering += booked(result, bucket);
  }
  const RunTime blamed = std::accumulate(cost.begin(), cost.end(), RunTime{0});
  CHECK(blamed <= recovering);
  if (campaign.width_speed.size() == 1) CHECK(blamed == recovering);
}

void check_books(const Scenario& scenario, const std::string& text) {
  const CampaignPlan plan = plan_campaign(scenario, test::run_of(text));
  std::vector<TrajectoryResult> results;
  for (std::uint32_t number = 0; number < 3; ++number) {
    CAPTURE(number);
    results.push_back(run_trajectory(plan.campaign, number, RunDetail::timeline));
    check_time(plan.campaign, results.back());
    check_failures(plan.campaign, number, results.back());
    check_costs(plan.campaign, results.back());
  }
  const RunSummary summary = summarise(plan.campaign, results);
  CHECK(summary.goodput.low >= 0);
  CHECK(summary.goodput.high <= 1);
  CHECK(std::accumulate(summary.shares.begin(), summary.shares.end(), 0.0) ==
        doctest::Approx(1).epsilon(1e-12));
}

// --- better runs -------------------------------------------------------------------------------

/// What somebody may improve about a run.
struct BetterRun {
  std::string_view name;
  void (*apply)(RunSpec& run);
};
constexpr std::array kBetterRuns{
    BetterRun{"half of the failures",
              [](RunSpec& run) {
                for (ReliabilityMode& of : run.reliability.modes) {
                  of.mode.mean_time = 2 * of.mode.mean_time;
                }
              }},
    BetterRun{"storage of twice the speed",
              [](RunSpec& run) {
                for (CheckpointSpec& spec : run.checkpoints) {
                  if (!spec.storage) continue;
                  spec.storage->write = 2 * spec.storage->write;
                  spec.storage->read = 2 * spec.storage->read;
                }
              }},
    BetterRun{"restarts in half of the time",
              [](RunSpec& run) { run.recovery.restarts = 0.5 * run.recovery.restarts; }},
    BetterRun{"half of the time to find out",
              [](RunSpec& run) {
                RecoverySpec& recovery = run.recovery;
                recovery.detects_crash = 0.5 * recovery.detects_crash;
                recovery.detects_hang = 0.5 * recovery.detects_hang;
                recovery.diagnoses = 0.5 * recovery.diagnoses;
              }},
    BetterRun{"never the wrong node", [](RunSpec& run) { run.recovery.misdiagnosed = 0; }},
    BetterRun{"repairs in half of the time",
              [](RunSpec& run) { run.spares.repair = 0.5 * run.spares.repair; }},
    BetterRun{"four spares more", [](RunSpec& run) { run.spares.hot += 4; }},
};

constexpr std::uint32_t kTrajectories = 40;
/// Beside training, an upload at twice the rate drags twice as much for half as long; both come out
/// of a simulated step, and differ by its rounding. The largest of 2,000 runs: 4e-9 of the goodput.
constexpr double kUploadAnomaly = 1e-8;

std::vector<double> goodputs(const Campaign& campaign) {
  std::vector<double> out;
  for (std::uint32_t number = 0; number < kTrajectories; ++number) {
    const TrajectoryResult result = run_trajectory(campaign, number);
    out.push_back(static_cast<double>(result.buckets[0]) / static_cast<double>(result.wall));
  }
  return out;
}

/// Both runs draw the same numbers, so that pairs of trajectories differ by little but the change;
/// one pair may still lose by it, where a failure comes just before a checkpoint instead of after.
/// The mean may be below 0 by chance: twice the half width of its 95 % interval in one of 30,000.
void check_better_runs(const Scenario& scenario, const std::string& text) {
  const RunSpec run = test::run_of(text);
  const std::vector<double> before = goodputs(plan_campaign(scenario, run).campaign);
  for (const BetterRun& better : kBetterRuns) {
    RunSpec changed = run;
    better.apply(changed);
    std::vector<double> gains = goodputs(plan_campaign(scenario, changed).campaign);
    for (std::size_t i = 0; i < gains.size(); ++i) gains[i] -= before[i];
    const SampleMean gain = sample_mean(gains);
    CAPTURE(better.name);
    CHECK(gain.mean >= -2 * gain.half_width - kUploadAnomaly);
  }
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
