#include "sim/run/trajectory.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>

#include "models/site/plant.hpp"
#include "sim/core/random.hpp"
#include "sim/run/failure_source.hpp"
#include "sim/run/optimum.hpp"
#include "sim/run/spare_pool.hpp"
#include "sim/run/summary.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr double kHour = 3600, kDay = 86400;

FailureMode software(double mean_s) {
  return {.name = "bug", .scope = FailureScope::process, .mean_time = Seconds{mean_s}};
}
FailureMode hardware(double mean_s, std::uint32_t components = 1) {
  return {.name = "node", .components = components, .mean_time = Seconds{mean_s}};
}

/// 30 days of work, checkpoints that block for half a minute, five minutes to restart.
Campaign with_checkpoints(double interval_s) {
  Campaign campaign;
  campaign.work = Seconds{30 * kDay};
  campaign.modes = {software(3 * kHour)};
  campaign.tiers = {{.name = "s",
                     .interval = Seconds{interval_s},
                     .blocks = Seconds{30},
                     .restores = Seconds{60}}};
  campaign.recovery.restarts = Seconds{240};
  return campaign;
}

RunTime bucket(const TrajectoryResult& result, RunBucket which) {
  return result.buckets[static_cast<std::size_t>(which)];
}
double seconds_in(const TrajectoryResult& result, RunBucket which) {
  return to_seconds(bucket(result, which)).base_units();
}
RunTime sum(const TrajectoryResult& result) {
  return std::accumulate(result.buckets.begin(), result.buckets.end(), RunTime{0});
}

std::array<RunTime, kRunBuckets> sums_of_phases(const TrajectoryResult& result) {
  std::array<RunTime, kRunBuckets> sums{};
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    const RunTime end = i + 1 < result.phases.size() ? result.phases[i + 1].begin : result.wall;
    CHECK(result.phases[i].begin < end);
    sums[static_cast<std::size_t>(result.phases[i].bucket)] += end - result.phases[i].begin;
  }
  return sums;
}

RunSummary summary_of(const Campaign& campaign, std::uint32_t trajectories) {
  return summarise(campaign, sample(campaign, {.trajectories = trajectories, .progress = {}}));
}

/// Ten hours of work with a checkpoint every hour, and one failure of `mode` at `at_s`.
Campaign one_failure(const FailureMode& mode, double at_s) {
  Campaign campaign;
  campaign.work = Seconds{10 * kHour};
  campaign.modes = {mode};
  campaign.tiers = {{.name = "s", .interval = Seconds{kHour}}};
  campaign.log = {{to_run_time(Seconds{at_s}), 0}};
  return campaign;
}

}  // namespace

TEST_CASE("trajectory: a hang is noticed by its watchdog, a crash by its own, the rest at once") {
  const auto of = [](FailureEffect effect) {
    FailureMode mode = software(kHour);
    mode.effect = effect;
    Campaign campaign = one_failure(mode, 1.5 * kHour);
    campaign.recovery = {.detects_crash = Seconds{10},
                         .detects_hang = Seconds{600},
                         .diagnoses = Seconds{70},
                         .restarts = Seconds{300}};
    return run_trajectory(campaign, 0);
  };
  const TrajectoryResult crash = of(FailureEffect::crash), hang = of(FailureEffect::hang);
  CHECK(seconds_in(crash, RunBucket::detection) == 10);
  CHECK(seconds_in(hang, RunBucket::detection) == 600);
  // Half an hour since the checkpoint is lost, and all else is the same.
  CHECK(to_seconds(crash.wall).base_units() == 10.5 * kHour + 10 + 70 + 300);
  CHECK(hang.wall - crash.wall == to_run_time(Seconds{590}));
  // Maintenance is announced: the job saves, and restarts without a diagnosis.
  const TrajectoryResult planned = of(FailureEffect::planned);
  CHECK(to_seconds(planned.wall).base_units() == 10 * kHour + 300);
}

