// DCQCN: the equations of Zhu et al. 2015 step by step, then its promises in the packet network.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <utility>

#include "sim/referee/referee.hpp"
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

TEST_CASE("a notification halves the rate at first, alpha decays without (equations 1 and 2)") {
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

TEST_CASE("cuts in a row keep the target only where the tuning says so") {
  const DcqcnTuning tuning = vendor_tuning(kForty);
  CHECK(tuning.marking.k_min == 160000);
  CHECK(tuning.marking.k_max == 640000);
  CHECK(gigabits(tuning.constants.additive) == doctest::Approx(0.008));
  DcqcnRate rate(tuning.constants, kForty);
  rate.on_notification();
  rate.on_notification();
  CHECK(gigabits(rate.current()) == doctest::Approx(10));
  CHECK(gigabits(rate.target()) == doctest::Approx(40));
  rate.on_rate_timer();  // an increase: the next cut lowers the target
  CHECK(gigabits(rate.current()) == doctest::Approx(25));
  rate.on_notification();
  CHECK(gigabits(rate.target()) == doctest::Approx(25));
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

TEST_CASE("DCQCN is fair where pauses alone are not: a near sender and three far ones") {
  // Section 2.2 and figure 3 of the paper: with pauses alone the port of the near sender gets as
  // much as the port that three share, half against a sixth each. Section 6.1, figure 8: with DCQCN
  // all four get the same. Same constants and rate as the paper's.
  constexpr std::uint64_t kBytes = 100000000;
  const PacketNetwork network = parking_lot(1, 3, kForty, kBytes);
  EthernetControl control;
  control.xoff = 400000;
  control.xon = 390000;
  control.congestion_control = false;
  const PacketResult paused = simulate(network, control);
  CHECK(paused.flows[1].finish.ps > 1.7 * static_cast<double>(paused.flows[0].finish.ps));
  CHECK(paused.links[1].pauses > 0);

  control.congestion_control = true;
  const PacketResult fair = simulate(network, control);
  CHECK(conserves(network, fair, control.framing));
  for (const PacketFlowResult& flow : fair.flows) {
    CHECK(static_cast<double>(flow.finish.ps) > 0.85 * 1e12 * last_end(fair));
    CHECK(flow.notifications > 0);
  }
}

TEST_CASE("DCQCN keeps queues below the thresholds of pauses once it has started") {
  // Section 5.1: marking has to come before pausing. 8 sources start at line rate; from then on the
  // rates follow the marks, and no pause is sent although xoff is only twice K_max.
  const PacketNetwork network = parking_lot(8, 0, kForty, 20000000);
  EthernetControl control;
  control.xoff = 400000;
  control.xon = 390000;
  const PacketResult result = simulate(network, control);
  for (const PacketLinkResult& link : result.links) CHECK(link.pauses == 0);
}
