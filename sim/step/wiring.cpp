#include "sim/step/wiring.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

constexpr LinkIndex kNoLink = std::numeric_limits<LinkIndex>::max();
/// A folded collective looks for its fullest link among this many replicas: beyond a pod nothing new
/// comes up.
constexpr int kScan = 1024;

}  // namespace

/// Links of a flow under construction, in order of first use.
struct Wiring::Edges {
  std::vector<FlowEdge> list;

  [[nodiscard]] FlowEdge* find(LinkIndex link) {
    for (FlowEdge& e : list) {
      if (e.link == link) return &e;
    }
    return nullptr;
  }
  /// Adds a use of the link; when `only_known`, only if the flow crosses it already.
  bool add(LinkIndex link, double coefficient, bool only_known) {
    if (FlowEdge* known = find(link)) {
      known->coefficient += coefficient;
      return true;
    }
    if (!only_known) list.push_back({link, coefficient});
    return false;
  }
};

Wiring::Wiring(const Scenario& scenario, const StepPlan& plan, const std::vector<ReplicaClass>& classes)
    : scenario_(scenario),
      plan_(plan),
      classes_(classes),
      placement_(plan.placement),
      fabric_(scenario.fabric, std::max(scenario.nodes, placement_.nodes()),
              nic_ports(scenario.node).count, nic_ports(scenario.node).bandwidth),
      symmetric_(scenario.fabric.routing == Routing::spray ||
                 scenario.fabric.kind == FabricKind::ideal),
      fabric_links_(fabric_.link_count(), kNoLink) {
  const std::size_t actors = classes.size() * plan.stages.size();
  ports_.assign(actors, {kNoLink, kNoLink});
  actors_.resize(actors);
  pairs_.assign(actors, kNoLink);
  wire_messages();
  wire_tensor();
  wire_data();
  wire_embedding();
}

double Wiring::data_unit(const CollectiveCost& cost) {
  if (cost.network_coefficient > 0) return cost.network_coefficient;
  return cost.nvlink_coefficient > 0 ? cost.nvlink_coefficient : 1.0;
}

LinkIndex Wiring::fabric_link(FabricLink link) {
  LinkIndex& index = fabric_links_[link];
  if (index == kNoLink) index = network_.add_link(fabric_.capacity(link));
  return index;
}

LinkIndex Wiring::port(std::size_t actor, int direction) {
  LinkIndex& index = ports_[actor][static_cast<std::size_t>(direction)];
  if (index == kNoLink) {
    const GpuSpec& gpu = scenario_.node.gpu;
    index = network_.add_link(gpu.nvlink_bandwidth > BytesPerSecond{} ? gpu.nvlink_bandwidth
                                                                       : gpu.pcie_bandwidth);
  }
  return index;
}

LinkIndex Wiring::rate_limit(double bytes_per_second) {
  return network_.add_link(BytesPerSecond{bytes_per_second});
}

void Wiring::hops(const RankCoordinates& from, const RankCoordinates& to) {
  hops_.clear();
  const int a = placement_.rank(from), b = placement_.rank(to);
  fabric_.route(placement_.node_of(a), placement_.nic_of(a), placement_.node_of(b),
                placement_.nic_of(b), static_cast<std::uint64_t>(a), hops_);
}

bool Wiring::add_lanes(int from_data, int from_stage, int to_data, int to_stage, bool only_known,
                       double coefficient, Edges& edges) {
  bool any = false;
  for (int t = 0; t < plan_.placement.tensor; ++t) {
    hops(lane(from_data, from_stage, t), lane(to_data, to_stage, t));
    const bool known = only_known || (symmetric_ && t > 0);
    for (const RouteHop& hop : hops_) {
      any |= edges.add(fabric_link(hop.link), hop.share * coefficient, known);
    }
  }
  return any;
}

