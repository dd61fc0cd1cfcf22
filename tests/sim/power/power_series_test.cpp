#include "sim/power/power_series.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

/// 10 s at 100 W but for 2 s of 50 W from second 4.
PowerSeries dip() {
  PowerSeries s;
  s.add(Seconds{4}, Watts{100});
  s.add(Seconds{2}, Watts{50});
  s.add(Seconds{4}, Watts{100});
  return s;
}

}  // namespace

TEST_CASE("PowerSeries: equal neighbours are one stretch, nothing is no stretch") {
  PowerSeries s = dip();
  CHECK(s.size() == 3);
  s.add(Seconds{1}, Watts{100});
  s.add(Seconds{}, Watts{7});
  CHECK(s.size() == 3);
  CHECK(s.end == Seconds{11});
  CHECK(mean_power(PowerSeries{}) == Watts{});
  CHECK(peak_power(PowerSeries{}) == Watts{});
}

TEST_CASE("PowerSeries: energy, mean, extremes") {
  CHECK(energy(dip()).base_units() == 900);
  CHECK(mean_power(dip()).base_units() == 90);
  CHECK(peak_power(dip()) == Watts{100});
  CHECK(trough_power(dip()) == Watts{50});
  const PowerSeries s = scaled(dip(), Watts{10}, 2);
  CHECK(energy(s).base_units() == doctest::Approx(10 * 10 + 2 * 900));
}

TEST_CASE("metered: a window reads the share of the dip that it covers") {
  const auto low = [](double window) { return metered(dip(), Seconds{window}).low.base_units(); };
  CHECK(low(0) == 50);
  CHECK(low(1) == doctest::Approx(50));
  CHECK(low(2) == doctest::Approx(50));
  CHECK(low(4) == doctest::Approx(75));
  CHECK(low(8) == doctest::Approx(87.5));
  CHECK(low(10) == doctest::Approx(90));
  // Longer than the period: 15 s cover the dip twice at most, once at least.
  CHECK(low(15) == doctest::Approx((1500 - 200) / 15.0));
  CHECK(metered(dip(), Seconds{15}).high.base_units() == doctest::Approx((1500 - 100) / 15.0));
  CHECK(metered(dip(), Seconds{10}).high.base_units() == doctest::Approx(90));
}

TEST_CASE("metered: of breakpoints close together and far apart, what a sum over all says") {
  // Nine stretches of a microsecond beside one of a second, and so on: parts of the period with
  // many breakpoints, and parts with none.
  PowerSeries series;
  for (int i = 0; i < 60; ++i) {
    series.add(Seconds{i % 10 == 9 ? 1.0 : 1e-6}, Watts{100.0 + (i * 37) % 101});
  }
  const double period = series.end.base_units();
  const auto joules = [&](double from, double to) {  // 0 <= from <= to
    double sum = 0;
    for (double turn = 0; turn < to; turn += period) {
      for (std::size_t i = 0; i < series.size(); ++i) {
        const double begin = std::max(from, turn + series.start[i].base_units());
        const double end = std::min(to, turn + series.until(i).base_units());
        if (end > begin) sum += series.power[i].base_units() * (end - begin);
      }
    }
    return sum;
  };
  for (const double window : {3e-6, 0.3, 2.5, 7.0}) {
    CAPTURE(window);
    double low = 1e300, high = 0;
    for (const Seconds start : series.start) {
      // Windows that begin at a breakpoint, and those that end at one.
      const double ends = std::fmod(start.base_units() - window + 4 * period, period);
      for (const double begin : {start.base_units(), ends}) {
        const double reading = joules(begin, begin + window) / window;
        low = std::min(low, reading);
        high = std::max(high, reading);
      }
    }
    const MeterReading read = metered(series, Seconds{window});
    CHECK(read.low.base_units() == doctest::Approx(low).epsilon(1e-6));
    CHECK(read.high.base_units() == doctest::Approx(high).epsilon(1e-6));
  }
  // Over a microsecond and a half the steepest change is that of two stretches a window apart.
  double steepest = 0;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double here = series.power[i].base_units();
    const double next = series.power[(i + 1) % series.size()].base_units();
    steepest = std::max(steepest, std::abs(next - here));
  }
  CHECK(steepest_ramp(series, Seconds{5e-7}) == doctest::Approx(steepest / 5e-7));
}

