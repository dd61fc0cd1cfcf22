#include <doctest/doctest.h>
#include <numeric>
#include <span>
#include <vector>

#include "sim/run/trajectory.hpp"

namespace lockstep {
namespace {

constexpr double kOneHour = 3600;

/// Ten hours of work, a checkpoint every hour that costs nothing, five minutes to restart.
Campaign paced(const std::function<SitePace(RunTime)>& law) {
  Campaign campaign;
  campaign.work = Seconds{10 * kOneHour};
  campaign.tiers = {{.name = "s", .interval = Seconds{kOneHour}}};
  campaign.recovery = {.detects_crash = Seconds{10},
                       .detects_hang = Seconds{10},
                       .diagnoses = Seconds{20},
                       .restarts = Seconds{300}};
  campaign.pace = [law](std::uint32_t) -> PaceLaw {
    return [law](RunTime now, std::span<const RunStop>) { return law(now); };
  };
  return campaign;
}
RunTime hours_ticks(double hours) { return to_run_time(Seconds{hours * kOneHour}); }

/// Full pace, but for what `between` says from hour `from` to hour `to`.
std::function<SitePace(RunTime)> with(double from, double to, SitePace between) {
  return [=](RunTime now) {
    if (now < hours_ticks(from)) return SitePace{.until = hours_ticks(from)};
    if (now >= hours_ticks(to)) return SitePace{};
    SitePace pace = between;
    pace.until = hours_ticks(to);
    return pace;
  };
}

double hours_of(RunTime time) { return to_seconds(time).base_units() / kOneHour; }
RunTime all_of(const TrajectoryResult& run) {
  return std::accumulate(run.buckets.begin(), run.buckets.end(), RunTime{0});
}

}  // namespace

TEST_CASE("pace: half the speed for two hours costs one, booked as slower steps") {
  const TrajectoryResult run = run_trajectory(paced(with(2, 4, {.speed = 0.5})), 0);
  CHECK(hours_of(run.wall) == doctest::Approx(11));
  CHECK(hours_of(run.site_slowed) == doctest::Approx(1));
  CHECK(hours_of(run.buckets[static_cast<std::size_t>(RunBucket::degraded)]) == doctest::Approx(1));
  CHECK(run.site_stops == 0);
  CHECK(all_of(run) == run.wall);
}

TEST_CASE("pace: a pause costs itself, and loses nothing") {
  const TrajectoryResult run = run_trajectory(paced(with(2.5, 4.5, {.speed = 0})), 0);
  CHECK(hours_of(run.wall) == doctest::Approx(12));
  CHECK(run.buckets[static_cast<std::size_t>(RunBucket::lost)] == 0);
  CHECK(run.interruptions == 0);
}

TEST_CASE("pace: power that goes without a warning costs the work since the checkpoint too") {
  const SitePace gone{.speed = 0, .down = true, .abrupt = true};
  const TrajectoryResult run = run_trajectory(paced(with(2.5, 4.5, gone)), 0);
  // Two hours without power, half an hour since the last checkpoint again, five minutes to restart.
  CHECK(hours_of(run.wall) == doctest::Approx(12.5 + 300 / kOneHour));
  CHECK(hours_of(run.buckets[static_cast<std::size_t>(RunBucket::lost)]) == doctest::Approx(0.5));
  CHECK(run.site_stops == 1);
  CHECK(run.interruptions == 1);
  CHECK(hours_of(run.site_stopped) == doctest::Approx(2.5 + 300 / kOneHour));
  CHECK(all_of(run) == run.wall);
}

TEST_CASE("pace: power that is turned off in good order loses no work") {
  const SitePace off{.speed = 0, .down = true};
  const TrajectoryResult run = run_trajectory(paced(with(2.5, 4.5, off)), 0);
  CHECK(hours_of(run.wall) == doctest::Approx(12 + 300 / kOneHour));
  CHECK(run.buckets[static_cast<std::size_t>(RunBucket::lost)] == 0);
}

TEST_CASE("pace: full pace from hour to hour changes nothing at all") {
  Campaign plain = paced({});
  plain.pace = {};
  plain.modes = {{.name = "node", .components = 50, .mean_time = Seconds{100 * kOneHour}}};
  Campaign hourly = plain;
  hourly.pace = [](std::uint32_t) -> PaceLaw {
    return [](RunTime now, std::span<const RunStop>) {
      return SitePace{.until = (now / hours_ticks(1) + 1) * hours_ticks(1)};
    };
  };
  for (std::uint32_t number = 0; number < 20; ++number) {
    const TrajectoryResult a = run_trajectory(plain, number), b = run_trajectory(hourly, number);
    CHECK(a.wall == b.wall);
    CHECK(a.buckets == b.buckets);
    CHECK(a.checkpoints == b.checkpoints);
  }
}

TEST_CASE(
    "pace: where a stop's savings are given back, it is asked for after each, with all stops") {
  struct Asked {
    RunTime now;
    std::vector<RunStop> stops;
  };
  const auto asked_of = [](bool gives_back) {
    std::vector<Asked> asked;
    Campaign campaign = paced({});
    campaign.modes = {{.name = "crash", .scope = FailureScope::process}};
    campaign.log = {{hours_ticks(2.5), 0}, {hours_ticks(5.5), 0}};
    campaign.pace = [&](std::uint32_t) -> PaceLaw {
      return [&](RunTime now, std::span<const RunStop> stops) {
        asked.push_back({now, {stops.begin(), stops.end()}});
        return SitePace{.until = hours_ticks(100), .gives_back = gives_back};
      };
    };
    (void)run_trajectory(campaign, 0);
    return asked;
  };
  CHECK(asked_of(false).size() == 1);
  const std::vector<Asked> asked = asked_of(true);
  REQUIRE(asked.size() == 3);
  // 10 s to detect, 20 s to diagnose, five minutes to restart.
  CHECK(asked[1].now == hours_ticks(2.5) + to_run_time(Seconds{330}));
  REQUIRE(asked[1].stops.size() == 3);
  CHECK(asked[1].stops[0].begin == hours_ticks(2.5));
  CHECK(asked[1].stops[0].bucket == RunBucket::detection);
  CHECK(asked[1].stops[2].bucket == RunBucket::restart);
  CHECK(asked[1].stops[2].end == asked[1].now);
  CHECK(asked[2].stops.size() == 6);
}

}  // namespace lockstep
