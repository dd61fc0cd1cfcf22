#include "topologies/graph/bisection.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "topologies/analysis/analysis.hpp"
#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {
namespace {

const BytesPerSecond kCutRate = gigabits_per_second(100);

/// Hosts of one NIC each on a line of switches, `per_switch` of them on each.
DrawnFabric line_of(int switches, int per_switch, std::uint64_t seed) {
  std::vector<std::pair<std::string, std::string>> cables;
  for (int s = 0; s < switches; ++s) {
    for (int h = 0; h < per_switch; ++h) {
      cables.emplace_back("h" + std::to_string(s * per_switch + h), "s" + std::to_string(s));
    }
    if (s > 0) cables.emplace_back("s" + std::to_string(s - 1), "s" + std::to_string(s));
  }
  RandomStream stream({.seed = seed, .purpose = 1});
  for (std::size_t i = cables.size(); i > 1; --i) {
    std::swap(cables[i - 1], cables[stream.below(static_cast<std::uint32_t>(i))]);
  }
  FabricSketch sketch;
  for (const auto& [a, b] : cables) {
    for (const std::string& name : {a, b}) {
      if (sketch.find(name)) continue;
      if (name[0] == 'h') {
        sketch.add_nic(sketch.add_host(name), name);
      } else {
        sketch.add_switch(name);
      }
    }
    sketch.add_cable({.a = *sketch.find(a), .b = *sketch.find(b), .capacity = kCutRate});
  }
  return sketch.finish();
}

TEST_CASE("bisection: a line of switches is cut in its middle, whatever the order of its cables") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Bisection few = analyse(line_of(6, 2, seed)).bisection;
    CHECK(few.exact);
    CHECK(few.rate == kCutRate);
    CHECK(few.injection == 6 * kCutRate);
    const Bisection many = analyse(line_of(40, 4, seed)).bisection;
    CHECK_FALSE(many.exact);  // an upper bound, which here is the narrowest cut
    CHECK(many.rate == kCutRate);
  }
}

TEST_CASE("bisection: names that run across the fabric do not hide the narrowest cut") {
  // Hosts h0, h2, ... on one switch and h1, h3, ... on the other, with one cable between the two.
  FabricSketch sketch;
  const SketchVertex left = sketch.add_switch("left"), right = sketch.add_switch("right");
  for (int h = 0; h < 64; ++h) {
    const std::string name = "h" + std::to_string(h);
    const SketchVertex nic = sketch.add_nic(sketch.add_host(name), name);
    sketch.add_cable({.a = nic, .b = h % 2 == 0 ? left : right, .capacity = kCutRate});
  }
  sketch.add_cable({.a = left, .b = right, .capacity = kCutRate});
  const DrawnFabric fabric = sketch.finish();
  CHECK(narrowest_bisection(fabric.graph).rate == kCutRate);
  CHECK(narrowest_bisection(fabric.graph).exact);  // two kinds of host leave 33 cuts
}

TEST_CASE("bisection: an odd host is in the larger half, and one host has no halves") {
  const Bisection odd = analyse(line_of(3, 1, 1)).bisection;
  CHECK(odd.rate == kCutRate);
  CHECK(odd.injection == kCutRate);  // of the half of one host
  CHECK(analyse(line_of(1, 1, 1)).bisection.cuts == 0);
}

}  // namespace
}  // namespace lockstep
