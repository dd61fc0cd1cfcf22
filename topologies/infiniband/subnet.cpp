#include "topologies/infiniband/subnet.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

// First GUIDs of ibsim 0.10 (ibsim/sim_net.c, `guids`); an adapter takes one for itself and one for
// each port.
constexpr std::uint64_t kFirstAdapterGuid = 0x100000;
constexpr std::uint64_t kFirstSwitchGuid = 0x200000;

[[noreturn]] void refuse(const std::string& file, std::string found, std::string allowed) {
  throw InputError({.file = file,
                    .pointer = "",
                    .found = std::move(found),
                    .allowed = std::move(allowed),
                    .nearest = ""});
}

/// Writes down which port numbers of each box are taken, and gives the lowest free ones.
class PortNumbers {
 public:
  PortNumbers(const ClusterGraph& graph, const std::string& file)
      : graph_(graph), file_(file), taken_(graph.vertex_count()) {}

  void take(Vertex box, int port) {
    if (port == 0) return;
    auto& taken = taken_[box];
    const auto at = static_cast<std::size_t>(port);
    if (port < 0 || port > kMostBoxPorts) {
      refuse(file_, fmt::format("port {} of {}", port, in_quotes(graph_.vertex_name(box))),
             fmt::format("port numbers from 1 to {}", kMostBoxPorts));
    }
    if (taken.size() <= at) taken.resize(at + 1, false);
    if (taken[at]) {
      refuse(file_, fmt::format("port {} of {} twice", port, in_quotes(graph_.vertex_name(box))),
             "one cable in a port");
    }
    taken[at] = true;
  }

  int next(Vertex box) {
    auto& taken = taken_[box];
    std::size_t port = 1;
    while (port < taken.size() && taken[port]) ++port;
    if (port > kMostBoxPorts) {
      refuse(file_,
             fmt::format("more than {} cables at {}", kMostBoxPorts,
                         in_quotes(graph_.vertex_name(box))),
             fmt::format("at most {} ports of a box", kMostBoxPorts));
    }
    take(box, static_cast<int>(port));
    return static_cast<int>(port);
  }

  [[nodiscard]] int last(Vertex box) const {
    return std::max(1, static_cast<int>(taken_[box].size()) - 1);
  }

 private:
  const ClusterGraph& graph_;
  const std::string& file_;
  std::vector<std::vector<bool>> taken_;
};

void check_adapters(const ClusterGraph& graph, const std::string& file) {
  for (Vertex v = 0; v < graph.port_count(); ++v) {
    const std::uint32_t cables = graph.first_link()[v + 1] - graph.first_link()[v];
    if (cables == 1) continue;
    refuse(file, fmt::format("{} with {} cables", in_quotes(graph.vertex_name(v)), cables),
           "one cable at every NIC port of an InfiniBand fabric");
  }
  if (graph.port_count() == 0) refuse(file, "no NIC port", "at least one");
  if (graph.vertex_count() > kLastUnicastLid) {
    refuse(file, fmt::format("{} NIC ports and switches", graph.vertex_count()),
           fmt::format("at most {}, the LIDs of a subnet", kLastUnicastLid));
  }
}

ClusterGraph numbered(const ClusterGraph& graph, const std::string& file,
                      std::vector<int>& box_ports) {
  std::vector<GraphVertex> vertices(graph.vertices().begin(), graph.vertices().end());
  std::vector<GraphCable> cables(graph.cables().begin(), graph.cables().end());
  PortNumbers numbers(graph, file);
  for (const GraphCable& cable : cables) {
    numbers.take(cable.a, cable.port_a);
    numbers.take(cable.b, cable.port_b);
  }
  for (GraphCable& cable : cables) {
    if (cable.port_a == 0) cable.port_a = numbers.next(cable.a);
    if (cable.port_b == 0) cable.port_b = numbers.next(cable.b);
  }
  for (Vertex v = 0; v < graph.vertex_count(); ++v) box_ports.push_back(numbers.last(v));
  return {std::move(vertices), std::move(cables)};
}

}  // namespace

