#include "topologies/analysis/analysis.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <string>

#include "topologies/fabrics/graph_of_fabric.hpp"

namespace lockstep {
namespace {

constexpr BytesPerSecond kAnalysisRate = gigabits_per_second(400);

TopologyAnalysis analysis_of(const FabricSpec& spec, int nodes, int nics) {
  REQUIRE_FALSE(check(spec, nodes, nics, kAnalysisRate));
  const Fabric fabric(spec, nodes, nics, kAnalysisRate);
  return analyse(drawn_fabric(fabric.is_drawn() ? *fabric.graph() : graph_of(fabric), "a builder"));
}

void check_spread(const Spread& found, double expected) {
  CHECK(found.least == expected);
  CHECK(found.median == expected);
  CHECK(found.most == expected);
}

// A tree of L leaves with p NICs each and u uplinks to u spines: NICs on one leaf are 2 cables
// apart, the others 4, over u shortest and u disjoint ways. All halves are p L / 2 NICs, of which
// u / p get through the spines.
TEST_CASE(
    "analysis of two layers: distances, ways, bisection and oversubscription in closed form") {
  for (const double oversubscription : {1.0, 2.0, 4.0}) {
    CAPTURE(oversubscription);
    constexpr int kLeaves = 6, p = 8;
    FabricSpec spec;
    spec.kind = FabricKind::fat_tree;
    spec.leaf_ports_down = p;
    spec.leaf_oversubscription = oversubscription;
    const TopologyAnalysis a = analysis_of(spec, kLeaves * p, 1);
    const double u = p / oversubscription;
    CHECK(a.diameter == 4);
    constexpr double kNics = kLeaves * p;
    CHECK(a.average_distance ==
          doctest::Approx((2.0 * (p - 1) + 4.0 * (kNics - p)) / (kNics - 1)).epsilon(1e-12));
    check_spread(a.shortest_paths, u);
    check_spread(a.disjoint_paths, u);
    CHECK(double{a.bisection.rate / a.bisection.injection} ==
          doctest::Approx(1 / oversubscription));
    REQUIRE(a.loads.size() == 2);
    CHECK(a.loads[0].oversubscription() == doctest::Approx(oversubscription));
    CHECK(a.single_points.size() == kLeaves);  // each leaf has its hosts alone
    CHECK(a.single_points[0].hosts == p);
    CHECK(a.hosts_on_one_cable == static_cast<int>(kNics));
    CHECK(a.parts == 1);
  }
}

// Three layers: pods of m leaves with p NICs and p spines, each spine m cores: NICs of different
// pods are 6 cables apart over p m shortest ways, of one pod 4 cables over p.
TEST_CASE("analysis of three layers: ways multiply, and oversubscriptions do") {
  constexpr int p = 4, m = 4, kPods = 4;
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.levels = 3;
  spec.leaf_ports_down = p;
  spec.pod_leaves = m;
  TopologyAnalysis a = analysis_of(spec, kPods * m * p, 1);
  CHECK(a.diameter == 6);
  CHECK(a.shortest_paths.least == p);
  CHECK(a.shortest_paths.most == p * m);
  check_spread(a.disjoint_paths, p);
  constexpr double kNics = kPods * m * p;
  CHECK(a.average_distance ==
        doctest::Approx((2.0 * (p - 1) + 4.0 * (m - 1) * p + 6.0 * (kPods - 1) * m * p) /
                        (kNics - 1)));
  CHECK(double{a.bisection.rate / a.bisection.injection} == doctest::Approx(1));
  spec.leaf_oversubscription = 2;
  spec.spine_oversubscription = 2;
  a = analysis_of(spec, kPods * m * p, 1);
  CHECK(double{a.bisection.rate / a.bisection.injection} == doctest::Approx(0.25));
  CHECK(a.loads[0].oversubscription() == doctest::Approx(2));
  CHECK(a.loads[1].oversubscription() == doctest::Approx(2));
}

// A torus of even sides k: each ring adds k / 2 to the diameter and k / 4 to the mean distance of
// all ordered pairs, oneself among them; a cut in halves crosses every ring of the first dimension
// twice; every switch has two cables in each dimension (Dally and Towles 2004, section 5.2).
TEST_CASE("analysis of tori: diameter, mean distance, bisection and ways in closed form") {
  for (const std::vector<int>& sides :
       {std::vector<int>{8, 8}, std::vector<int>{6, 4}, std::vector<int>{4, 4, 6}}) {
    CAPTURE(sides.size());
    FabricSpec spec;
    spec.kind = FabricKind::torus;
    spec.leaf_ports_down = 1;
    spec.torus = sides;
    int nodes = 1, diameter = 2;
    double mean = 0, most_ways = 1, steps = 0;
    for (const int k : sides) {
      nodes *= k;
      diameter += k / 2;
      mean += k / 4.0;
      most_ways *= 2;  // to the far side of a ring it is as far both ways round
      steps += k / 2;
      most_ways *=
          std::tgamma(steps + 1) / (std::tgamma(k / 2 + 1.0) * std::tgamma(steps - k / 2 + 1));
    }
    const TopologyAnalysis a = analysis_of(spec, nodes, 1);
    CHECK(a.diameter == diameter);
    CHECK(a.average_distance == doctest::Approx(2 + mean * nodes / (nodes - 1)).epsilon(1e-12));
    CHECK(a.bisection.rate.base_units() ==
          doctest::Approx(2.0 * nodes / sides[0] * kAnalysisRate.base_units()));
    check_spread(a.disjoint_paths, 2.0 * static_cast<double>(sides.size()));
    CHECK(a.shortest_paths.most == doctest::Approx(most_ways));
    CHECK(a.single_points.size() == static_cast<std::size_t>(nodes));
    CHECK(a.single_points[0].hosts == 1);
  }
}

// Balanced dragonflies, a = 2 p = 2 h in a h + 1 groups (Kim et al. 2008, section 3.1): local,
// global, local, and a cable at each end; a switch has a - 1 local and h global cables, and as many
// disjoint ways to any other.
TEST_CASE("analysis of full dragonflies: five cables at most, and a switch's cables are all ways") {
  for (const int h : {1, 2}) {
    CAPTURE(h);
    const int a = 2 * h, groups = a * h + 1;
    FabricSpec spec;
    spec.kind = FabricKind::dragonfly;
    spec.leaf_ports_down = h;
    spec.group_switches = a;
    const TopologyAnalysis found = analysis_of(spec, groups * a * h, 1);
    CHECK(found.switches == groups * a);
    CHECK(found.cables == groups * a * h + groups * a * (a - 1) / 2 + groups * (groups - 1) / 2);
    CHECK(found.diameter == 5);
    check_spread(found.disjoint_paths, a - 1 + h);
  }
}

// The smallest one, h = 1, is a ring of six switches.
TEST_CASE("analysis of the smallest dragonfly: the mean distance around a ring of six") {
  FabricSpec spec;
  spec.kind = FabricKind::dragonfly;
  spec.leaf_ports_down = 1;
  spec.group_switches = 2;
  const TopologyAnalysis a = analysis_of(spec, 6, 1);
  CHECK(a.average_distance == doctest::Approx(2 + (1 + 1 + 2 + 2 + 3) / 5.0));
}

TEST_CASE("analysis of planes and rails: ways are counted where there are any") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.leaf_ports_down = 8;
  spec.planes = 2;
  TopologyAnalysis a = analysis_of(spec, 32, 1);
  check_spread(a.disjoint_paths, 8);  // of switches of one plane
  CHECK(a.single_points.empty());
  CHECK(a.hosts_on_one_cable == 0);
  spec.planes = 1;
  spec.kind = FabricKind::rail_only;
  spec.pxn = true;
  a = analysis_of(spec, 32, 4);
  CHECK(a.parts == 4);
  check_spread(a.disjoint_paths, 8);
  CHECK(a.single_points.empty());  // a host has four rails
  CHECK(a.worst_switch.nics == 8);
}

TEST_CASE("single points of failure: the only spine cuts off the smaller side, a bridge its leaf") {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.leaf_ports_down = 4;
  spec.leaf_oversubscription = 4;
  const TopologyAnalysis a = analysis_of(spec, 12, 1);  // 3 leaves, 1 spine, one cable each
  const auto hosts_of = [&a](const std::string& name) {
    for (const SinglePoint& point : a.single_points) {
      if (point.name == name) return point.hosts;
    }
    return 0;
  };
  CHECK(hosts_of("spine 0") == 8);
  CHECK(hosts_of("leaf 0") == 4);
  CHECK(a.single_points.front().name == "spine 0");
  CHECK(a.single_points.size() == 7);  // 3 leaves, the spine, 3 cables
  CHECK(a.single_points_complete);
}

}  // namespace
}  // namespace lockstep
