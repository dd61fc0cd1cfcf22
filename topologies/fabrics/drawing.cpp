#include "topologies/fabrics/drawing.hpp"

#include <cassert>
#include <fmt/format.h>
#include <utility>

namespace lockstep {

BytesPerSecond FabricPlan::link() const {
  return spec.link_bandwidth > BytesPerSecond{} ? spec.link_bandwidth : nic_bandwidth;
}
BytesPerSecond FabricPlan::upper_link() const {
  return spec.upper_bandwidth > BytesPerSecond{} ? spec.upper_bandwidth : link();
}

FabricDrawing FabricDrawing::of_ports(const FabricPlan& plan) {
  FabricDrawing out;
  out.vertices.reserve(static_cast<std::size_t>(plan.ports()));
  for (int node = 0; node < plan.nodes; ++node) {
    for (int nic = 0; nic < plan.nics; ++nic) {
      out.vertices.push_back(
          {.name = fmt::format("node {} nic {}", node, nic), .level = 0, .node = node, .nic = nic});
    }
  }
  return out;
}

Vertex FabricDrawing::add_switch(std::string name, int level, int group) {
  vertices.push_back({.name = std::move(name), .level = level, .group = group});
  return static_cast<Vertex>(vertices.size() - 1);
}

void FabricDrawing::join(Vertex a, Vertex b, BytesPerSecond capacity, int parallel) {
  for (int i = 0; i < parallel; ++i) cables.push_back({.a = a, .b = b, .capacity = capacity});
}

void FabricDrawing::join_ports(const FabricPlan& plan, Vertex first_switch, int per_switch) {
  for (Vertex port = 0; port < plan.ports(); ++port) {
    join(port, first_switch + port / static_cast<Vertex>(per_switch), plan.nic_bandwidth);
  }
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  assert(a >= 0 && b > 0);
  return (a + b - 1) / b;
}

std::optional<FabricProblem> check_drawing_size(const char* field, std::int64_t value,
                                                std::int64_t switches, std::int64_t cables) {
  if (switches <= kDrawnSwitchesMax && cables <= kDrawnCablesMax) return {};
  return FabricProblem{field, fmt::format("{}", value),
                       fmt::format("a fabric of at most {} switches and {} cables, which one that "
                                   "is no whole tree is drawn with",
                                   kDrawnSwitchesMax, kDrawnCablesMax)};
}

std::optional<FabricProblem> check_count(const char* field, int value, int min, int max) {
  if (value >= min && value <= max) return {};
  return FabricProblem{field, fmt::format("{}", value), fmt::format("{} to {}", min, max)};
}

}  // namespace lockstep
