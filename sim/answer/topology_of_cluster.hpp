/// The network of a cluster as a drawing, with all that a reader of it needs to find the same
/// answers.
#pragma once

#include <optional>
#include <string>

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

/// A cluster, and the scenario's words for it.
struct WrittenCluster {
  Cluster cluster;
  WrittenScenario written;
};

/// A fabric, and of one that a scenario or a preset makes the machine and what was written of it.
struct TopologyInput {
  DrawnFabric fabric;
  std::optional<Cluster> cluster{};
  WrittenScenario written{};  ///< {"cluster": ...}
};

/// What the graph of a tree and its analysis take, measured.
inline constexpr double kGraphBytesPerNic = 1500;

/// Draws it whole, cables that faults have taken beside it. `source`: what it is of, in words.
TopologyInput fabric_of_cluster(WrittenCluster from, std::string source);

}  // namespace lockstep
