#include "topologies/fabrics/drawn_fabric.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

#include "topologies/fabrics/drawing.hpp"
#include "topologies/fabrics/faults.hpp"
#include "topologies/infiniband/static_tables.hpp"

namespace lockstep {
namespace {

using Problem = std::optional<FabricProblem>;

const FabricKindInfo& info(FabricKind kind) {
  return fabric_kinds()[static_cast<std::size_t>(kind)];
}

/// All planes; each NIC port has a cable to each of them.
FabricDrawing draw_planes(const FabricPlan& plan) {
  FabricDrawing plane = info(plan.spec.kind).draw(plan);
  if (plan.spec.planes == 1) return plane;
  FabricDrawing out = FabricDrawing::of_ports(plan);
  for (int i = 0; i < plan.spec.planes; ++i) {
    out.append(plane, fmt::format("plane {} ", i), [](Vertex port) { return port; });
  }
  return out;
}

/// Whether one switch is near enough to every port that any two meet there at the latest. A search
/// instead of all distances: false says nothing.
bool meet_at_a_switch(const ClusterGraph& graph, std::span<const Vertex> ports) {
  const std::span<const GraphLink> first = graph.first_link();
  if (ports.empty() || first[ports[0]] == first[ports[0] + 1]) return false;
  std::vector<Vertex> open{graph.target()[first[ports[0]]]};
  std::vector<int> hops(graph.vertex_count(), -1);
  hops[open.front()] = 1;  // with the cable of a port
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i] < graph.port_count()) continue;  // NICs pass nothing on
    for (GraphLink link = first[open[i]]; link < first[open[i] + 1]; ++link) {
      const Vertex to = graph.target()[link];
      if (hops[to] >= 0) continue;
      hops[to] = hops[open[i]] + (to < graph.port_count() ? 0 : 1);
      open.push_back(to);
    }
  }
  return std::ranges::all_of(ports, [&hops](Vertex port) {
    return hops[port] >= 0 && 2 * hops[port] <= SetDistances::kMax;
  });
}

/// All ports, or those of each rail where only they have to meet.
std::vector<std::vector<Vertex>> ports_to_meet(const ClusterGraph& graph, bool by_rail) {
  std::vector<std::vector<Vertex>> out;
  for (Vertex port = 0; port < graph.port_count(); ++port) {
    const std::size_t set = by_rail ? static_cast<std::size_t>(graph.vertices()[port].nic) : 0;
    if (out.size() <= set) out.resize(set + 1);
    out[set].push_back(port);
  }
  return out;
}

/// NICs that cannot reach each other. Ports on the same switches are looked at once.
Problem check_ways(const FabricSpec& spec, const std::shared_ptr<const ClusterGraph>& graph,
                   int nodes, int nics) {
  if (Problem p = check_static_tables(spec, *graph)) return p;
  if (!routings()[static_cast<std::size_t>(spec.routing)].is_static) {
    const auto sets = ports_to_meet(*graph, spec.pxn);
    const auto meet = [&graph](const auto& ports) { return meet_at_a_switch(*graph, ports); };
    if (std::ranges::all_of(sets, meet)) return {};
  }
  const GraphRoutes routes(graph, {.tables = static_tables(spec, *graph)});
  const PortDistances& distances = routes.distances();
  const auto check_pair = [&](Vertex a, Vertex b) -> Problem {
    if (routes.reaches(a, b)) return {};
    return FabricProblem{
        spec.faults.empty() ? "kind" : "faults",
        fmt::format("{} cannot reach {}", graph->vertex_name(a), graph->vertex_name(b)),
        fmt::format("a fabric that joins all NICs{} within {} switches",
                    spec.pxn ? " of a rail" : "", SetDistances::kMax)};
  };
  // Of each class one port stands for all, unless tables tell them apart; with PXN only NICs of one
  // rail have to meet.
  const bool by_port = routings()[static_cast<std::size_t>(spec.routing)].is_static;
  std::vector<std::vector<Vertex>> rails(spec.pxn ? static_cast<std::size_t>(nics) : 1);
  std::vector<std::vector<Vertex>> targets(rails.size());
  std::vector<std::vector<bool>> known(rails.size(), std::vector<bool>(distances.classes()));
  for (int node = 0; node < nodes; ++node) {
    for (int nic = 0; nic < nics; ++nic) {
      const std::size_t rail = spec.pxn ? static_cast<std::size_t>(nic) : 0;
      const Vertex port = graph->nic_port(node, nic);
      const std::uint32_t of = distances.class_of(port);
      if (!known[rail][of]) rails[rail].push_back(port);
      if (by_port || !known[rail][of]) targets[rail].push_back(port);
      known[rail][of] = true;
    }
  }
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    for (const Vertex a : rails[rail]) {
      for (const Vertex b : targets[rail]) {
        if (Problem p = check_pair(a, b)) return p;
      }
    }
  }
  return {};
}

FabricPlan plan_of(const FabricSpec& spec, int nodes, int nics, BytesPerSecond nic_bandwidth) {
  return {spec, nodes, nics, nic_bandwidth / spec.planes};
}

std::shared_ptr<const ClusterGraph> graph_of(FabricDrawing drawing) {
  return std::make_shared<const ClusterGraph>(std::move(drawing.vertices),
                                              std::move(drawing.cables));
}

}  // namespace

std::optional<FabricProblem> check_drawn(const FabricSpec& spec, int nodes, int nics_per_node,
                                         BytesPerSecond nic_bandwidth) {
  const FabricPlan plan = plan_of(spec, nodes, nics_per_node, nic_bandwidth);
  FabricDrawing drawing = draw_planes(plan);
  if (Problem p = apply_faults(spec.faults, drawing)) return p;
  return check_ways(spec, graph_of(std::move(drawing)), nodes, nics_per_node);
}

std::shared_ptr<const ClusterGraph> draw_fabric(const FabricSpec& spec, int nodes,
                                                int nics_per_node, BytesPerSecond nic_bandwidth) {
  if (spec.kind == FabricKind::file && spec.faults.empty()) return spec.graph;
  FabricDrawing drawing = draw_planes(plan_of(spec, nodes, nics_per_node, nic_bandwidth));
  const Problem problem = apply_faults(spec.faults, drawing);
  assert(!problem);
  return graph_of(std::move(drawing));
}

RoutePolicy route_policy(const FabricSpec& spec, const ClusterGraph& graph) {
  const bool groups = spec.kind == FabricKind::dragonfly || spec.kind == FabricKind::dragonfly_plus;
  return {.routing = spec.routing,
          .hash_seed = spec.hash_seed,
          .hash_draw = spec.hash_draw,
          .queue_pairs = spec.queue_pairs,
          .nonminimal_share = spec.nonminimal_share.value_or(groups ? kUgalShare : 0),
          .tables = static_tables(spec, graph)};
}

}  // namespace lockstep