TEST_CASE("trajectory: a checkpoint can be read when all of it is there, and not before") {
  // Checkpoints begin at each hour and are whole 20 minutes later. Before that a failure falls back
  // to the one of an hour earlier.
  const auto lost = [](double after_s) {
    Campaign campaign = one_failure(software(kHour), 2 * kHour + after_s);
    campaign.tiers[0].finishes = Seconds{1200};
    return bucket(run_trajectory(campaign, 0), RunBucket::lost);
  };
  CHECK(lost(600) == to_run_time(Seconds{kHour + 600}));
  CHECK(lost(1200 - 1e-9) == to_run_time(Seconds{kHour + 1200 - 1e-9}));
  CHECK(lost(1200) == to_run_time(Seconds{1200}));
  CHECK(lost(1800) == to_run_time(Seconds{1800}));
}

TEST_CASE("trajectory: while it is written a checkpoint takes its share of the job's speed") {
  // For 20 minutes a quarter of the speed is missing: an hour that begins with a checkpoint does 55
  // minutes of work.
  Campaign campaign = one_failure(software(kHour), 1000 * kHour);
  campaign.tiers[0] = {.name = "s", .finishes = Seconds{1200}, .drag = 0.25};
  campaign.tiers[0].interval = Seconds{kHour};
  const TrajectoryResult result = run_trajectory(campaign, 0);
  // Ten hours of work are the first hour, nine of 55 minutes, and 45 minutes after a tenth
  // checkpoint, which take 50.
  CHECK(result.checkpoints == 10);
  CHECK(seconds_in(result, RunBucket::degraded) == test::near(10 * 300));
  CHECK(to_seconds(result.wall).base_units() == test::near(10 * kHour + 3000));
}

TEST_CASE("trajectory: reading the checkpoint back is part of the restart") {
  for (const double reads : {0.0, 90.0}) {
    Campaign campaign = one_failure(software(kHour), 1.5 * kHour);
    campaign.recovery.restarts = Seconds{300};
    campaign.tiers[0].restores = Seconds{reads};
    CHECK(seconds_in(run_trajectory(campaign, 0), RunBucket::restart) == 300 + reads);
    // There is nothing to read before the first checkpoint.
    campaign.log = {{to_run_time(Seconds{0.5 * kHour}), 0}};
    CHECK(seconds_in(run_trajectory(campaign, 0), RunBucket::restart) == 300);
  }
}

TEST_CASE("trajectory: a single warm spare takes its time, a hot one none") {
  for (const int hot : {0, 1}) {
    Campaign campaign = one_failure(hardware(kHour), 1.5 * kHour);
    campaign.recovery.restarts = Seconds{300};
    campaign.spares = {.hot = hot, .warm = 1, .warm_takes = Seconds{900}};
    const TrajectoryResult result = run_trajectory(campaign, 0);
    CHECK(seconds_in(result, RunBucket::restart) == (hot == 0 ? 1200 : 300));
    CHECK(seconds_in(result, RunBucket::repair_wait) == 0);
  }
}

TEST_CASE("trajectory: what goes down takes along the checkpoints that do not survive it") {
  struct Loss {
    FailureScope scope;
    bool survives_node, survives_rack;
    double lost_s;  ///< half an hour since the checkpoint, or two and a half hours from the start
  };
  using enum FailureScope;
  constexpr double kSince = 0.5 * kHour, kAll = 2.5 * kHour;
  for (const Loss& loss : {Loss{process, false, false, kSince}, Loss{node, false, false, kAll},
                           Loss{node, true, false, kSince}, Loss{rack, true, false, kAll},
                           Loss{switch_nodes, true, false, kAll}, Loss{feed, true, false, kAll},
                           Loss{rack, true, true, kSince}, Loss{feed, true, true, kSince}}) {
    CAPTURE(static_cast<int>(loss.scope));
    FailureMode mode = hardware(kHour);
    mode.scope = loss.scope;
    Campaign campaign = one_failure(mode, 2.5 * kHour);
    campaign.nodes = 8;
    campaign.spares.hot = 8;
    campaign.tiers[0].survives_node = loss.survives_node;
    campaign.tiers[0].survives_rack = loss.survives_rack;
    CHECK(seconds_in(run_trajectory(campaign, 0), RunBucket::lost) == loss.lost_s);
  }
}

