/// What the builders of drawn fabrics share, and each builder's functions; fabric_kinds.cpp names
/// them. To add a kind of fabric: its file here, and its row there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/fabrics/fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

/// What a builder has to join: one plane of a fabric, without its faults.
struct FabricPlan {
  const FabricSpec& spec;
  int nodes;
  int nics;                      ///< ports of a node
  BytesPerSecond nic_bandwidth;  ///< of a port, in this plane

  [[nodiscard]] std::int64_t ports() const { return std::int64_t{nodes} * nics; }
  /// Of a cable between switches, and of one between cores or groups and what is below.
  [[nodiscard]] BytesPerSecond link() const;
  [[nodiscard]] BytesPerSecond upper_link() const;
};

/// A graph in the making: NIC ports by node and NIC, then switches, as ClusterGraph takes them.
struct FabricDrawing {
  std::vector<GraphVertex> vertices;
  std::vector<GraphCable> cables;

  /// The ports of the plan, "node 3 nic 1", without cables.
  static FabricDrawing of_ports(const FabricPlan& plan);
  Vertex add_switch(std::string name, int level, int group = -1);
  void join(Vertex a, Vertex b, BytesPerSecond capacity, int parallel = 1);
  /// Cables each port of the plan to a switch: the first `per_switch` to `first_switch` and so on.
  void join_ports(const FabricPlan& plan, Vertex first_switch, int per_switch);
  /// Adds the switches and cables of a drawing of some ports; `port_of` says which they are here.
  template <class PortOf>
  void append(const FabricDrawing& part, const std::string& prefix, PortOf port_of);
};

/// Bounds that keep every count of a fabric in 31 bits, far beyond any real one.
constexpr int kPortsMax = 1 << 16;           // of a switch
constexpr std::int64_t kLinksMax = 1 << 28;  // of a fabric, one way
/// Bounds within which a fabric can be drawn, and its distances kept: 1 GiB of them.
constexpr std::int64_t kDrawnCablesMax = 1 << 22;
constexpr std::int64_t kDrawnSwitchesMax = 1 << 15;

std::int64_t divide_up(std::int64_t a, std::int64_t b);
/// Refuses more cables or switches than that. `field`: what to lower.
std::optional<FabricProblem> check_drawing_size(const char* field, std::int64_t value,
                                                std::int64_t switches, std::int64_t cables);
/// Refuses a number outside its bounds.
std::optional<FabricProblem> check_count(const char* field, int value, int min, int max);

/// Whole trees: those whose routes are arithmetic, drawn.
std::optional<FabricProblem> check_tree(const FabricPlan& plan);
FabricDrawing draw_tree(const FabricPlan& plan);

std::optional<FabricProblem> check_rail_only(const FabricPlan& plan);
FabricDrawing draw_rail_only(const FabricPlan& plan);

std::optional<FabricProblem> check_dragonfly(const FabricPlan& plan);
FabricDrawing draw_dragonfly(const FabricPlan& plan);

std::optional<FabricProblem> check_dragonfly_plus(const FabricPlan& plan);
FabricDrawing draw_dragonfly_plus(const FabricPlan& plan);

std::optional<FabricProblem> check_torus(const FabricPlan& plan);
FabricDrawing draw_torus(const FabricPlan& plan);

std::optional<FabricProblem> check_file(const FabricPlan& plan);
FabricDrawing draw_file(const FabricPlan& plan);

template <class PortOf>
void FabricDrawing::append(const FabricDrawing& part, const std::string& prefix, PortOf port_of) {
  std::vector<Vertex> here;
  here.reserve(part.vertices.size());
  for (Vertex v = 0; v < part.vertices.size(); ++v) {
    const GraphVertex& vertex = part.vertices[v];
    if (vertex.is_port()) {
      here.push_back(port_of(v));
    } else {
      here.push_back(add_switch(prefix + vertex.name, vertex.level, vertex.group));
    }
  }
  for (GraphCable cable : part.cables) {
    cable.a = here[cable.a];
    cable.b = here[cable.b];
    cables.push_back(cable);
  }
}

}  // namespace lockstep