std::uint64_t opensm_order(std::uint64_t guid) {
  std::uint64_t key = 0;
  for (int byte = 0; byte < 8; ++byte) {
    key = (key << 8U) | (guid & 0xFFU);
    guid >>= 8U;
  }
  return key;
}

void assign_lids(InfinibandSubnet& subnet) {
  std::vector<bool> taken(std::size_t{kLastUnicastLid} + 1, false);
  std::vector<Vertex> without;
  for (Vertex v = 0; v < subnet.vertices.size(); ++v) {
    if (subnet.vertices[v].lid != 0) taken[subnet.vertices[v].lid] = true;
    if (subnet.vertices[v].lid == 0) without.push_back(v);
  }
  std::ranges::sort(without, {}, [&](Vertex v) {
    return std::pair{v != subnet.manager, opensm_order(subnet.vertices[v].port_guid)};
  });
  std::size_t lid = 1;
  for (const Vertex v : without) {
    while (taken[lid]) ++lid;
    assert(lid <= kLastUnicastLid);
    subnet.vertices[v].lid = static_cast<Lid>(lid++);
  }
}

InfinibandSubnet infiniband_subnet(const ClusterGraph& graph, const std::string& file) {
  check_adapters(graph, file);
  std::vector<int> box_ports;
  InfinibandSubnet subnet{
      .graph = numbered(graph, file, box_ports), .vertices = {}, .hosts = {}, .manager = 0};
  std::uint64_t adapter_guid = kFirstAdapterGuid, switch_guid = kFirstSwitchGuid;
  for (Vertex v = 0; v < graph.vertex_count(); ++v) {
    const bool adapter = graph.vertices()[v].is_port();
    const std::uint64_t guid = adapter ? adapter_guid : switch_guid++;
    if (adapter) adapter_guid += static_cast<std::uint64_t>(box_ports[v]) + 1;
    subnet.vertices.push_back(
        {.kind = adapter ? InfinibandKind::adapter : InfinibandKind::switch_box,
         .node_guid = guid,
         .port_guid = adapter ? guid + 1 : guid,
         .lid = 0,
         .box_ports = box_ports[v],
         .port = 0,
         .description = graph.vertex_name(v)});
  }
  for (const GraphCable& cable : subnet.graph.cables()) {
    for (const auto& [v, port] : {std::pair{cable.a, cable.port_a}, {cable.b, cable.port_b}}) {
      InfinibandVertex& at = subnet.vertices[v];
      if (at.kind != InfinibandKind::adapter) continue;
      at.port = port;
      at.port_guid = at.node_guid + static_cast<std::uint64_t>(port);
    }
  }
  for (int node = 0; node < graph.nodes(); ++node)
    subnet.hosts.push_back(fmt::format("node {}", node));
  assign_lids(subnet);
  return subnet;
}

int port_at_source(const ClusterGraph& graph, GraphLink link) {
  const std::uint32_t cable = graph.cable()[link];
  return graph.a_to_b(cable) == link ? graph.cables()[cable].port_a : graph.cables()[cable].port_b;
}

PortMap::PortMap(const InfinibandSubnet& subnet) {
  const ClusterGraph& graph = subnet.graph;
  first_.push_back(0);
  for (const InfinibandVertex& at : subnet.vertices) {
    first_.push_back(first_.back() + static_cast<std::uint32_t>(at.box_ports) + 1);
  }
  links_.assign(first_.back(), kNoLink);
  for (GraphLink link = 0; link < graph.link_count(); ++link) {
    const auto port = static_cast<std::uint32_t>(port_at_source(graph, link));
    assert(port >= 1 && port_at_source(graph, link) <= ports(graph.source()[link]));
    links_[first_[graph.source()[link]] + port] = link;
  }
}

}  // namespace lockstep
