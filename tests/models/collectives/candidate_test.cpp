#include "models/collectives/candidate.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>

#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kNic = gigabytes_per_second(50);
constexpr double kSharpness = 8;

CollectiveCandidate line(double latency_us, double gb_per_s) {
  return {.algorithm = "ring",
          .protocol = "simple",
          .latency = microseconds(latency_us),
          .per_byte = per_byte_at(1, gigabytes_per_second(gb_per_s)),
          .nvlink_coefficient = 0,
          .network_coefficient = 0};
}

double time_us(const CollectiveCost& cost, Bytes payload) {
  return (cost.latency + payload / cost.payload_rate).base_units() * 1e6;
}

TEST_CASE("smooth_minimum: a single candidate is itself, at any payload") {
  const std::array one{line(20, 100)};
  for (const double bytes : {1.0, 1e3, 1e6, 1e9, 1e13}) {
    CAPTURE(bytes);
    const CollectiveCost cost = smooth_minimum(one, Bytes{bytes}, kNic, kSharpness);
    CHECK(cost.latency.base_units() == test::near(20e-6));
    CHECK(cost.payload_rate.base_units() == test::near(100e9));
  }
}

TEST_CASE(
    "candidate: messages that wait for each other are the least time, two slices from a size on") {
  // Ten steps of 20 us; from 1 MiB on two messages each, from 0.5 MiB so many as are in proportion.
  CollectiveCandidate ring = line(20, 100);
  ring.pace = {.steps = 10, .each = microseconds(20), .split = Bytes{0x1p19}};
  CHECK(ring.pace.time(Bytes{1}).base_units() == test::near(200e-6));
  CHECK(ring.pace.time(Bytes{0x1p19}).base_units() == test::near(200e-6));
  CHECK(ring.pace.time(Bytes{0.75 * 0x1p20}).base_units() == test::near(300e-6));
  CHECK(ring.pace.time(Bytes{0x1p20}).base_units() == test::near(400e-6));
  CHECK(ring.pace.time(Bytes{1e9}).base_units() == test::near(400e-6));
  // Far from each other the longer of both counts: 200 us of messages, 20 us + 100 ms of bytes.
  CHECK(ring.time(Bytes{8}).base_units() == test::near(200e-6).epsilon(1e-6));
  CHECK(ring.time(Bytes{1e10}).base_units() == test::near(20e-6 + 0.1).epsilon(1e-6));
  // As long as each other, they take 2^(1/6) times as long.
  const Bytes alike{(400e-6 - 20e-6) * 100e9};
  CHECK(ring.time(alike).base_units() == test::near(std::pow(2, 1.0 / 6) * 400e-6));
  // What waits is latency: the bytes go at the links' rate, and both add up.
  const std::array one{ring};
  const CollectiveCost cost = smooth_minimum(one, alike, kNic, kSharpness);
  CHECK(cost.payload_rate.base_units() == test::near(100e9));
  CHECK(time_us(cost, alike) == test::near(ring.time(alike).base_units() * 1e6));
}

TEST_CASE("smooth_minimum: latency and rate add up to the power mean of the candidates") {
  const std::array three{line(5, 1), line(12, 40), line(90, 300)};
  for (double bytes = 8; bytes < 1e11; bytes *= 3) {
    CAPTURE(bytes);
    double sum = 0;
    for (const CollectiveCandidate& c : three) {
      sum += std::pow((c.latency + Bytes{bytes} * c.per_byte).base_units() * 1e6, -kSharpness);
    }
    const CollectiveCost cost = smooth_minimum(three, Bytes{bytes}, kNic, kSharpness);
    CHECK(time_us(cost, Bytes{bytes}) == test::near(std::pow(sum, -1 / kSharpness)));
    CHECK(cost.latency >= Seconds{});
    CHECK(cost.payload_rate > BytesPerSecond{});
  }
}

TEST_CASE("smooth_minimum: far from a crossing the fastest candidate alone counts") {
  const std::array two{line(5, 1), line(100, 200)};
  CHECK(smooth_minimum(two, Bytes{8}, kNic, kSharpness).latency.base_units() ==
        test::near(5e-6).epsilon(1e-6));
  CHECK(smooth_minimum(two, Bytes{1e11}, kNic, kSharpness).payload_rate.base_units() ==
        test::near(200e9).epsilon(1e-6));
}

// Where two equal lines meet, T = 2^(-1/8) of one of them: 8.3 % less.
TEST_CASE("smooth_minimum: two equal candidates take 2^(-1/p) of one") {
  const std::array twins{line(10, 100), line(10, 100)};
  const CollectiveCost cost = smooth_minimum(twins, Bytes{1e6}, kNic, kSharpness);
  CHECK(time_us(cost, Bytes{1e6}) == test::near(20 * std::pow(2, -1.0 / 8)));
}

TEST_CASE("smooth_minimum: no rate asks more of a NIC than it has") {
  CollectiveCandidate fast = line(10, 60);
  fast.network_coefficient = 1;
  const std::array twins{fast, fast};
  const CollectiveCost cost = smooth_minimum(twins, Bytes{1e9}, kNic, kSharpness);
  CHECK(cost.payload_rate.base_units() == test::near(kNic.base_units()));
}

TEST_CASE("smooth_minimum: nothing to send still takes the latency") {
  const std::array one{line(20, 100)};
  CHECK(smooth_minimum(one, Bytes{}, kNic, kSharpness).latency.base_units() == test::near(20e-6));
}

// Hand-computed for eight ranks.
TEST_CASE("bus_factor and ring_steps: eight ranks") {
  CHECK(bus_factor(CollectiveOp::all_reduce, 8) == 1.75);
  CHECK(bus_factor(CollectiveOp::all_gather, 8) == 0.875);
  CHECK(bus_factor(CollectiveOp::reduce_scatter, 8) == 0.875);
  CHECK(bus_factor(CollectiveOp::all_to_all, 8) == 0.875);
  CHECK(bus_factor(CollectiveOp::broadcast, 8) == 1);
  CHECK(bus_factor(CollectiveOp::send_receive, 8) == 1);
  CHECK(ring_steps(CollectiveOp::all_reduce, 8) == 14);
  CHECK(ring_steps(CollectiveOp::reduce_scatter, 8) == 7);
  CHECK(ring_steps(CollectiveOp::broadcast, 8) == 7);
  CHECK(ring_steps(CollectiveOp::send_receive, 8) == 1);
}

}  // namespace
}  // namespace lockstep
