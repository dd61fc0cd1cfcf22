#include "models/site/weather.hpp"

#include <cmath>
#include <doctest/doctest.h>

#include "tests/support/near.hpp"

namespace lockstep {

TEST_CASE("wet bulb: Stull's own example, saturated air, and never above the air itself") {
  // Stull 2011, section 2: 20 C and 50 % give 13.7 C.
  CHECK(wet_bulb_celsius(20, 0.5) == doctest::Approx(13.7).epsilon(0.004));
  // At saturation nothing evaporates; the fit is good to 0.65 K there.
  for (const double t : {0.0, 10.0, 25.0, 40.0}) {
    CAPTURE(t);
    CHECK(std::abs(wet_bulb_celsius(t, 0.99) - t) < 0.65);
    CHECK(wet_bulb_celsius(t, 0.99) <= t);
    CHECK(wet_bulb_celsius(t, 0.2) < wet_bulb_celsius(t, 0.6));
  }
}

TEST_CASE("sun: overhead on the equator at an equinox's noon, and below the horizon at night") {
  constexpr int kMarchEquinox = 81;  // where Cooper's declination is 0
  CHECK(sun_height(0, kMarchEquinox, 12) == doctest::Approx(1.0));
  CHECK(sun_height(60, kMarchEquinox, 12) == doctest::Approx(0.5));
  CHECK(sun_height(45, kMarchEquinox, 18) == doctest::Approx(0.0));
  CHECK(sun_height(45, kMarchEquinox, 0) == 0);
  // Within the polar circle the sun does not rise at midwinter.
  CHECK(sun_height(70, 355, 12) == 0);
}

}  // namespace lockstep
