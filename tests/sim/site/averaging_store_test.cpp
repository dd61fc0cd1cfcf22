#include "sim/site/averaging_store.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

using test::near;

PowerSeries square(double low, double high, double length) {
  PowerSeries out;
  out.add(Seconds{length}, Watts{low});
  out.add(Seconds{length}, Watts{high});
  return out;
}

double energy_of(const std::vector<PowerCorner>& line) {
  double sum = 0;
  for (std::size_t i = 1; i < line.size(); ++i) {
    sum += (line[i].s - line[i - 1].s) * (line[i].watts + line[i - 1].watts) / 2;
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "averaging store: an edge of H watts averaged over w is a slope of H / w, and takes H w / 8") {
  const PowerSeries step = square(100, 500, 10);
  for (const double over : {0.5, 2.0, 8.0}) {
    CAPTURE(over);
    const std::vector<PowerCorner> line = averaged(step, Seconds{over});
    CHECK(steepest_ramp(line, Seconds{0.1}) == near(400 / over));
    CHECK(store_to_average(step, Seconds{over}).base_units() == near(400 * over / 4));
    CHECK(energy_of(line) == near(energy(step).base_units()));
  }
  // Half of an edge's drift is below the mean, half above: a fall gives back what a rise has taken.
  CHECK(shortest_average(step, Seconds{0.1}, 100).base_units() == near(4.0));
}

TEST_CASE("averaging store: over a whole period nothing but the mean is left") {
  const PowerSeries step = square(100, 500, 10);
  for (const PowerCorner& corner : averaged(step, step.end)) CHECK(corner.watts == near(300.0));
  // 200 W below and above the mean for ten seconds each.
  CHECK(store_to_average(step, step.end).base_units() == near(2000.0));
}

TEST_CASE("averaging store: energy is kept, ramps too, and the store is what a fine sum finds") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .trajectory = 0, .component = 0, .purpose = 1});
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    PowerSeries step;
    for (int k = 0; k < 12; ++k) {
      step.add(Seconds{0.05 + random.uniform()}, Watts{100 + 900 * random.uniform()});
    }
    const Seconds window{0.1};
    const double ramp = 0.3 * steepest_ramp(step, window);
    const Seconds over = shortest_average(step, window, ramp);
    const std::vector<PowerCorner> line = averaged(step, over);
    CHECK(steepest_ramp(line, window) <= ramp * (1 + 1e-9));
    CHECK(energy_of(line) == near(energy(step).base_units()).epsilon(1e-9));
    const double store = store_to_average(step, over).base_units();
    // The least store that a fine sum over the same line finds.
    constexpr int kSums = 200'000;
    double drift = 0, least = 0, most = 0;
    std::size_t corner = 1, stretch = 0;
    for (int k = 0; k < kSums; ++k) {
      const double t = (k + 0.5) / kSums * step.end.base_units();
      while (line[corner].s < t) ++corner;
      while (step.until(stretch).base_units() < t) ++stretch;
      const PowerCorner &from = line[corner - 1], &to = line[corner];
      const double delivered =
          from.watts + (to.watts - from.watts) * (t - from.s) / (to.s - from.s);
      drift += (step.power[stretch].base_units() - delivered) * step.end.base_units() / kSums;
      least = std::min(least, drift);
      most = std::max(most, drift);
    }
    CHECK(store == near(most - least).epsilon(1e-3));
  }
}

}  // namespace lockstep