TEST_CASE("trajectory: a bad node that stays in fails again, as often as it is not found") {
  // Found with likelihood 1 - p each time: 1 / (1 - p) restarts of a failure in the mean.
  constexpr double kMissed = 0.6;
  Campaign campaign;
  campaign.work = Seconds{100 * kDay};
  campaign.modes = {hardware(kDay)};
  campaign.tiers = {{.name = "s", .interval = Seconds{kHour}}};
  campaign.recovery = {.detects_crash = Seconds{1},
                       .diagnoses = Seconds{2},
                       .misdiagnosed = kMissed,
                       .restarts = Seconds{3}};
  campaign.spares.hot = 100'000;
  double restarts = 0, failures = 0, detection = 0, diagnosis = 0;
  for (std::uint32_t number = 0; number < 40; ++number) {
    const TrajectoryResult result = run_trajectory(campaign, number);
    failures += result.failures[0];
    restarts += seconds_in(result, RunBucket::restart) / 3;
    detection += seconds_in(result, RunBucket::detection);
    diagnosis += seconds_in(result, RunBucket::diagnosis) / 2;
  }
  // Geometric law: a standard deviation of sqrt(p) / (1 - p), four of the mean of `failures`.
  REQUIRE(failures > 3000);
  const double mean = 1 / (1 - kMissed), error = std::sqrt(kMissed) / (1 - kMissed);
  CHECK(std::abs(restarts / failures - mean) < 4 * error / std::sqrt(failures));
  // Each is noticed, diagnosed and restarted once.
  CHECK(detection == test::near(restarts).epsilon(1e-4));
  CHECK(diagnosis == test::near(restarts).epsilon(1e-4));
}

TEST_CASE("trajectory: without failures a run is its work and its checkpoints") {
  Campaign campaign = with_checkpoints(3600);
  campaign.modes.clear();
  const TrajectoryResult result = run_trajectory(campaign, 0);
  CHECK(result.work == to_run_time(campaign.work));
  // The last of 720 hours ends with the run, without a checkpoint.
  CHECK(result.checkpoints == 719);
  CHECK(result.wall == to_run_time(Seconds{30 * kDay + 719 * 30}));
  CHECK(bucket(result, RunBucket::productive) == to_run_time(campaign.work));
}

