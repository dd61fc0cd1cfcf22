#include "sim/referee/referee.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>

#include "sim/core/engine.hpp"
#include "sim/core/event_queue.hpp"
#include "sim/core/flow_network.hpp"
#include "sim/packet/dcqcn_port.hpp"

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
                 kInfinibandFraming, nullptr, run_credit},
    RefereeLayer{"pfc", "Ethernet with priority flow control alone.", kRoceFraming, nullptr,
                 run_pfc},
    RefereeLayer{"dcqcn", "Ethernet with DCQCN, and priority flow control behind it.", kRoceFraming,
                 vendor_tuning, run_dcqcn},
};

/// A transfer's share of each link that it uses: of a byte, the part that crosses it.
std::vector<FlowEdge> edges_of(const PacketNetwork& network, const RefereeTransfer& transfer) {
  std::map<LinkIndex, double> shares;
  for (std::size_t i = transfer.first; i < transfer.first + transfer.count; ++i) {
    const PacketFlow& flow = network.flows[i];
    const double part = static_cast<double>(flow.bytes) / static_cast<double>(transfer.bytes);
    for (const std::vector<LinkIndex>& path : flow.paths) {
      for (const LinkIndex link : path) {
        shares[link] += part / static_cast<double>(flow.paths.size());
      }
    }
  }
  std::vector<FlowEdge> edges;
  edges.reserve(shares.size());
  for (const auto& [link, share] : shares) edges.push_back({link, share});
  return edges;
}

/// What arrives at links while every source sends at line rate, as far as its own link lets all of
/// its messages: queues pass it on in proportion.
class LineRateArrivals {
 public:
  explicit LineRateArrivals(const PacketNetwork& network)
      : network_(network), total_(network.links.size()), passed_(network.links.size(), 1) {
    std::size_t hops = 0;
    for (const PacketFlow& flow : network.flows) hops = std::max(hops, flow.paths[0].size());
    // What a link passes on is right once all links before it are.
    for (std::size_t i = 0; i < hops; ++i) spread();
  }

  /// Messages that meet at the link, and what of each arrives.
  [[nodiscard]] std::vector<PortMessage> at(LinkIndex link, const Framing& framing) const {
    std::vector<PortMessage> out;
    for (const PacketFlow& flow : network_.flows) {
      PortMessage message{.bytes = {},
                          .most = {},
                          .line_rate = line(flow),
                          .share = 0,
                          .start = to_seconds(flow.start)};
      for_each_hop(flow, [&](LinkIndex hop, double rate) {
        if (hop != link) return;
        message.most += BytesPerSecond{rate};
        message.share += 1 / static_cast<double>(flow.paths.size());
      });
      if (message.share <= 0) continue;
      message.bytes = Bytes{static_cast<double>(flow.bytes) * message.share / framing.efficiency()};
      out.push_back(message);
    }
    return out;
  }
  /// Whether a queue grows. A source's own link has none: its messages take turns.
  [[nodiscard]] bool queues(LinkIndex link) const {
    constexpr double kRounding = 1e-6;
    return total_[link] > (1 + kRounding) * network_.links[link].rate.base_units();
  }
  [[nodiscard]] std::vector<bool> own_links() const {
    std::vector<bool> own(network_.links.size());
    for (const PacketFlow& flow : network_.flows) own[flow.paths.front().front()] = true;
    return own;
  }

 private:
  [[nodiscard]] BytesPerSecond line(const PacketFlow& flow) const {
    return network_.links[flow.paths.front().front()].rate;
  }
  template <class Use>
  void for_each_hop(const PacketFlow& flow, Use use) const {
    for (const std::vector<LinkIndex>& path : flow.paths) {
      double rate = line(flow).base_units() / static_cast<double>(flow.paths.size());
      for (const LinkIndex link : path) {
        use(link, rate);
        rate *= passed_[link];
      }
    }
  }
  void spread() {
    std::ranges::fill(total_, 0);
    for (const PacketFlow& flow : network_.flows) {
      for_each_hop(flow, [&](LinkIndex link, double rate) { total_[link] += rate; });
    }
    for (LinkIndex link = 0; link < total_.size(); ++link) {
      const double rate = network_.links[link].rate.base_units();
      passed_[link] = total_[link] > rate ? rate / total_[link] : 1;
    }
  }

  const PacketNetwork& network_;
  std::vector<double> total_;   ///< by link, bytes per second
  std::vector<double> passed_;  ///< by link: the part of what arrives
};

