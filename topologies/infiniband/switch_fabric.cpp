#include "topologies/infiniband/switch_fabric.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {

SwitchFabric::SwitchFabric(const InfinibandSubnet& subnet)
    : subnet_(subnet), index_(subnet.vertices.size(), kNoSwitch) {
  for (Vertex v = 0; v < subnet.vertices.size(); ++v) {
    if (subnet.vertices[v].kind == InfinibandKind::switch_box) vertices_.push_back(v);
  }
  std::ranges::sort(vertices_, {},
                    [&](Vertex v) { return opensm_order(subnet.vertices[v].node_guid); });
  for (SwitchIndex s = 0; s < switches(); ++s) index_[vertices_[s]] = s;
  const ClusterGraph& graph = subnet.graph;
  const PortMap map(subnet);
  for (const Vertex v : vertices_) {
    auto& ports = ports_.emplace_back(static_cast<std::size_t>(map.ports(v)) + 1);
    for (int port = 1; port <= map.ports(v); ++port) {
      const GraphLink link = map.link(v, port);
      if (link == PortMap::kNoLink) continue;
      const Vertex far = graph.target()[link];
      ports[static_cast<std::size_t>(port)] = {
          .far_switch = index_[far],
          .far_port = static_cast<std::uint8_t>(port_at_source(graph, graph.reverse(link))),
          .end_port = far,
          .cabled = true};
    }
  }
}

std::vector<std::uint32_t> SwitchFabric::distances(SwitchIndex to) const {
  std::vector<std::uint32_t> out(switches(), kFar);
  std::vector<SwitchIndex> queue{to};
  out[to] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const SwitchPort& port : ports_[queue[next]]) {
      if (!port.leads_to_switch() || out[port.far_switch] != kFar) continue;
      out[port.far_switch] = out[queue[next]] + 1;
      queue.push_back(port.far_switch);
    }
  }
  return out;
}

LidColumns::LidColumns(const SwitchFabric& fabric) : fabric_(fabric) {
  Lid last = 0;
  for (const InfinibandVertex& at : fabric.subnet().vertices) last = std::max(last, at.lid);
  lids_ = std::size_t{last} + 1;
  ports_.assign(lids_ * fabric.switches(), kNoPath);
}

LidTables LidColumns::tables() const {
  // Tile by tile: one side of the transposition would miss the cache at every step.
  constexpr std::size_t kTile = 64;
  LidTables out = empty_tables(fabric_.subnet());
  for (std::size_t tile = 0; tile < lids_; tile += kTile) {
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      auto& row = out.out_port[fabric_.vertex(s)];
      for (std::size_t lid = tile; lid < std::min(tile + kTile, lids_); ++lid) {
        row[lid] = ports_[lid * fabric_.switches() + s];
      }
    }
  }
  return out;
}

namespace {

/// Destinations behind one switch: its end ports by port number.
std::vector<Vertex> end_ports(const SwitchFabric& fabric, SwitchIndex s) {
  std::vector<Vertex> out;
  for (const SwitchPort& port : fabric.ports(s)) {
    if (port.leads_to_end_port()) out.push_back(port.end_port);
  }
  return out;
}

class Balancer {
 public:
  explicit Balancer(const SwitchFabric& fabric)
      : fabric_(fabric), choices_(fabric.switches()), columns_(fabric) {
    for (SwitchIndex s = 0; s < fabric.switches(); ++s) paths_.emplace_back(fabric.ports(s).size());
  }

  LidTables run(const ChoosePorts& choose) {
    std::vector<SwitchIndex> order(fabric_.switches());
    for (SwitchIndex s = 0; s < order.size(); ++s) order[s] = s;
    std::vector<std::vector<Vertex>> ends;
    ends.reserve(order.size());
    for (const SwitchIndex s : order) ends.push_back(end_ports(fabric_, s));
    std::ranges::stable_sort(order, std::greater{}, [&](SwitchIndex s) { return ends[s].size(); });
    for (const SwitchIndex s : order) {
      if (ends[s].empty()) continue;
      choose(s, choices_);
      for (const Vertex end : ends[s]) route(s, fabric_.subnet().vertices[end].lid, true);
      own_ports(s);
    }
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      choose(s, choices_);
      route(s, fabric_.lid(s), false);
    }
    return columns_.tables();
  }

 private:
  /// Entries for a LID at or behind switch `to`, at all other switches.
  void route(SwitchIndex to, Lid lid, bool counts) {
    for (SwitchIndex s = 0; s < fabric_.switches(); ++s) {
      std::uint8_t best = 0;  // port 0 is the switch itself
      if (s != to) {
        for (const std::uint8_t port : choices_[s]) {
          if (best == 0 || paths_[s][port] < paths_[s][best]) best = port;
        }
        if (best == 0) continue;
        if (counts) ++paths_[s][best];
      }
      columns_.at(lid, s) = best;
    }
  }

  void own_ports(SwitchIndex s) {
    const auto& ports = fabric_.ports(s);
    for (std::size_t port = 1; port < ports.size(); ++port) {
      if (!ports[port].leads_to_end_port()) continue;
      const Lid lid = fabric_.subnet().vertices[ports[port].end_port].lid;
      columns_.at(lid, s) = static_cast<std::uint8_t>(port);
    }
  }

  const SwitchFabric& fabric_;
  PortChoices choices_;
  LidColumns columns_;
  std::vector<std::vector<std::uint32_t>> paths_;  ///< end ports routed, by switch and port
};

}  // namespace

LidTables balanced_tables(const SwitchFabric& fabric, const ChoosePorts& choose) {
  return Balancer(fabric).run(choose);
}

}  // namespace lockstep