TEST_CASE("trajectory: the books balance to the nanosecond, whatever happens") {
  for (std::uint32_t number = 0; number < 40; ++number) {
    RandomStream draw({.seed = 7, .trajectory = number});
    Campaign campaign = with_checkpoints(600 + 3000 * draw.uniform());
    campaign.work = Seconds{5 * kDay};
    campaign.modes.push_back(hardware(10 * kDay * (1 + draw.uniform()), 8));
    campaign.modes.push_back({.name = "hang",
                              .effect = FailureEffect::hang,
                              .scope = FailureScope::process,
                              .mean_time = Seconds{kDay}});
    campaign.modes.push_back({.name = "slow",
                              .effect = FailureEffect::slow,
                              .mean_time = Seconds{kDay},
                              .slowdown = 1.3,
                              .found_after = Seconds{kHour}});
    campaign.modes.push_back({.name = "wrong",
                              .effect = FailureEffect::silent,
                              .mean_time = Seconds{2 * kDay},
                              .found_after = Seconds{2 * kHour}});
    campaign.modes.push_back({.name = "rack",
                              .scope = FailureScope::rack,
                              .components = 4,
                              .mean_time = Seconds{20 * kDay},
                              .shape = 0.7});
    campaign.modes.push_back(
        {.name = "maintenance", .effect = FailureEffect::planned, .mean_time = Seconds{3 * kDay}});
    campaign.tiers.push_back({.name = "peers",
                              .interval = Seconds{120},
                              .blocks = Seconds{0.5},
                              .finishes = Seconds{20},
                              .drag = 0.1,
                              .restores = Seconds{5},
                              .survives_rack = false,
                              .corrupt = 0.1});
    campaign.recovery.detects_crash = Seconds{10};
    campaign.recovery.detects_hang = Seconds{600};
    campaign.recovery.diagnoses = Seconds{60};
    campaign.recovery.misdiagnosed = 0.2;
    campaign.spares = {
        .hot = 1, .warm = 1, .warm_takes = Seconds{900}, .repair = Seconds{4 * kHour}, .crews = 1};
    campaign.nodes = 12;
    campaign.scope_nodes = {0, 1, 3, 4, 6};
    campaign.width_speed = {1.0, 0.75};
    campaign.nodes_per_replica = 2;
    const TrajectoryResult result = run_trajectory(campaign, number, RunDetail::timeline);
    CAPTURE(number);
    CHECK(sum(result) == result.wall);
    CHECK(result.work == to_run_time(campaign.work));
    CHECK(bucket(result, RunBucket::productive) == result.work);
    CHECK(std::ranges::all_of(result.buckets, [](RunTime t) { return t >= 0; }));
    CHECK(result.events.size() == result.interruptions);
    CHECK(std::ranges::is_sorted(result.events, {}, &RunEvent::at));
    CHECK(sums_of_phases(result) == result.buckets);
    // Looking closely changes nothing.
    CHECK(run_trajectory(campaign, number).buckets == result.buckets);
  }
}

TEST_CASE("trajectory: its phases are in order, and what a failure threw away is marked lost") {
  Campaign campaign = with_checkpoints(kHour);
  campaign.work = Seconds{10 * kHour};
  // One failure, 30 minutes after the second checkpoint.
  campaign.log = {{to_run_time(Seconds{2 * (kHour + 30) + 1800}), 0}};
  const TrajectoryResult result = run_trajectory(campaign, 0, RunDetail::timeline);
  REQUIRE(result.phases.size() > 6);
  const RunTime second = to_run_time(Seconds{2 * (kHour + 30)});
  CHECK(result.phases[4].begin == second);
  CHECK(result.phases[4].bucket == RunBucket::lost);
  CHECK(result.phases[5].bucket == RunBucket::restart);
  CHECK(result.phases[5].begin == second + to_run_time(Seconds{1800}));
  CHECK(result.phases[6].bucket == RunBucket::productive);
  CHECK(seconds_in(result, RunBucket::lost) == test::near(1800));
  CHECK(sums_of_phases(result) == result.buckets);
  REQUIRE(result.events.size() == 1);
  CHECK(to_seconds(result.events[0].cost).base_units() == test::near(1800 + 300));
}

TEST_CASE("trajectory: a log is the same in every trajectory, and comes instead of the rates") {
  Campaign campaign = with_checkpoints(kHour);
  campaign.modes.push_back(hardware(kHour));
  campaign.nodes = 4;
  campaign.spares.hot = 10;
  campaign.log = {{to_run_time(Seconds{kDay}), 0},
                  {to_run_time(Seconds{2 * kDay}), 1},
                  {to_run_time(Seconds{1000 * kDay}), 1}};
  const TrajectoryResult one = run_trajectory(campaign, 0), two = run_trajectory(campaign, 1);
  CHECK(one.failures == std::vector<std::uint32_t>{1, 1});
  CHECK(one.buckets == two.buckets);
}

TEST_CASE("trajectory: a switch takes its nodes along, and brings them back together") {
  Campaign campaign;
  campaign.nodes = 16;
  campaign.work = Seconds{kDay};
  campaign.modes = {{.name = "switch", .scope = FailureScope::switch_nodes}};
  campaign.scope_nodes = {0, 1, 2, 8, 16};
  campaign.spares = {.hot = 7, .repair = Seconds{kHour}};
  campaign.log = {{to_run_time(Seconds{kHour}), 0}};
  // One spare short: the job waits for the repair.
  CHECK(bucket(run_trajectory(campaign, 0), RunBucket::repair_wait) > 0);
  campaign.spares.hot = 8;
  CHECK(bucket(run_trajectory(campaign, 0), RunBucket::repair_wait) == 0);
}

