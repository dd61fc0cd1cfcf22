/// How far every switch of a graph is from NIC ports: what tells a switch which of its links start
/// a shortest way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

/// Links from each switch to the nearest switch of each of several sets, by breadth-first search
/// from 64 sets at once. Source: Then et al. 2014, The more the merrier: efficient multi-source
/// graph traversal, PVLDB 8(4), section 3.
///
/// Memory: a byte for every set and switch. Messages pass through switches only, never through a
/// NIC.
class SetDistances {
 public:
  static constexpr std::uint8_t kUnreachable = 255;
  /// The longest distance that fits; whatever lies farther counts as unreachable.
  static constexpr int kMax = 254;

  SetDistances() = default;
  /// Members of a set are switches, at distance `start`.
  SetDistances(const ClusterGraph& graph, std::span<const std::vector<Vertex>> sets,
               std::uint8_t start);

  /// By switch, from the first one.
  [[nodiscard]] std::span<const std::uint8_t> row(std::size_t set) const {
    return std::span(distance_).subspan(set * switches_, switches_);
  }

 private:
  std::size_t switches_ = 0;
  std::vector<std::uint8_t> distance_;
};

/// Distances to all NIC ports. Ports on the same switches share a row: a tree has one for each
/// leaf, not for each port.
class PortDistances {
 public:
  /// Requires a graph without cables between two NIC ports.
  explicit PortDistances(const ClusterGraph& graph);

  /// Links from each switch to the port, by switch from the first one.
  [[nodiscard]] std::span<const std::uint8_t> row(Vertex port) const {
    return distances_.row(class_of_[port]);
  }
  /// Links between two ports; SetDistances::kMax + 2 or more: there is no way.
  [[nodiscard]] int between(const ClusterGraph& graph, Vertex from, Vertex to) const;

  /// Ports with equal rows have equal classes, dense numbers from 0.
  [[nodiscard]] std::uint32_t class_of(Vertex port) const { return class_of_[port]; }
  [[nodiscard]] std::uint32_t classes() const { return classes_; }

 private:
  std::vector<std::uint32_t> class_of_;
  std::uint32_t classes_ = 0;
  SetDistances distances_;
};

}  // namespace lockstep