void Wiring::wire_messages() {
  const int stages = plan_.placement.pipeline;
  if (stages == 1) return;
  const bool wraps = plan_.chunks > 1;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (int s = 0; s < stages; ++s) {
      const std::size_t actor = c * static_cast<std::size_t>(stages) + static_cast<std::size_t>(s);
      const int data = classes_[c].representative;
      const bool folded = classes_[c].copies > 1;
      if (s + 1 < stages || wraps) {
        wire_message(actor, data, s, (s + 1) % stages, Pass::forward, folded);
      }
      if (s > 0 || wraps) {
        wire_message(actor, data, s, (s + stages - 1) % stages, Pass::backward, folded);
      }
    }
  }
}

void Wiring::wire_message(std::size_t actor, int data, int stage, int next, Pass pass, bool folded) {
  const auto direction = static_cast<std::size_t>(pass);
  const int from = placement_.rank(lane(data, stage, 0));
  const int to = placement_.rank(lane(data, next, 0));
  const Reach reach = placement_.reach(from, to);
  const bool local = reach != Reach::fabric;
  const CollectiveCost& cost = local ? plan_.local_message_cost : plan_.message_cost;
  Seconds latency = cost.latency;
  Edges edges;
  const std::size_t first = actor - static_cast<std::size_t>(stage);
  const double pace = cost.payload_rate.base_units();
  if (scenario_.stack.communication.half_duplex_pipeline) {
    // Both directions between two stages share one pace.
    const int lower = pass == Pass::forward ? stage : next;
    LinkIndex& pair = pairs_[first + static_cast<std::size_t>(lower)];
    if (pair == kNoLink) pair = rate_limit(pace);
    edges.list.push_back({pair, 1.0});
  } else {
    edges.list.push_back({rate_limit(pace), 1.0});
  }
  if (local) {
    edges.add(port(actor, 0), 1.0, false);
    edges.add(port(first + static_cast<std::size_t>(next), 1), 1.0, false);
  } else {
    add_lanes(data, stage, data, next, false, 1.0, edges);
    latency += fabric_.switches_crossed(placement_.node_of(from), placement_.nic_of(from),
                                        placement_.node_of(to), placement_.nic_of(to)) *
               scenario_.fabric.switch_latency;
    if (folded && symmetric_) {
      // Copies beside the representative that cross the same links; they lie side by side.
      for (const int step : {1, -1}) {
        for (int j = data + step; j >= 0 && j < plan_.placement.data; j += step) {
          if (!add_lanes(j, stage, j, next, true, 1.0, edges)) break;
        }
      }
    }
    if (folded && !symmetric_) exact_ = false;
  }
  actors_[actor].message[direction] = network_.add_flow(edges.list);
  actors_[actor].message_latency[direction] = to_step_time(latency);
}

void Wiring::wire_tensor() {
  if (plan_.tensor_rate <= 0) return;
  const auto stages = static_cast<std::size_t>(plan_.placement.pipeline);
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    Edges edges;
    edges.list.push_back({rate_limit(plan_.tensor_rate), 1.0});
    for (const int direction : {0, 1}) {
      if (plan_.tensor_nvlink_share > 0) {
        edges.add(port(a, direction), plan_.tensor_nvlink_share, false);
      }
    }
    if (plan_.tensor_network_share > 0) {
      const int data = classes_[a / stages].representative;
      const int rank = placement_.rank(lane(data, static_cast<int>(a % stages), 0));
      const int node = placement_.node_of(rank), nic = placement_.nic_of(rank);
      const double lanes = std::max(1.0, static_cast<double>(plan_.placement.gpus_per_node) /
                                             plan_.placement.nic_ports);
      edges.add(fabric_link(fabric_.nic_up(node, nic)), lanes * plan_.tensor_network_share, false);
      edges.add(fabric_link(fabric_.nic_down(node, nic)), lanes * plan_.tensor_network_share, false);
    }
    actors_[a].tensor = network_.add_flow(edges.list);
  }
}

