/// A fabric written out cable by cable as a directed graph, for algorithms that search it, and as
/// the obvious version that the arithmetic of fabric.hpp is tested against.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/units.hpp"
#include "topologies/fabric.hpp"

namespace lockstep {

using Vertex = std::uint32_t;

/// Compressed sparse rows: the links that leave vertex v are first_link[v] up to first_link[v + 1].
/// Vertices: NIC ports, leaves, spines, cores, in this order. Parallel cables are links of their
/// own, also under spray, where they name the same bundle as `fabric_link`.
class ClusterGraph {
 public:
  /// Takes time and memory in proportion to the cables.
  explicit ClusterGraph(const Fabric& fabric);

  [[nodiscard]] std::uint32_t vertex_count() const { return cores_end_; }
  [[nodiscard]] std::uint32_t link_count() const {
    return static_cast<std::uint32_t>(target_.size());
  }
  [[nodiscard]] std::span<const std::uint32_t> first_link() const { return first_link_; }
  [[nodiscard]] std::span<const Vertex> source() const { return source_; }
  [[nodiscard]] std::span<const Vertex> target() const { return target_; }
  [[nodiscard]] std::span<const BytesPerSecond> capacity() const { return capacity_; }
  [[nodiscard]] std::span<const FabricLink> fabric_link() const { return fabric_link_; }

  [[nodiscard]] Vertex nic_port(int node, int nic) const;
  [[nodiscard]] Vertex leaf(int leaf) const { return nics_end_ + static_cast<Vertex>(leaf); }
  /// `spine` counts within its pod, `core` among those that spine `spine` of every pod reaches.
  [[nodiscard]] Vertex spine(int pod, int spine) const;
  [[nodiscard]] Vertex core(int spine, int core) const;
  /// "node 3 nic 1", "leaf 2", "spine 0", "core 5".
  [[nodiscard]] std::string vertex_name(Vertex vertex) const;

  /// Links on a shortest path to each vertex; -1: there is none.
  [[nodiscard]] std::vector<int> hops_from(Vertex start) const;
  /// Sets of vertices that all reach each other.
  [[nodiscard]] int strong_components() const;
  /// The most that can flow from the sources to the sinks together, to a byte per second. Requires
  /// disjoint sets. Under a second for fabrics of a hundred thousand cables.
  [[nodiscard]] BytesPerSecond max_flow(std::span<const Vertex> sources,
                                        std::span<const Vertex> sinks) const;
  /// max_flow() from the NICs of the first half of the nodes to those of the second (an odd node
  /// takes no part). Nodes are numbered leaf by leaf and pod by pod, so this cuts between leaves or
  /// pods where it can, as the narrowest even cuts do.
  [[nodiscard]] BytesPerSecond bisection() const;

 private:
  struct Cable;
  [[nodiscard]] std::vector<Cable> cables(const Fabric& fabric) const;

  int nodes_ = 0;
  int nics_ = 0;
  int spines_ = 0;  ///< of a pod
  int cores_ = 0;   ///< that a spine reaches
  Vertex nics_end_ = 0, leaves_end_ = 0, spines_end_ = 0, cores_end_ = 0;
  std::vector<std::uint32_t> first_link_;
  std::vector<Vertex> source_;
  std::vector<Vertex> target_;
  std::vector<BytesPerSecond> capacity_;
  std::vector<FabricLink> fabric_link_;
};

}  // namespace lockstep
