// DCQCN: the equations of Zhu et al. 2015 step by step, then its promises in the packet network.
#include <algorithm>
#include <doctest/doctest.h>

#include "tests/sim/packet/hand_network.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::test;

constexpr BytesPerSecond kForty = gigabits_per_second(40);

double gigabits(BytesPerSecond rate) { return rate / gigabits_per_second(1); }

}  // namespace

TEST_CASE("marks: none up to K_min, p_max at K_max, all above (figure 5)") {
  const EcnMarking marking;
  CHECK(mark_probability(marking, 5000) == 0);
  CHECK(mark_probability(marking, 102500) == doctest::Approx(0.005));
  CHECK(mark_probability(marking, 200000) == doctest::Approx(0.01));
  CHECK(mark_probability(marking, 200001) == 1);
}

TEST_CASE("a notification halves the rate at first; alpha decays without (equations 1 and 2)") {
  const DcqcnConstants constants;
  DcqcnRate rate(constants, kForty);
  CHECK_FALSE(rate.limited());
  rate.on_notification();
  CHECK(gigabits(rate.current()) == doctest::Approx(20));
  CHECK(gigabits(rate.target()) == doctest::Approx(40));
  CHECK(rate.alpha() == 1);  // (1 - g) 1 + g
  for (int i = 0; i < 256; ++i) rate.on_alpha_timer();
  CHECK(rate.alpha() == doctest::Approx(std::pow(255.0 / 256, 256)));
  rate.on_notification();  // alpha = 0.367: a cut by 18 %
  CHECK(gigabits(rate.current()) == doctest::Approx(20 * (1 - std::pow(255.0 / 256, 256) / 2)));
  CHECK(gigabits(rate.target()) == doctest::Approx(20));
}

TEST_CASE("recovery: five halvings of the gap, then R_AI a step, then R_HAI (equations 3 and 4)") {
  const DcqcnConstants constants;
  DcqcnRate rate(constants, kForty);
  rate.on_notification();
  rate.on_notification();  // target 20, current 10
  double current = 10;
  for (int step = 0; step < 5; ++step) {
    rate.on_rate_timer();
    current = (20 + current) / 2;
    CHECK(gigabits(rate.current()) == doctest::Approx(current));
    CHECK(gigabits(rate.target()) == doctest::Approx(20));
  }
  rate.on_rate_timer();
  CHECK(gigabits(rate.target()) == doctest::Approx(20.04));
  // The byte counter has to pass F as well before the steps grow tenfold.
  for (int step = 0; step < 6; ++step) rate.on_sent(10e6);
  const double before = gigabits(rate.target());
  CHECK(before == doctest::Approx(20.04 + 6 * 0.04));
  rate.on_rate_timer();
  CHECK(gigabits(rate.target()) == doctest::Approx(before + 0.4));
  for (int step = 0; step < 1000; ++step) rate.on_rate_timer();
  CHECK(rate.target() == kForty);
  CHECK(gigabits(rate.current()) == doctest::Approx(40));
}