void Wiring::wire_data() {
  data_.resize(plan_.stages.size());
  if (plan_.placement.data == 1) return;
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    const auto stage = static_cast<int>(s);
    const GroupSpread spread =
        placement_.spread(placement_.group(ParallelAxis::data, lane(0, stage, 0)));
    const Edges ring = spread.domains > 1 ? ring_edges(stage, spread.per_domain_max) : Edges{};
    for (const DataChannel& channel : plan_.stages[s].channels) {
      data_[s].push_back(wire_data_channel(s, spread, ring, channel));
    }
  }
}

/// Links between the NVLink domains of a stage's replicas: each member sends to its like in the next
/// domain, one byte each.
Wiring::Edges Wiring::ring_edges(int stage, int per_domain) {
  Edges ring;
  for (const ReplicaClass& c : classes_) {
    Edges own;
    if (c.copies > 1) {
      add_folded_ring(stage, per_domain, c.representative, own);
      exact_ = exact_ && symmetric_;
    } else {
      const int next = (c.representative + per_domain) % plan_.placement.data;
      add_lanes(c.representative, stage, next, stage, false, 1.0, own);
    }
    ring.list.insert(ring.list.end(), own.list.begin(), own.list.end());
  }
  return ring;
}

void Wiring::add_folded_ring(int stage, int per_domain, int representative, Edges& ring) {
  const int replicas = plan_.placement.data;
  const auto wrap = [&](int j) { return (j % replicas + replicas) % replicas; };
  const auto add_member = [&](int j, bool only_known, double bytes) {
    add_lanes(wrap(j), stage, wrap(j + per_domain), stage, only_known, bytes, ring);
  };
  // What the representative sends and receives, and the longest way that any neighbour's bytes go:
  // it has the fullest links between switches.
  const int first = representative - per_domain;
  const int end = first + std::min(replicas, kScan);
  int farthest = representative, most = 0;
  for (int j = first; j < end; ++j) {
    const int a = placement_.rank(lane(wrap(j), stage, 0));
    const int b = placement_.rank(lane(wrap(j + per_domain), stage, 0));
    const int switches = fabric_.switches_crossed(placement_.node_of(a), placement_.nic_of(a),
                                                  placement_.node_of(b), placement_.nic_of(b));
    if (switches > most) farthest = j, most = switches;
  }
  for (const int j : {representative, first, farthest}) add_member(j, false, 0.0);
  for (int j = first; j < end; ++j) add_member(j, true, 1.0);
}

FlowIndex Wiring::wire_data_channel(std::size_t stage, const GroupSpread& spread, const Edges& ring,
                                    const DataChannel& channel) {
  const double unit = data_unit(channel.cost);
  Edges edges;
  edges.list.push_back({rate_limit(channel.cost.payload_rate.base_units() * unit), 1.0});
  const double over_nvlink = channel.cost.nvlink_coefficient / unit;
  if (spread.per_domain_max > 1 && over_nvlink > 0) {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      for (const int direction : {0, 1}) {
        edges.list.push_back({port(c * plan_.stages.size() + stage, direction), over_nvlink});
      }
    }
  }
  const double over_network = channel.cost.network_coefficient / unit;
  for (const FlowEdge& e : ring.list) {
    if (e.coefficient > 0 && over_network > 0) {
      edges.list.push_back({e.link, e.coefficient * over_network});
    }
  }
  return network_.add_flow(edges.list);
}

void Wiring::wire_embedding() {
  embedding_.assign(classes_.size(), kNoFlow);
  if (plan_.embedding_reduce <= Bytes{}) return;
  const int last = plan_.placement.pipeline - 1;
  const double unit = data_unit(plan_.embedding_cost);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    Edges edges;
    edges.list.push_back({rate_limit(plan_.embedding_cost.payload_rate.base_units() * unit), 1.0});
    const int data = classes_[c].representative;
    if (placement_.reach(placement_.rank(lane(data, 0, 0)), placement_.rank(lane(data, last, 0))) ==
        Reach::fabric) {
      add_lanes(data, 0, data, last, false, 1.0, edges);
      add_lanes(data, last, data, 0, false, 1.0, edges);
    }
    embedding_[c] = network_.add_flow(edges.list);
  }
}

}  // namespace lockstep