TEST_CASE("trajectory: goodput is Daly's, with exponential failures also in restarts") {
  for (const double interval : {300.0, 900.0, 2400.0}) {
    CAPTURE(interval);
    const RunSummary summary = summary_of(with_checkpoints(interval), 300);
    const double daly =
        1 / daly_time_ratio(Seconds{interval}, Seconds{30}, Seconds{300}, Seconds{3 * kHour});
    CHECK(std::abs(summary.goodput.mean - daly) < 3 * summary.goodput.half_width);
    CHECK(summary.goodput.half_width < 0.002);
  }
}

TEST_CASE("trajectory: a job that fails sooner than it restarts ends at a hundred times its work") {
  Campaign campaign = with_checkpoints(3600);
  campaign.work = Seconds{kHour};
  campaign.modes = {software(10)};
  const TrajectoryResult result = run_trajectory(campaign, 0);
  CHECK(result.work < to_run_time(campaign.work));
  CHECK(result.wall == to_run_time(Seconds{100 * kHour}));
  CHECK(sum(result) == result.wall);
}

TEST_CASE("trajectory: many periods at once are the same as one by one") {
  Campaign skipped = with_checkpoints(60);
  Campaign stepped = skipped;
  // A second tier that never writes keeps periods from being skipped.
  stepped.tiers.push_back({.name = "never", .interval = Seconds{1000 * kDay}});
  for (std::uint32_t number = 0; number < 5; ++number) {
    const TrajectoryResult a = run_trajectory(skipped, number);
    const TrajectoryResult b = run_trajectory(stepped, number);
    CHECK(a.buckets == b.buckets);
    CHECK(a.checkpoints == b.checkpoints);
    CHECK(a.interruptions == b.interruptions);
  }
}

TEST_CASE("trajectory: a straggler slows the job until it is evicted, and loses nothing") {
  Campaign campaign;
  campaign.work = Seconds{100 * kDay};
  campaign.modes = {{.name = "slow",
                     .effect = FailureEffect::slow,
                     .mean_time = Seconds{kDay},
                     .slowdown = 2,
                     .found_after = Seconds{kHour}}};
  campaign.tiers = {{.name = "s", .interval = Seconds{kHour}}};
  campaign.spares.hot = 1000;
  const TrajectoryResult result = run_trajectory(campaign, 0);
  CHECK(bucket(result, RunBucket::lost) == 0);
  // Half of an hour's work for each of some hundred stragglers.
  const double expected = result.failures[0] * kHour / 2;
  CHECK(seconds_in(result, RunBucket::degraded) == test::near(expected).epsilon(0.4));
  CHECK(result.failures[0] > 60);
}

// Parts degrade at a rate of one a day and are mended after an hour in the mean, each by itself: at
// any time none is degraded with probability e^-(1/24) (the M/G/infinity queue), else the job has
// half its speed.
TEST_CASE("trajectory: a degraded part slows the job until it is mended, and never stops it") {
  Campaign campaign;
  campaign.horizon = to_run_time(Seconds{1000 * kDay});
  campaign.work = Seconds{1000 * kDay};
  campaign.modes = {{.name = "NIC at half rate",
                     .effect = FailureEffect::degraded,
                     .components = 10,
                     .mean_time = Seconds{10 * kDay},
                     .slowdown = 2,
                     .lasts = Seconds{kHour}}};
  campaign.tiers = {{.name = "s", .interval = Seconds{kHour}}};
  const TrajectoryResult one = run_trajectory(campaign, 0, RunDetail::timeline);
  CHECK(one.interruptions == 0);
  CHECK(bucket(one, RunBucket::lost) == 0);
  CHECK(bucket(one, RunBucket::restart) == 0);
  // The mode is charged with all that the job was slower, but for rounding to nanoseconds.
  CHECK(seconds_in(one, RunBucket::degraded) ==
        test::near(to_seconds(one.cost[0]).base_units()).epsilon(1e-9));
  REQUIRE(one.events.size() == one.failures[0]);
  RunTime charged = 0;
  for (std::size_t i = 0; i < one.events.size(); ++i) {
    charged += one.events[i].cost;
    if (i > 0) CHECK(one.events[i].at >= one.events[i - 1].at);
  }
  CHECK(charged == one.cost[0]);
  const RunSummary summary = summary_of(campaign, 100);
  const double expected = 1 - 0.5 * (1 - std::exp(-1.0 / 24));
  // 100 runs of 1,000 days: some 4e5 hours degraded, known to 0.4 %.
  CHECK(1 - summary.goodput.mean == test::near(1 - expected).epsilon(0.012));
}

