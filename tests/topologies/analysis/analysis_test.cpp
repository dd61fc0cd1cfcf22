#include "topologies/analysis/analysis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/formats/drawn_fabric.hpp"

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

/// Pods of leaves and spines under cores, with cables that are missing or doubled here and there,
/// so that some switches are twins and others nearly so; hosts have one NIC with one or two cables.
DrawnFabric uneven_fabric(std::uint64_t seed) {
  RandomStream stream({.seed = seed, .purpose = 2});
  FabricSketch sketch;
  const auto join = [&](SketchVertex a, SketchVertex b) {
    const std::uint32_t draw = stream.below(12);
    if (draw == 0) return;
    sketch.add_cable({.a = a, .b = b, .capacity = kAnalysisRate});
    if (draw == 1) sketch.add_cable({.a = a, .b = b, .capacity = kAnalysisRate});
  };
  std::vector<SketchVertex> cores, all_leaves;
  for (std::uint32_t c = 0, count = stream.below(4); c < count; ++c) {
    cores.push_back(sketch.add_switch("core" + std::to_string(c)));
  }
  for (std::uint32_t p = 0, pods = 1 + stream.below(3); p < pods; ++p) {
    const std::string pod = "p" + std::to_string(p);
    std::vector<SketchVertex> leaves;
    for (std::uint32_t l = 0, count = 1 + stream.below(4); l < count; ++l) {
      leaves.push_back(sketch.add_switch(pod + "leaf" + std::to_string(l)));
    }
    for (std::uint32_t s = 0, count = 1 + stream.below(3); s < count; ++s) {
      const SketchVertex spine = sketch.add_switch(pod + "spine" + std::to_string(s));
      for (const SketchVertex leaf : leaves) join(leaf, spine);
      for (const SketchVertex core : cores) join(spine, core);
    }
    all_leaves.insert(all_leaves.end(), leaves.begin(), leaves.end());
  }
  const auto leaves = static_cast<std::uint32_t>(all_leaves.size());
  for (std::uint32_t h = 0; h < 2 * leaves; ++h) {
    const std::string name = "h" + std::to_string(h);
    const SketchVertex nic = sketch.add_nic(sketch.add_host(name), name);
    const std::uint32_t first = h / 2, second = stream.below(3 * leaves);
    sketch.add_cable({.a = nic, .b = all_leaves[first], .capacity = kAnalysisRate});
    if (second >= leaves) continue;
    sketch.add_cable({.a = nic, .b = all_leaves[second], .capacity = kAnalysisRate});
  }
  return sketch.finish();
}

/// Cables from a port to each vertex and ways of that length, one cable after the other.
std::vector<std::pair<int, double>> search_from(const ClusterGraph& graph, Vertex from) {
  std::vector<std::pair<int, double>> out(graph.vertex_count(), {-1, 0.0});
  std::vector<Vertex> queue{from};
  out[from] = {0, 1.0};
  for (std::size_t i = 0; i < queue.size(); ++i) {  // NOLINT(modernize-loop-convert)
    const Vertex at = queue[i];
    if (i > 0 && at < graph.port_count()) continue;  // a NIC passes nothing on
    for (GraphLink l = graph.first_link()[at]; l < graph.first_link()[at + 1]; ++l) {
      auto& [hops, ways] = out[graph.target()[l]];
      if (hops < 0) queue.push_back(graph.target()[l]);
      if (hops < 0) hops = out[at].first + 1;
      if (hops == out[at].first + 1) ways += out[at].second;
    }
  }
  return out;
}

TEST_CASE("analysis of uneven fabrics: distances and ways are those of a search from every NIC") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    const DrawnFabric fabric = uneven_fabric(seed);
    const ClusterGraph& graph = fabric.graph;
    std::map<std::map<Vertex, int>, Vertex> firsts;  // of NICs with the same cables
    for (Vertex nic = 0; nic < graph.port_count(); ++nic) {
      std::map<Vertex, int> cables;
      for (GraphLink l = graph.first_link()[nic]; l < graph.first_link()[nic + 1]; ++l) {
        ++cables[graph.target()[l]];
      }
      firsts.emplace(std::move(cables), nic);
    }
    const auto is_first = [&firsts](Vertex nic) {
      return std::ranges::any_of(firsts, [nic](const auto& one) { return one.second == nic; });
    };
    double sum = 0, pairs = 0;
    int diameter = 0;
    std::vector<double> ways;
    for (Vertex from = 0; from < graph.port_count(); ++from) {
      const auto found = search_from(graph, from);
      for (Vertex to = 0; to < graph.port_count(); ++to) {
        const auto [hops, of_length] = found[to];
        if (to == from || hops < 0) continue;
        sum += hops;
        pairs += 1;
        diameter = std::max(diameter, hops);
        if (hops > 2 && is_first(from) && is_first(to)) ways.push_back(of_length);
      }
    }
    std::ranges::sort(ways);
    const TopologyAnalysis a = analyse(fabric);
    CHECK(a.sources == static_cast<int>(firsts.size()));
    CHECK(a.diameter == diameter);
    CHECK(a.average_distance == (pairs > 0 ? sum / pairs : 0));
    CHECK(a.shortest_paths.least == (ways.empty() ? 0 : ways.front()));
    CHECK(a.shortest_paths.median == (ways.empty() ? 0 : ways[ways.size() / 2]));
    CHECK(a.shortest_paths.most == (ways.empty() ? 0 : ways.back()));
  }
}

}  // namespace
}  // namespace lockstep
