#include "sim/run/shared_step.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "sim/core/engine.hpp"
#include "sim/fabric/dcqcn_start.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/sample.hpp"
#include "sim/step/site.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

/// NIC ports that meet the step on the same links.
struct PortGroup {
  double ports = 0;
  std::map<LinkIndex, double> streams;  ///< of all its ports, on each link
};

/// NIC ports below each leaf and below each pod of a tree.
struct PortsBelow {
  std::vector<double> leaf, pod;
};
template <class Counts>
PortsBelow ports_below(const Fabric& fabric, int nodes, Counts counts) {
  PortsBelow below;
  below.leaf.resize(static_cast<std::size_t>(fabric.counts().leaves));
  below.pod.resize(static_cast<std::size_t>(fabric.counts().pods));
  for (int node = 0; node < nodes; ++node) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      if (!counts(node, nic)) continue;
      const int leaf = fabric.leaf_of(node, nic);
      ++below.leaf[static_cast<std::size_t>(leaf)];
      ++below.pod[static_cast<std::size_t>(fabric.pod_of(leaf))];
    }
  }
  return below;
}

/// Where streams meet the step.
class StreamPaths {
 public:
  StreamPaths(const Scenario& scenario, const Fabric& fabric, const Wiring& wiring,
              const LinkClasses& classes)
      : fabric_(fabric), wiring_(wiring), classes_(classes), nodes_(scenario.nodes) {
    count_ports();
  }

  [[nodiscard]] std::vector<PortGroup> groups(bool to_top) const {
    std::map<std::vector<LinkIndex>, PortGroup> by_links;
    for (int node = 0; node < nodes_; ++node) {
      for (int nic = 0; nic < fabric_.nics_per_node(); ++nic) {
        if (!known(node, nic)) continue;
        std::map<LinkIndex, double> streams;
        add_nic(node, nic, streams);
        if (to_top && !fabric_.is_drawn()) add_uplinks(node, nic, streams);
        std::vector<LinkIndex> links;
        links.reserve(streams.size());
        for (const auto& [link, count] : streams) links.push_back(link);
        PortGroup& group = by_links[links];
        ++group.ports;
        for (const auto& [link, count] : streams) group.streams[link] += count;
      }
    }
    std::vector<PortGroup> out;
    out.reserve(by_links.size());
    for (auto& [links, group] : by_links) out.push_back(std::move(group));
    return out;
  }
  [[nodiscard]] int nodes() const { return nodes_; }
  [[nodiscard]] double ports() const {
    return static_cast<double>(nodes_) * fabric_.nics_per_node();
  }

 private:
  [[nodiscard]] bool known(int node, int nic) const {
    std::vector<RouteHop> hops;
    fabric_.nic_ups(node, nic, hops);
    fabric_.nic_downs(node, nic, hops);
    return std::ranges::any_of(hops, [&](const RouteHop& hop) {
      return wiring_.known_link(hop.link) != FabricLinks::kNoLink;
    });
  }
  void count_ports() {
    if (fabric_.is_drawn()) return;
    all_ = ports_below(fabric_, nodes_, [](int, int) { return true; });
    known_ = ports_below(fabric_, nodes_, [&](int node, int nic) { return known(node, nic); });
  }

  /// A link stands for its class: each of them has an equal part.
  void add(FabricLink link, double streams, std::map<LinkIndex, double>& out) const {
    const LinkIndex index = wiring_.known_link(link);
    if (index == FabricLinks::kNoLink) return;
    out[index] += classes_.of.empty() ? streams : streams / classes_.links[classes_.of[link]];
  }
  void add_nic(int node, int nic, std::map<LinkIndex, double>& out) const {
    std::vector<RouteHop> hops;
    fabric_.nic_ups(node, nic, hops);
    fabric_.nic_downs(node, nic, hops);
    for (const RouteHop& hop : hops) add(hop.link, hop.share, out);
  }
  /// Known ports also stand for those below the same switch that are not.
  void add_uplinks(int node, int nic, std::map<LinkIndex, double>& out) const {
    const FabricCounts& counts = fabric_.counts();
    const bool bundles = fabric_.spec().routing != Routing::ecmp;
    const int leaf = fabric_.leaf_of(node, nic);
    const int leaf_links = bundles ? std::min(1, counts.leaf_uplinks) : counts.leaf_uplinks;
    const auto l = static_cast<std::size_t>(leaf);
    for (int up = 0; up < leaf_links; ++up) {
      const double streams = all_.leaf[l] / known_.leaf[l] / leaf_links;
      add(fabric_.leaf_up(leaf, up), streams, out);
      add(fabric_.leaf_down(leaf, up), streams, out);
    }
    const int pod = fabric_.pod_of(leaf);
    const auto p = static_cast<std::size_t>(pod);
    const int spine_links = counts.spines * counts.spine_uplinks;
    for (int i = 0; i < (bundles ? std::min(1, spine_links) : spine_links); ++i) {
      const double streams = all_.pod[p] / known_.pod[p] / (bundles ? 1 : spine_links);
      const int spine = i / counts.spine_uplinks, up = i % counts.spine_uplinks;
      add(fabric_.spine_up(pod, spine, up), streams, out);
      add(fabric_.spine_down(pod, spine, up), streams, out);
    }
  }

