#include "models/site/standby.hpp"

#include <cmath>
#include <doctest/doctest.h>

namespace lockstep {

TEST_CASE("standby: batteries carry a load as long as their energy lasts") {
  // 5 minutes at 2 MW are 10 at 1 MW.
  CHECK(bridge_time(Seconds{300} * Watts{2e6}, Watts{1e6}).base_units() == doctest::Approx(600));
  CHECK(std::isinf(bridge_time(Joules{1}, Watts{}).base_units()));
}

TEST_CASE("standby: enough generators start, k out of n") {
  // 0.9^4 = 0.6561, 4 0.9^3 0.1 = 0.2916, 6 0.81 0.01 = 0.0486.
  CHECK(enough_start(4, 4, 0.1) == doctest::Approx(0.6561).epsilon(1e-12));
  CHECK(enough_start(4, 3, 0.1) == doctest::Approx(0.9477).epsilon(1e-12));
  CHECK(enough_start(4, 2, 0.1) == doctest::Approx(0.9963).epsilon(1e-12));
  CHECK(enough_start(4, 0, 0.1) == 1);
  CHECK(enough_start(4, 5, 0.1) == 0);
  CHECK(enough_start(4, 4, 0) == 1);
  CHECK(enough_start(4, 5, 0) == 0);
  CHECK(enough_start(4, 1, 1) == 0);
}

TEST_CASE("standby: an outage of exponential length outlasts the bridge, or the fuel") {
  const Seconds hour{3600}, bridge{600};
  const double bridged = std::exp(-600.0 / 3600);
  const GeneratorLaw any{.start = Seconds{15}, .fails_to_start = 0, .fuel = {}};
  CHECK(outlasts_standby(hour, bridge, any, 1) == 0);
  CHECK(outlasts_standby(hour, bridge, any, 0.98) == doctest::Approx(0.02 * bridged));
  CHECK(outlasts_standby(hour, bridge, any, 0) == doctest::Approx(bridged));
  const GeneratorLaw slow{.start = Seconds{601}, .fails_to_start = 0, .fuel = {}};
  CHECK(outlasts_standby(hour, bridge, slow, 1) == doctest::Approx(bridged));
  const GeneratorLaw fuelled{.start = Seconds{15}, .fails_to_start = 0, .fuel = Seconds{7200}};
  CHECK(outlasts_standby(hour, bridge, fuelled, 0.98) ==
        doctest::Approx(0.02 * bridged + 0.98 * std::exp(-7800.0 / 3600)));
}

}  // namespace lockstep