TEST_CASE("metered_profile: has the mean of the series, whatever the window") {
  for (const double window : {0.0, 0.5, 2.0, 7.0, 30.0}) {
    double sum = 0;
    const auto profile = metered_profile(dip(), Seconds{window}, 20);
    for (const Watts w : profile) sum += w.base_units();
    CHECK(sum / 20 == doctest::Approx(90).epsilon(0.01));
  }
  // The dip's middle, read with a window as long as the dip, is its floor.
  CHECK(metered_profile(dip(), Seconds{2}, 101)[50].base_units() ==
        doctest::Approx(50).epsilon(0.06));
}

TEST_CASE("steepest_ramp: the largest change over the window") {
  CHECK(steepest_ramp(dip(), Seconds{0.1}) == doctest::Approx(500));
  CHECK(steepest_ramp(dip(), Seconds{2}) == doctest::Approx(25));
  PowerSeries flat;
  flat.add(Seconds{1}, Watts{5});
  CHECK(steepest_ramp(flat, Seconds{0.1}) == 0);
}

TEST_CASE("smoothed: a large store gives the mean, a small one what it holds, none loses energy") {
  const PowerSeries flat = smoothed(dip(), Joules{80});
  CHECK(peak_power(flat).base_units() == doctest::Approx(90));
  CHECK(trough_power(flat).base_units() == doctest::Approx(90));
  // A store of 20 J takes 40 W from the dip for half a second.
  const PowerSeries half = smoothed(dip(), Joules{20});
  CHECK(trough_power(half).base_units() == 50);
  CHECK(peak_power(half).base_units() == 100);
  CHECK(energy(half).base_units() == doctest::Approx(900).epsilon(1e-12));
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .trajectory = 0, .component = 0, .purpose = 1});
  for (int run = 0; run < 50; ++run) {
    PowerSeries s;
    for (int i = 0; i < 30; ++i) {
      s.add(Seconds{0.01 + random.uniform()}, Watts{100 * random.uniform()});
    }
    const PowerSeries out = smoothed(s, Joules{200 * random.uniform()});
    CHECK(out.end.base_units() == doctest::Approx(s.end.base_units()).epsilon(1e-12));
    CHECK(energy(out).base_units() == doctest::Approx(energy(s).base_units()).epsilon(1e-9));
    CHECK(peak_power(out) <= peak_power(s));
    CHECK(trough_power(out) >= trough_power(s));
  }
}

TEST_CASE("rate_limited: a square wave loses half of each rise, and burns half of each fall") {
  PowerSeries wave;
  wave.add(Seconds{5}, Watts{100});
  wave.add(Seconds{5}, Watts{200});
  // 100 W at 50 W/s take 2 s, in which the work of one second is done. The fall burns 100 J.
  const SlowedPeriod slow = rate_limited(wave, Watts{100}, 50);
  CHECK(slow.period.base_units() == doctest::Approx(11).epsilon(1e-12));
  CHECK(slow.energy.base_units() == doctest::Approx(1700).epsilon(1e-12));
  // Machines that stand at 50 W get on at a third of their pace where the rise begins: 2/3 of a
  // second is lost, for 50 W beside the 100 J that the fall burns.
  const SlowedPeriod standing = rate_limited(wave, Watts{50}, 50);
  CHECK(standing.period.base_units() == doctest::Approx(10 + 2.0 / 3).epsilon(1e-12));
  CHECK(standing.energy.base_units() == doctest::Approx(1500 + 100 + 50 * 2 / 3.0).epsilon(1e-12));
  // Without a limit to speak of it is the series, and what never changes has no ramp.
  CHECK(rate_limited(wave, Watts{100}, 1e15).period.base_units() == doctest::Approx(10));
  CHECK(rate_limited(wave, Watts{100}, 1e15).energy.base_units() == doctest::Approx(1500));
  PowerSeries flat;
  flat.add(Seconds{3}, Watts{70});
  CHECK(rate_limited(flat, Watts{10}, 1).period.base_units() == doctest::Approx(3));
}

TEST_CASE("rate_limited: a peak that is shorter than the rise never gets to its power") {
  PowerSeries peak;
  peak.add(Seconds{9}, Watts{100});
  peak.add(Seconds{1}, Watts{200});
  // 100 J of work above 100 W at 10 W/s from 0: t^2 10 / 2 = 100, so t = sqrt(20); the power that
  // is reached then falls for as long, and burns as much again.
  const SlowedPeriod slow = rate_limited(peak, Watts{100}, 10);
  const double takes = std::sqrt(20.0);
  CHECK(slow.period.base_units() == doctest::Approx(9 + takes).epsilon(1e-12));
  CHECK(slow.energy.base_units() == doctest::Approx(100 * (9 + takes) + 200).epsilon(1e-12));
}

}  // namespace lockstep