  const Fabric& fabric_;
  const Wiring& wiring_;
  const LinkClasses& classes_;
  int nodes_;
  PortsBelow all_, known_;
};

/// What streams have moved.
class StreamWatch : public FlowObserver {
 public:
  void started(FlowIndex, Bytes, StepTime) override {}
  void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
             LinkIndex /*held_by*/) override {
    if (flow < first_) return;
    bytes_.resize(std::max<std::size_t>(bytes_.size(), flow - first_ + 1));
    bytes_[flow - first_] += rate * to_seconds(to - from);
  }
  void ended(FlowIndex, StepTime) override {}

  explicit StreamWatch(std::size_t first) : first_(first) {}
  [[nodiscard]] Bytes of(FlowIndex flow) const {
    return flow - first_ < bytes_.size() ? bytes_[flow - first_] : Bytes{};
  }

 private:
  std::size_t first_;
  std::vector<Bytes> bytes_;  ///< of one port
};

/// A stream's flows over groups of ports.
struct StreamFlows {
  std::vector<std::pair<FlowIndex, double>> flows;  ///< with their ports
  double ports = 0;                                 ///< of all of them
};

StreamFlows add_stream(const NodeStream& stream, const StreamPaths& paths, const FabricLinks& links,
                       FlowNetwork& network) {
  const Fabric& fabric = links.fabric();
  const std::vector<PortGroup> groups = paths.groups(stream.to_top);
  StreamFlows out;
  for (const PortGroup& group : groups) out.ports += group.ports;
  if (groups.empty()) return out;
  // Ports that are not known do as the others do.
  const LinkIndex servers = network.add_link(out.ports / paths.ports() * stream.all);
  BytesPerSecond of_port = stream.node / fabric.nics_per_node();
  if (stream.to_top) {
    const BytesPerSecond line = port_rate_to_top(fabric, paths.nodes());
    of_port = std::min(of_port, payload_bandwidth(line, links.efficiency()));
  }
  for (const PortGroup& group : groups) {
    std::vector<FlowEdge> edges{{servers, group.ports}, {network.add_link(of_port), 1.0}};
    for (const auto& [link, count] : group.streams) edges.push_back({link, count});
    out.flows.emplace_back(network.add_flow(edges), group.ports);
  }
  return out;
}

/// Streams that flow from the begin of the step to its end.
class EndlessStreams final : public Process {
 public:
  EndlessStreams(const std::vector<StreamFlows>& streams, FlowNetwork& network)
      : streams_(streams), network_(network) {}

  void begin(StepTime now) override {
    constexpr Bytes kEndless{1e30};
    for_each_flow([&](FlowIndex flow) { network_.start(flow, kEndless, now); });
  }
  [[nodiscard]] StepTime next_event() const override { return kNever; }
  /// A flow's end is never more than 196 days off, however much it moves.
  void flows_ended(std::span<const FlowIndex> /*flows*/, StepTime /*now*/) override {
    throw ClockOverflow();
  }
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override { return true; }

  /// Books what they have moved by `now`.
  void stop(StepTime now) {
    for_each_flow([&](FlowIndex flow) { network_.hold(flow, now); });
  }

 private:
  template <class Use>
  void for_each_flow(Use use) const {
    for (const StreamFlows& stream : streams_) {
      for (const auto& [flow, ports] : stream.flows) use(flow);
    }
  }

