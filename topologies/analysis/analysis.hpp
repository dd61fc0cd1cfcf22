/// What can be said of a fabric without sending anything over it: how far, how wide, how many ways,
/// and what must not break.
#pragma once

#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "topologies/formats/drawn_fabric.hpp"
#include "topologies/graph/bisection.hpp"

namespace lockstep {

/// Switches of a layer; -1: those in no layer.
struct LayerCount {
  int level = 0;
  int switches = 0;
};

/// Cables of one rate between two layers (0: NICs).
struct CableCount {
  int low = 0, high = 0;
  BytesPerSecond rate;
  int cables = 0;
};

/// How much a layer of switches takes from below and gives above.
struct LayerLoad {
  int level = 0;
  BytesPerSecond down, across, up;  ///< summed over the layer; across: within it
  double worst = 0;                 ///< largest down / up of a switch
  std::string worst_switch;
  /// Down / up of the layer; 0: nothing goes up.
  [[nodiscard]] double oversubscription() const {
    return up > BytesPerSecond{} ? double{down / up} : 0;
  }
};

struct Spread {
  double least = 0, median = 0, most = 0;
};

/// A switch or cable without which NICs no longer reach the rest of what they were joined to.
struct SinglePoint {
  std::string name;
  bool is_switch = true;
  int hosts = 0;  ///< that lose all their NICs
  int nics = 0;
  std::vector<std::string> examples;  ///< some of the hosts
};

struct TopologyAnalysis {
  int hosts = 0, nics = 0, switches = 0, cables = 0, down_cables = 0;
  std::vector<LayerCount> layers;
  std::vector<CableCount> cable_counts;
  std::vector<LayerLoad> loads;

  int parts = 0;           ///< that hold NICs and do not reach each other
  int unplugged_nics = 0;  ///< without any cable; no part of their own

  /// Cables between two NICs that reach each other; a NIC passes nothing on. From `sources` of
  /// `sources_of` classes of NICs, spread evenly; where they differ, diameter is a lower bound.
  int diameter = 0;
  double average_distance = 0;
  int sources = 0, sources_of = 0;

  Bisection bisection;

  /// Ways between NICs on different switches: shortest paths, and paths between their switches that
  /// share no cable (by max-flow, for `disjoint_pairs` pairs, spread evenly).
  Spread shortest_paths, disjoint_paths;
  int disjoint_pairs = 0;
  double pairs_of_switches = 0;  ///< that there are

  /// Those that cut off whole hosts, the worst first.
  std::vector<SinglePoint> single_points;
  bool single_points_complete = true;  ///< false: there were too many candidates to try them all
  int hosts_on_one_cable = 0;          ///< which cuts off the host
  /// The switch that takes the most NICs with it.
  SinglePoint worst_switch;
};

/// Under a second for 16,384 NICs, some seconds for a million of a tree, whose switches are mostly
/// twins (TwinSwitches).
TopologyAnalysis analyse(const DrawnFabric& as_given);

}  // namespace lockstep
