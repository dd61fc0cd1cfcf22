#include "sim/packet/referee.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>

#include "sim/core/engine.hpp"
#include "sim/core/event_queue.hpp"
#include "sim/core/flow_network.hpp"

namespace lockstep {
namespace {

PacketResult run_credit(const PacketNetwork& network, BytesPerSecond /*line_rate*/) {
  return simulate(network, CreditControl{});
}
PacketResult run_pfc(const PacketNetwork& network, BytesPerSecond line_rate) {
  EthernetControl control = ethernet_for(line_rate);
  control.congestion_control = false;
  return simulate(network, control);
}
PacketResult run_dcqcn(const PacketNetwork& network, BytesPerSecond line_rate) {
  return simulate(network, ethernet_for(line_rate));
}

constexpr std::array kLayers{
    RefereeLayer{"credit", "InfiniBand: credits per virtual lane, virtual output queues.",
                 kInfinibandFraming, 1, run_credit},
    RefereeLayer{"pfc", "Ethernet with priority flow control alone.", kRoceFraming, 1, run_pfc},
    RefereeLayer{"dcqcn", "Ethernet with DCQCN, and priority flow control behind it.", kRoceFraming,
                 kDcqcnContendedUse, run_dcqcn},
};

/// A flow's share of each link that it uses: the part of its paths that cross it.
std::vector<FlowEdge> edges_of(const PacketFlow& flow) {
  std::map<LinkIndex, double> shares;
  for (const std::vector<LinkIndex>& path : flow.paths) {
    for (const LinkIndex link : path) shares[link] += 1.0 / static_cast<double>(flow.paths.size());
  }
  std::vector<FlowEdge> edges;
  for (const auto& [link, share] : shares) edges.push_back({link, share});
  return edges;
}

/// Which links their flows could fill more than once if nothing else held them back.
std::vector<bool> contended(const PacketNetwork& network,
                            std::span<const std::vector<FlowEdge>> edges) {
  std::vector<double> offered(network.links.size());
  for (const std::vector<FlowEdge>& flow : edges) {
    BytesPerSecond fastest = network.links[flow.front().link].rate / flow.front().coefficient;
    for (const FlowEdge& edge : flow) {
      fastest = std::min(fastest, network.links[edge.link].rate / edge.coefficient);
    }
    for (const FlowEdge& edge : flow) {
      offered[edge.link] += edge.coefficient * (fastest / network.links[edge.link].rate);
    }
  }
  constexpr double kRounding = 1e-6;
  std::vector<bool> over;
  for (const double times : offered) over.push_back(times > 1 + kRounding);
  return over;
}

/// What a message takes beyond the fluid's time: latencies, and one packet once more on every link
/// but the slowest. A short last packet waits behind a full one.
Seconds last_packet(const PacketNetwork& network, const PacketFlow& flow, const Framing& framing) {
  const std::uint64_t payload = std::min<std::uint64_t>(flow.bytes, framing.payload);
  const Bytes wire{static_cast<double>(framing.header + payload)};
  Seconds stored, slowest;
  for (const LinkIndex link : flow.paths.front()) {
    const Seconds time = wire / network.links[link].rate;
    stored += time;
    slowest = std::max(slowest, time);
  }
  return path_latency(network, flow) + stored - slowest;
}

/// The messages of a case at flow level: each is the flow of its number.
class FluidMessages final : public Process {
 public:
  FluidMessages(const PacketNetwork& network, FlowNetwork& fluid, const Framing& framing)
      : network_(network), fluid_(fluid), framing_(framing), ends_(network.flows.size()) {}

  void begin(StepTime /*now*/) override {
    for (FlowIndex flow = 0; flow < network_.flows.size(); ++flow) {
      starts_.push(network_.flows[flow].start, 0, flow);
    }
  }
  [[nodiscard]] StepTime next_event() const override {
    return starts_.empty() ? kNever : starts_.next_time();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) {
      ends_[flow] = to_seconds(now) + last_packet(network_, network_.flows[flow], framing_);
    }
    ended_ += flows.size();
  }
  void handle_events(StepTime now) override {
    while (!starts_.empty() && starts_.next_time() == now) {
      const FlowIndex flow = starts_.pop().subject;
      fluid_.start(flow, Bytes{static_cast<double>(network_.flows[flow].bytes)}, now);
    }
  }
  [[nodiscard]] bool done() const override { return ended_ == ends_.size(); }