TEST_CASE("trajectory: wrong numbers cost what was trained since, not only since a checkpoint") {
  Campaign campaign;
  campaign.work = Seconds{50 * kDay};
  campaign.modes = {{.name = "wrong",
                     .effect = FailureEffect::silent,
                     .scope = FailureScope::process,
                     .mean_time = Seconds{5 * kDay},
                     .found_after = Seconds{10 * kHour}}};
  campaign.tiers = {{.name = "s", .interval = Seconds{600}}};
  const RunSummary summary = summary_of(campaign, 100);
  // Ten hours and half an interval each; a second one within them is thrown away with the first.
  const double each = summary.modes[0].cost_s / summary.modes[0].failures;
  CHECK(each == test::near((10 * kHour + 300) / (1 + 10.0 / 120)).epsilon(0.08));
}

TEST_CASE("trajectory: a lost node takes its drive's checkpoints along, a lost process does not") {
  Campaign campaign;
  campaign.work = Seconds{20 * kDay};
  campaign.spares.hot = 1000;
  campaign.tiers = {{.name = "local", .interval = Seconds{600}, .survives_node = false},
                    {.name = "storage", .interval = Seconds{6 * kHour}}};
  campaign.modes = {software(kDay)};
  const RunSummary processes = summary_of(campaign, 50);
  CHECK(processes.modes[0].cost_s / processes.modes[0].failures == test::near(300).epsilon(0.1));
  campaign.modes = {hardware(kDay)};
  const RunSummary nodes = summary_of(campaign, 50);
  CHECK(nodes.modes[0].cost_s / nodes.modes[0].failures == test::near(3 * kHour).epsilon(0.15));
}

TEST_CASE(
    "trajectory: without a spare the job waits for the repair, or goes on without a replica") {
  Campaign campaign;
  campaign.work = Seconds{200 * kDay};
  campaign.modes = {hardware(10 * kDay)};
  campaign.tiers = {{.name = "s", .interval = Seconds{60}}};
  campaign.spares.repair = Seconds{kDay};
  const RunSummary waits = summary_of(campaign, 100);
  const double repair_share = waits.shares[static_cast<std::size_t>(RunBucket::repair_wait)];
  // A mean of a day of repair after a mean of ten of work.
  CHECK(repair_share == test::near(1.0 / 11).epsilon(0.05));
  campaign.width_speed = {1.0, 0.5};
  const RunSummary elastic = summary_of(campaign, 100);
  CHECK(elastic.shares[static_cast<std::size_t>(RunBucket::repair_wait)] < 0.2 * repair_share);
  CHECK(elastic.goodput.mean > waits.goodput.mean);
}

TEST_CASE("trajectory: a node that holds several replicas takes all of them along") {
  Campaign campaign;
  campaign.work = Seconds{100 * kDay};
  campaign.modes = {hardware(10 * kDay)};
  campaign.tiers = {{.name = "s", .interval = Seconds{60}}};
  campaign.spares.repair = Seconds{kDay};
  campaign.replicas_per_node = 4;
  campaign.width_speed = {1.0, 0.9, 0.8, 0.7};  // three may be missing, a node has four
  const RunSummary waits = summary_of(campaign, 20);
  CHECK(waits.shares[static_cast<std::size_t>(RunBucket::degraded)] == 0);
  campaign.width_speed.push_back(0.6);
  const RunSummary goes_on = summary_of(campaign, 20);
  CHECK(goes_on.shares[static_cast<std::size_t>(RunBucket::degraded)] > 0);
}