/// By link: the part of its rate that congestion control leaves.
std::vector<double> uses_of(const PacketNetwork& network, const Framing& framing,
                            const DcqcnTuning& tuning) {
  const LineRateArrivals arrivals(network);
  const std::vector<bool> own = arrivals.own_links();
  std::vector<double> uses(network.links.size(), 1);
  for (LinkIndex link = 0; link < uses.size(); ++link) {
    if (own[link] || !arrivals.queues(link)) continue;
    Seconds way;
    for (const PacketFlow& flow : network.flows) way = std::max(way, path_latency(network, flow));
    const DcqcnPort port{.capacity = network.links[link].rate,
                         .packet = framing.wire(),
                         .feedback = 2 * way,
                         .number = link};
    uses[link] = dcqcn_use(port, arrivals.at(link, framing), tuning);
  }
  return uses;
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

/// The transfers of a case at flow level: each is the flow of its number.
class FluidTransfers final : public Process {
 public:
  FluidTransfers(const PacketNetwork& network, std::span<const RefereeTransfer> transfers,
                 FlowNetwork& fluid, const Framing& framing)
      : network_(network),
        transfers_(transfers),
        fluid_(fluid),
        framing_(framing),
        ends_(transfers.size()) {}

  void begin(StepTime /*now*/) override {
    for (FlowIndex flow = 0; flow < transfers_.size(); ++flow) {
      starts_.push(network_.flows[transfers_[flow].first].start, 0, flow);
    }
  }
  [[nodiscard]] StepTime next_event() const override {
    return starts_.empty() ? kNever : starts_.next_time();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) {
      const RefereeTransfer& of = transfers_[flow];
      Seconds last;
      for (const PacketFlow& f : std::span(network_.flows).subspan(of.first, of.count)) {
        last = std::max(last, last_packet(network_, f, framing_));
      }
      ends_[flow] = to_seconds(now) + last;
    }
    ended_ += flows.size();
  }
  void handle_events(StepTime now) override {
    while (!starts_.empty() && starts_.next_time() == now) {
      const FlowIndex flow = starts_.pop().subject;
      fluid_.start(flow, Bytes{static_cast<double>(transfers_[flow].bytes)}, now);
    }
  }
  [[nodiscard]] bool done() const override { return ended_ == ends_.size(); }

  /// When the last byte of each arrives.
  [[nodiscard]] const std::vector<Seconds>& ends() const { return ends_; }

 private:
  const PacketNetwork& network_;
  std::span<const RefereeTransfer> transfers_;
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
  for (const RefereeMessage& m : of.messages) {
    PacketFlow flow{.paths = {},
                    .bytes = m.bytes,
                    .start = to_step_time(m.start),
                    .lane = 0,
                    .after = m.after,
                    .lead = m.lead};
    if (of.spray) {
      flow.paths = all_paths(fabric, m.from, m.to, dead);
    } else {
      flow.paths.push_back(hashed_path(fabric, m.from, m.to, m.queue_pair, dead));
    }
    network.flows.push_back(std::move(flow));
  }
  return network;
}

std::vector<Seconds> flow_level_ends(const PacketNetwork& network,
                                     std::span<const RefereeTransfer> transfers,
                                     const Framing& framing, const DcqcnTuning* tuning) {
  const std::vector<double> uses = tuning != nullptr ? uses_of(network, framing, *tuning)
                                                     : std::vector<double>(network.links.size(), 1);
  FlowNetwork fluid;
  for (std::size_t link = 0; link < network.links.size(); ++link) {
    fluid.add_link(network.links[link].rate * framing.efficiency() * uses[link]);
  }
  FluidTransfers flows(network, transfers, fluid, framing);
  for (const RefereeTransfer& transfer : transfers) fluid.add_flow(edges_of(network, transfer));
  Engine engine(fluid);
  engine.add(flows);
  engine.run();
  return flows.ends();
}

RefereeRow run_referee(const RefereeCase& of, const RefereeLayer& layer) {
  const PacketNetwork network = packet_network(of);
  std::optional<DcqcnTuning> tuning;
  if (layer.tuning != nullptr) tuning = layer.tuning(of.nic_bandwidth);
  const std::vector<Seconds> ends =
      flow_level_ends(network, of.transfers, layer.framing, tuning ? &*tuning : nullptr);
  const PacketResult packets = layer.run(network, of.nic_bandwidth);
  assert(!packets.deadlock && "paths up and then down a tree close no circle of full buffers");
  RefereeRow row{&of, &layer, {}, packets.packet_hops};
  for (std::size_t i = 0; i < of.transfers.size(); ++i) {
    const RefereeTransfer& transfer = of.transfers[i];
    const auto flows = std::span(packets.flows).subspan(transfer.first, transfer.count);
    const StepTime last = std::ranges::max_element(flows, {}, &PacketFlowResult::finish)->finish;
    row.transfers.push_back({of.messages[transfer.first].start, ends[i], to_seconds(last)});
  }
  return row;
}

Seconds RefereeRow::flow_level_end() const {
  return std::ranges::max_element(transfers, {}, &RefereeTimes::flow_level)->flow_level;
}
Seconds RefereeRow::packet_level_end() const {
  return std::ranges::max_element(transfers, {}, &RefereeTimes::packet_level)->packet_level;
}
double RefereeRow::median_error() const {
  std::vector<double> errors;
  errors.reserve(transfers.size());
  for (const RefereeTimes& transfer : transfers) errors.push_back(transfer.error());
  return median_absolute(std::move(errors));
}
std::size_t RefereeRow::worst() const {
  const auto worst = std::ranges::max_element(
      transfers, {}, [](const RefereeTimes& transfer) { return std::abs(transfer.error()); });
  return static_cast<std::size_t>(worst - transfers.begin());
}

}  // namespace lockstep
