#include "sim/power/run_power.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

constexpr RunTime kSecond = 1'000'000'000;
constexpr PowerLevel facility(double watts) { return {Watts{}, Watts{}, Watts{watts}}; }
constexpr PowerLevels kLevels{.training = facility(1000),
                              .waiting = facility(400),
                              .starting = facility(300),
                              .idle = facility(100)};

}  // namespace

TEST_CASE("run_series: each phase at its level, and the buckets' energy") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .trajectory = 0, .component = 0, .purpose = 2});
  std::vector<RunPhase> phases;
  TrajectoryResult result;
  RunTime now = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto bucket = static_cast<RunBucket>(random.below(kRunBuckets));
    phases.push_back({now, bucket});
    const auto length = static_cast<RunTime>(random.below(1u << 30)) * 100;
    result.buckets[static_cast<std::size_t>(bucket)] += length;
    now += length;
  }
  result.wall = now;
  const PowerSeries series = run_series(phases, now, kLevels);
  CHECK(series.end.base_units() == doctest::Approx(to_seconds(now).base_units()).epsilon(1e-12));
  CHECK(energy(series).base_units() ==
        doctest::Approx(run_energy(result, kLevels).base_units()).epsilon(1e-9));
  CostSpec prices;
  prices.usd_per_kwh.values = {0.1};
  prices.grams_per_kwh = HourlySeries{.values = {500}};
  const Usage by_phase = run_usage(series, prices, 1, Flops{1});
  const Usage by_bucket = run_usage(result, kLevels, prices, 1, Flops{1});
  CHECK(by_phase.energy.base_units() == doctest::Approx(by_bucket.energy.base_units()));
  CHECK(by_phase.energy_usd == doctest::Approx(by_bucket.energy_usd));
  CHECK(by_phase.energy_usd == doctest::Approx(by_phase.energy.base_units() / 3.6e6 * 0.1));
  CHECK(by_phase.grams.value() == doctest::Approx(by_phase.energy.base_units() / 3.6e6 * 500));
}

TEST_CASE("run_usage: a night tariff makes the hour of the work matter") {
  // An hour of training while a kilowatt-hour costs 1, an hour idle while it costs 0.
  const std::vector<RunPhase> day{{0, RunBucket::productive},
                                  {3600 * kSecond, RunBucket::repair_wait}};
  CostSpec prices;
  prices.usd_per_kwh.values = {1, 0};
  const Usage usage = run_usage(run_series(day, 7200 * kSecond, kLevels), prices, 0, Flops{});
  CHECK(usage.energy.base_units() == doctest::Approx(1100 * 3600.0));
  CHECK(usage.energy_usd == doctest::Approx(1));
  CHECK_FALSE(usage.grams);
  prices.grams_per_kwh = HourlySeries{.values = {0}};  // a grid that emits nothing
  CHECK(run_usage(run_series(day, 7200 * kSecond, kLevels), prices, 0, Flops{}).grams == 0.0);
}

TEST_CASE("run_usage: a run of no time uses nothing") {
  const Usage usage = run_usage(TrajectoryResult{}, kLevels, CostSpec{}, 0, Flops{});
  CHECK(usage.energy == Joules{});
  CHECK(run_series({}, 0, kLevels).size() == 0);
}

TEST_CASE("with_reserve: a tenth more nodes draw a tenth of what all do idle, whatever is done") {
  StepPower power;
  power.levels = kLevels;
  power.holdings = {.gpus = 80, .nodes = 10, .ports_100g = 320, .facility_peak = Watts{1200}};
  power.facility.add(Seconds{2}, Watts{1000});
  power.facility_meter.low = Watts{900};
  power.facility_meter.high = Watts{1100};
  power.site_peak = Watts{1150};
  power.gpu_nameplate = Watts{800 * 700};
  const StepPower more = with_reserve(power, 0.1);
  CHECK(more.levels.training.facility.base_units() == doctest::Approx(1010));
  CHECK(more.levels.waiting.facility.base_units() == doctest::Approx(410));
  CHECK(more.levels.starting.facility.base_units() == doctest::Approx(310));
  CHECK(more.levels.idle.facility.base_units() == doctest::Approx(110));
  CHECK(mean_power(more.facility).base_units() == doctest::Approx(1010));
  CHECK(more.facility_meter.low.base_units() == doctest::Approx(910));
  CHECK(more.facility_meter.high.base_units() == doctest::Approx(1110));
  CHECK(more.site_peak.base_units() == doctest::Approx(1160));
  CHECK(more.above(Watts{1000}).base_units() == doctest::Approx(160));
  CHECK(more.holdings.gpus == doctest::Approx(88));
  CHECK(more.gpu_nameplate.base_units() == doctest::Approx(880 * 700));
  CHECK(more.holdings.nodes == doctest::Approx(11));
  CHECK(more.holdings.ports_100g == doctest::Approx(352));
  CHECK(more.holdings.facility_peak.base_units() == doctest::Approx(1210));
}

}  // namespace lockstep
