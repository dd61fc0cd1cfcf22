#include "sim/run/campaign_work.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "sim/run/summary.hpp"

namespace lockstep {
namespace {

/// 16 nodes for a day, a checkpoint every half an hour, five minutes to recover.
Campaign day_of(Seconds mean_time) {
  Campaign campaign;
  campaign.nodes = 16;
  campaign.work = Seconds{86'400};
  campaign.horizon = to_run_time(campaign.work);
  campaign.modes = {{.name = "crash", .components = 16, .mean_time = mean_time}};
  campaign.tiers = {{.name = "storage",
                     .interval = Seconds{1800},
                     .blocks = Seconds{2},
                     .restores = Seconds{30}}};
  campaign.recovery = {
      .detects_crash = Seconds{30}, .diagnoses = Seconds{120}, .restarts = Seconds{120}};
  campaign.spares.hot = 1'000'000;
  return campaign;
}

RunSpec own_rates() {
  RunSpec run;
  run.reliability.own = true;
  return run;
}

std::string work_problem(const Campaign& campaign, const PlannedWork& planned = {}) {
  const auto problem = excessive_work(campaign, own_rates(), planned, "week.json");
  return problem ? InputError(*problem).what() : "";
}

}  // namespace

TEST_CASE("campaign work: what a trajectory is expected to meet, it meets") {
  for (const double shape : {1.0, 0.7, 2.0}) {
    CAPTURE(shape);
    Campaign campaign = day_of(Seconds{8 * 3600.0});
    campaign.modes[0].shape = shape;
    const auto runs = sample(campaign, {.trajectories = 200, .progress = {}});
    const double met = summarise(campaign, runs).modes[0].failures;
    const double expected = expected_work(campaign).failures;
    CHECK(met <= 1.05 * expected);
    CHECK(met > 0.4 * expected);
  }
}

TEST_CASE("campaign work: a long trajectory takes longer, and the key that makes it so is named") {
  const Campaign rare = day_of(Seconds{1e9}), often = day_of(Seconds{16 * 30.0});
  CHECK(trajectory_estimate(often) > trajectory_estimate(rare));
  CHECK(most_work(rare, own_rates(), 10).pointer == "/run/trajectories");
  CHECK(most_work(rare, own_rates(), 10).what == "10 trajectories");
  CHECK(most_work(often, own_rates(), 10).pointer == "/run/reliability/modes/0");
  CHECK(most_work(often, own_rates(), 10).what.ends_with(" failures in 10 trajectories"));
  Campaign saving = rare;
  saving.tiers[0].interval = Seconds{1e-3};
  saving.tiers[0].drag = 0.01;  // so that each is simulated
  CHECK(most_work(saving, own_rates(), 10).pointer == "/run/checkpoint/interval");
}

TEST_CASE("campaign work: failures faster than any recovery are named before the work begins") {
  // 300 s to recover: e^(300 / M) tries, a million of them where M is 21.7 s.
  CHECK(work_problem(day_of(Seconds{16 * 22.0})).empty());
  CHECK(
      work_problem(day_of(Seconds{16 * 21.0})).starts_with("week.json#/run/reliability/modes/0: "));
  CHECK(work_problem(day_of(Seconds{1})) ==
        "week.json#/run/reliability/modes/0: found \"crash\" every 62.5 ms (16 of them, each every "
        "1 s); allowed: failures that leave time for a recovery of 300 s: all modes together at "
        "least 21.7147 s apart, else the job never trains");
}

TEST_CASE("campaign work: a bound on events, which names the key that makes them too many") {
  Campaign campaign = day_of(Seconds{864});
  campaign.modes[0].effect = FailureEffect::slow;  // stops nothing at once
  campaign.modes[0].components = 1'000'000;
  CHECK(work_problem(campaign, {.trajectories = 99}).empty());
  CHECK(work_problem(campaign, {.trajectories = 101}).find("at most 10,000,000,000 failures") !=
        std::string::npos);

  Campaign often = day_of(Seconds{1e12});
  often.tiers[0].interval = Seconds{1e-3};
  often.tiers[0].blocks = Seconds{};
  CHECK(work_problem(often, {.trajectories = 1000}).empty());  // quiet periods are booked at once
  CHECK(work_problem(often, {.trajectories = 1, .timeline = true})
            .starts_with("week.json#/run/checkpoint/interval: found 86,000,000 checkpoints"));
  often.tiers[0].drag = 0.1;
  CHECK(work_problem(often, {.trajectories = 100}).empty());
  CHECK_FALSE(work_problem(often, {.trajectories = 1000}).empty());
}

TEST_CASE("campaign work: a mean time of 1e15 s is as good as never") {
  const Campaign campaign = day_of(Seconds{1e15});
  CHECK(work_problem(campaign).empty());
  CHECK(run_trajectory(campaign, 0).interruptions == 0);
  CHECK(std::isfinite(expected_work(campaign).failures));
}

}  // namespace lockstep