  /// When the last byte of each arrives.
  [[nodiscard]] const std::vector<Seconds>& ends() const { return ends_; }

 private:
  const PacketNetwork& network_;
  FlowNetwork& fluid_;
  const Framing& framing_;
  EventQueue starts_;
  std::vector<Seconds> ends_;
  std::size_t ended_ = 0;
};

}  // namespace

std::span<const RefereeLayer> referee_layers() { return kLayers; }

double absolute_quantile(std::vector<double> values, double share) {
  assert(!values.empty() && share > 0 && share <= 1);
  for (double& value : values) value = std::abs(value);
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

PacketNetwork packet_network(const RefereeCase& of) {
  const Fabric fabric(of.fabric, of.nodes, of.nics, of.nic_bandwidth);
  PacketNetwork network = packet_network(fabric, of.cable_latency);
  std::vector<LinkIndex> dead;
  for (const RefereeFault& fault : of.faults) {
    if (fault.rate_share == 0) {
      dead.push_back(fault.link);
    } else {
      network.links[fault.link].rate *= fault.rate_share;
    }
  }
  for (std::size_t i = 0; i < of.messages.size(); ++i) {
    const RefereeMessage& m = of.messages[i];
    PacketFlow flow{{}, m.bytes, to_step_time(m.start), 0};
    if (of.spray) {
      flow.paths = all_paths(fabric, m.from, m.to, dead);
    } else {
      flow.paths.push_back(hashed_path(fabric, m.from, m.to, i, dead));
    }
    network.flows.push_back(std::move(flow));
  }
  return network;
}

std::vector<Seconds> flow_level_ends(const PacketNetwork& network, const Framing& framing,
                                     double contended_use) {
  std::vector<std::vector<FlowEdge>> edges;
  for (const PacketFlow& flow : network.flows) edges.push_back(edges_of(flow));
  const std::vector<bool> over = contended(network, edges);
  FlowNetwork fluid;
  for (std::size_t link = 0; link < network.links.size(); ++link) {
    fluid.add_link(network.links[link].rate * framing.efficiency() *
                   (over[link] ? contended_use : 1));
  }
  FluidMessages messages(network, fluid, framing);
  for (const std::vector<FlowEdge>& flow : edges) fluid.add_flow(flow);
  Engine engine(fluid);
  engine.add(messages);
  engine.run();
  return messages.ends();
}

RefereeRow run_referee(const RefereeCase& of, const RefereeLayer& layer) {
  const PacketNetwork network = packet_network(of);
  const std::vector<Seconds> ends = flow_level_ends(network, layer.framing, layer.contended_use);
  const PacketResult packets = layer.run(network, of.nic_bandwidth);
  assert(!packets.deadlock && "paths up and then down a tree close no circle of full buffers");
  RefereeRow row{&of, &layer, {}, packets.packet_hops};
  for (std::size_t i = 0; i < of.messages.size(); ++i) {
    row.messages.push_back({of.messages[i].start, ends[i], to_seconds(packets.flows[i].finish)});
  }
  return row;
}

Seconds RefereeRow::flow_level_end() const {
  return std::ranges::max_element(messages, {}, &RefereeTimes::flow_level)->flow_level;
}
Seconds RefereeRow::packet_level_end() const {
  return std::ranges::max_element(messages, {}, &RefereeTimes::packet_level)->packet_level;
}
double RefereeRow::median_error() const {
  std::vector<double> errors;
  for (const RefereeTimes& message : messages) errors.push_back(message.error());
  return median_absolute(std::move(errors));
}
std::size_t RefereeRow::worst() const {
  const auto worst = std::ranges::max_element(
      messages, {}, [](const RefereeTimes& message) { return std::abs(message.error()); });
  return static_cast<std::size_t>(worst - messages.begin());
}

}  // namespace lockstep