  const std::vector<StreamFlows>& streams_;
  FlowNetwork& network_;
};

}  // namespace

BytesPerSecond port_rate_to_top(const Fabric& fabric, int nodes) {
  BytesPerSecond rate = fabric.nic_bandwidth();
  if (fabric.is_drawn()) return rate;
  const PortsBelow below = ports_below(fabric, nodes, [](int, int) { return true; });
  const FabricCounts& counts = fabric.counts();
  const auto limit = [&](double links, BytesPerSecond capacity, const std::vector<double>& ports) {
    if (links > 0) rate = std::min(rate, links / *std::ranges::max_element(ports) * capacity);
  };
  limit(counts.leaf_uplinks, counts.leaf_link_capacity, below.leaf);
  limit(static_cast<double>(counts.spines) * counts.spine_uplinks, counts.spine_link_capacity,
        below.pod);
  return rate;
}

namespace {

/// One replay of some replicas beside streams; `crowd` as Wiring takes it.
SharedStep replay_beside(const Scenario& scenario, std::span<const NodeStream> streams,
                         DataRoutes& data_routes, const ReplicaClasses& folding,
                         std::vector<double> crowd) {
  const StepPlan& plan = data_routes.plan();
  const Fabric& fabric = data_routes.fabric();
  FlowNetwork network;
  FabricLinks links{fabric, network, scenario.transport.efficiency, nic_shares(scenario, fabric)};
  const Site site{.links = &links, .nodes = {}, .data_routes = &data_routes};
  const Wiring wiring{scenario, plan, folding.classes, site, folding.links, std::move(crowd)};
  const StreamPaths paths(scenario, fabric, wiring, folding.links);
  StreamWatch watch(network.flows());
  network.observe(&watch);
  RunningStep step{plan, folding.classes, wiring, Recording::none};
  Engine engine(network);
  engine.add(step);
  std::vector<StreamFlows> flows;
  for (const NodeStream& stream : streams) {
    assert(stream.all > BytesPerSecond{} && stream.node > BytesPerSecond{});
    flows.push_back(add_stream(stream, paths, links, network));
  }
  EndlessStreams endless(flows, network);
  engine.add(endless);
  const std::unique_ptr<DcqcnStart> start = wiring.dcqcn_start();
  if (start) engine.add_change(*start);
  engine.run();
  const StepTime end = step.finish().end;
  endless.stop(end);
  const Seconds takes = to_seconds(end);

  SharedStep out{.step_s = takes.base_units(), .rates = {}};
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const BytesPerSecond alone = std::min(streams[s].all, scenario.nodes * streams[s].node);
    Bytes moved;
    for (const auto& [flow, ports] : flows[s].flows) moved = moved + ports * watch.of(flow);
    out.rates.push_back(flows[s].ports > 0 ? paths.ports() / flows[s].ports * moved / takes
                                           : alone);
  }
  return out;
}

/// Seconds by which slow ramps of power make a step longer, beside streams as without.
double late_by_ramps(const Scenario& scenario) {
  if (!scenario.power || scenario.power->smoothing.ramp_w_per_s <= 0) return 0;
  const StepReport step = simulate_step(scenario);
  return step.ramps ? step.step_s - step.ramps->asked_s : 0;
}

}  // namespace

SharedStep shared_step(const Scenario& scenario, std::span<const NodeStream> streams,
                       double budget) {
  const StepPlan plan = plan_step(scenario);
  const Fabric fabric = own_fabric(scenario, plan);
  DataRoutes data_routes{plan, fabric};
  const ReplayedReplicas chosen = replicas_for_replay(scenario, data_routes, budget);
  const auto with_others = [&](double share) {
    return replay_beside(scenario, streams, data_routes, chosen.replicas,
                         chosen.sample ? chosen.sample->crowded(share) : std::vector<double>{});
  };
  constexpr double kHalf = 0.5;
  SharedStep out = with_others(kHalf);
  const double late = late_by_ramps(scenario);
  out.step_s += late;
  if (!chosen.sample) return out;
  const double silent = with_others(0).step_s + late, always = with_others(1).step_s + late;
  out.band = {.low_s = std::min(out.step_s, std::min(silent, always) * (1 - kBandMargin)),
              .high_s = std::max(out.step_s, std::max(silent, always) * (1 + kBandMargin))};
  return out;
}

}  // namespace lockstep