TEST_CASE("failure source: Weibull components keep their mean, whatever their shape") {
  for (const double shape : {0.6, 1.0, 3.0}) {
    CAPTURE(shape);
    Campaign campaign;
    FailureMode mode = hardware(1000, 200);
    mode.shape = shape;
    campaign.modes = {mode};
    const RunTime until = to_run_time(Seconds{100'000});
    FailureSource source(campaign, 0, until);
    double count = 0;
    RunTime before = 0;
    for (; source.next_at() != FailureSource::kNever; ++count) {
      const FailureSource::Failure failure = source.take();
      CHECK(failure.at >= before);
      before = failure.at;
    }
    // Renewal theory: t / mean + (variance / mean^2 - 1) / 2 for each of 200.
    const double over = shape == 0.6 ? 1.1 : shape == 3.0 ? -0.43 : 0;
    CHECK(count == test::near(200 * (100 + over)).epsilon(0.02));
  }
}

TEST_CASE("failure source: what comes late or goes early is taken away while it is there alone") {
  // A node is there 3 of 4 s: it goes 0.25 times a second, and once gone for good it is not
  // awaited.
  Campaign campaign;
  FailureMode taken = hardware(3, 200);
  taken.away = Seconds{1};
  taken.there = {{80, to_run_time(Seconds{100}), to_run_time(Seconds{300})},
                 {120, 0, to_run_time(Seconds{50})}};
  campaign.modes = {taken};
  FailureSource source(campaign, 0, to_run_time(Seconds{1000}));
  int early = 0, late = 0;
  while (source.next_at() != FailureSource::kNever) {
    const FailureSource::Failure failure = source.take();
    const double at = to_seconds(failure.at).base_units();
    CHECK((at < 50 || (at >= 100 && at < 300)));
    CHECK(failure.back <= to_run_time(Seconds{at < 50 ? 50.0 : 300.0}));
    ++(at < 50 ? early : late);
  }
  // All are there at first, which adds 1/16 of a taking to each in the long run.
  CHECK(early == test::near(120 * (50 * 0.25 + 0.0625)).epsilon(0.05));
  CHECK(late == test::near(80 * (200 * 0.25 + 0.0625)).epsilon(0.05));
}

TEST_CASE("failure source: of nodes that are not there nothing fails") {
  // A failure in 1000 s of each of 200: 0.2 a second with all of them.
  for (const double shape : {1.0, 2.0}) {
    CAPTURE(shape);
    Campaign campaign;
    FailureMode mode = hardware(1000, 200);
    mode.shape = shape;
    campaign.modes = {mode};
    const RunTime until = to_run_time(Seconds{100'000});
    const auto times = [&] {
      std::vector<RunTime> out;
      FailureSource source(campaign, 0, until);
      while (source.next_at() != FailureSource::kNever) out.push_back(source.take().at);
      return out;
    };
    const std::vector<RunTime> all = times();
    // One lot that is there all the time draws what no lot does.
    campaign.nodes_there = {{0, 1.0}};
    CHECK(times() == all);
    const RunTime second = to_run_time(Seconds{40'000}), third = to_run_time(Seconds{70'000});
    campaign.nodes_there = {{0, 0.25}, {second, 0}, {third, 0.5}};
    double early = 0, none = 0, late = 0;
    for (const RunTime at : times()) ++(at < second ? early : at < third ? none : late);
    CHECK(none == 0);
    // Nodes x time x rate in each phase; four standard deviations of a Poisson count.
    CHECK(std::abs(early - 200 * 0.25 * 40) < 4 * std::sqrt(2000.0));
    CHECK(std::abs(late - 200 * 0.5 * 30) < 4 * std::sqrt(3000.0));
  }
}

TEST_CASE("trajectory: nodes that are taken away are there as the binomial law has it") {
  // 16 of 18 are needed. A node is there 10 of 12 days, or 5 of 7: it cannot go while it is away.
  for (const double stays_days : {10.0, 5.0}) {
    CAPTURE(stays_days);
    Campaign campaign;
    campaign.nodes = 16;
    campaign.work = Seconds{4e9};
    campaign.horizon = to_run_time(Seconds{4000 * kDay});
    FailureMode taken = hardware(stays_days * kDay, 18);
    taken.away = Seconds{2 * kDay};
    taken.replaced = 0;
    campaign.modes = {taken};
    campaign.tiers = {{.name = "s", .interval = Seconds{60}}};
    campaign.spares.hot = 2;
    const RunSummary summary = summary_of(campaign, 20);
    const double law = availability({.name = "node",
                                     .units = 18,
                                     .mean_time = Seconds{stays_days * kDay},
                                     .repair = Seconds{2 * kDay}},
                                    16);
    CHECK(law == doctest::Approx(stays_days == 10 ? 0.4027 : 0.0766).epsilon(0.01));
    // Some thousand spells of it: their mean is within a few hundredths.
    CHECK(summary.goodput.mean == test::near(law).epsilon(0.06));
    const double takings = 18 * stays_days / (stays_days + 2) * 4000 / stays_days;
    CHECK(summary.modes[0].failures == test::near(takings).epsilon(0.02));
  }
}

TEST_CASE("spare pool: a queue of broken nodes with k crews waits as M/M/k does") {
  // Erlang C: arrivals 1.5 an hour, two crews, repair of one hour: 9/14 wait, on average 9/7 h all.
  const SpareSpec spec{.repair = Seconds{kHour}, .crews = 2};
  SparePool pool(spec, 3, 0);
  RandomStream arrivals({.seed = 5});
  RunTime now = 0;
  double inside = 0, last = 0;
  int broken = 0;
  constexpr int kBroken = 200'000;
  // Little's law: the mean number in repair is rate x time there.
  for (int n = 0; n < kBroken; ++n) {
    const RunTime next = now + to_run_time(Seconds{kHour / 1.5 * arrivals.exponential()});
    while (pool.next_back() <= next) {
      const RunTime back = pool.next_back();
      inside += broken * (to_seconds(back).base_units() - last);
      last = to_seconds(back).base_units();
      pool.collect(back);
      broken -= pool.take(1'000'000).hot;
    }
    inside += broken * (to_seconds(next).base_units() - last);
    last = to_seconds(next).base_units();
    now = next;
    pool.send_to_repair(now, 1);
    ++broken;
  }
  const double mean_inside = inside / last;
  const double offered = 1.5, waiting = 9.0 / 14;  // Erlang C of 2 crews at 75 %
  CHECK(mean_inside == test::near(offered + waiting * 0.75 / 0.25).epsilon(0.03));
}

TEST_CASE("trajectory: of two stragglers the slower one sets the pace") {
  Campaign campaign;
  campaign.work = Seconds{10 * kHour};
  campaign.modes = {
      {.name = "slow", .effect = FailureEffect::slow, .slowdown = 2, .found_after = Seconds{1e9}},
      {.name = "slower",
       .effect = FailureEffect::slow,
       .slowdown = 4,
       .found_after = Seconds{1e9}}};
  campaign.log = {{to_run_time(Seconds{2 * kHour}), 0}, {to_run_time(Seconds{6 * kHour}), 1}};
  // Two hours of work, four hours that do two, and six hours of work at a quarter of the speed.
  const TrajectoryResult result = run_trajectory(campaign, 0);
  CHECK(to_seconds(result.wall).base_units() == test::near((2 + 4 + 24) * kHour));
  CHECK(seconds_in(result, RunBucket::degraded) == test::near(20 * kHour));
}

}  // namespace lockstep
