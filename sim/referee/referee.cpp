#include "sim/referee/referee.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>
#include <set>

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

std::span<const PacketFlow> flows_of(const PacketNetwork& network,
                                     const RefereeTransfer& transfer) {
  return std::span(network.flows).subspan(transfer.first, transfer.count);
}

/// What a NIC that sends for the transfer sends on average: its progress, as the flow level counts
/// that of collectives (GroupUses), so that jobs which meet share a link by their NICs.
double bytes_per_nic(const PacketNetwork& network, const RefereeTransfer& transfer) {
  double bytes = 0;
  std::set<LinkIndex> nics;
  for (const PacketFlow& flow : flows_of(network, transfer)) {
    bytes += static_cast<double>(flow.bytes);
    nics.insert(flow.paths.front().front());
  }
  return bytes / static_cast<double>(nics.size());
}

/// A transfer's share of each link that it uses: of a byte of its progress, what crosses it.
std::vector<FlowEdge> edges_of(const PacketNetwork& network, const RefereeTransfer& transfer) {
  const double progress = bytes_per_nic(network, transfer);
  std::map<LinkIndex, double> shares;
  for (const PacketFlow& flow : flows_of(network, transfer)) {
    const double part = static_cast<double>(flow.bytes) / progress;
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

  /// Messages that meet at the link, and what of each arrives. `senders`: of these transfers, each
  /// of which has its flows in the network one after another, those that send any.
  [[nodiscard]] std::vector<PortMessage> at(LinkIndex link, const Framing& framing,
                                            std::span<const std::size_t> transfer_of,
                                            std::vector<std::size_t>& senders) const {
    std::vector<PortMessage> out;
    senders.clear();
    for (std::size_t f = 0; f < network_.flows.size(); ++f) {
      const PacketFlow& flow = network_.flows[f];
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
      if (senders.empty() || senders.back() != transfer_of[f]) senders.push_back(transfer_of[f]);
      message.sender = static_cast<std::uint32_t>(senders.size() - 1);
      message.bytes = Bytes{static_cast<double>(flow.bytes) * message.share / framing.efficiency()};
      out.push_back(message);
    }
    return out;
  }
  /// Whether a queue grows. A source's own link has none: its messages take turns.
  [[nodiscard]] bool queues(LinkIndex link) const {
    constexpr double kRounding = 1e-6;
    return excess(link) > 1 + kRounding;
  }
  /// What arrives for what it can send.
  [[nodiscard]] double excess(LinkIndex link) const {
    return total_[link] / network_.links[link].rate.base_units();
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

/// What congestion control leaves: of each link the part of its rate, and to each transfer its
/// weight.
struct Controlled {
  std::vector<double> uses, weights;
};

/// Every later round begins as the first one does, so that the first ones say what it loses.
class FirstRounds {
 public:
  FirstRounds(const PacketNetwork& network, std::span<const RefereeTransfer> transfers,
              const Framing& framing, const DcqcnTuning& tuning)
      : whole_(network),
        network_(network),
        transfers_(transfers),
        framing_(framing),
        tuning_(tuning) {
    network_.flows.clear();
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      if (transfers[t].after != RefereeTransfer::kNone) continue;
      const auto flows = flows_of(network, transfers[t]);
      network_.flows.insert(network_.flows.end(), flows.begin(), flows.end());
      transfer_of_.resize(network_.flows.size(), t);
    }
    for (const PacketFlow& flow : network_.flows)
      way_ = std::max(way_, path_latency(network, flow));
  }

  /// Of several links at which queues grow, the one with the most arriving for what it sends says
  /// a transfer's weight.
  [[nodiscard]] Controlled controlled() const {
    const LineRateArrivals arrivals(network_);
    const std::vector<bool> own = arrivals.own_links();
    Controlled out{.uses = std::vector<double>(network_.links.size(), 1),
                   .weights = std::vector<double>(transfers_.size(), 1)};
    std::vector<double> excess(transfers_.size());
    std::vector<std::size_t> senders;
    for (LinkIndex link = 0; link < out.uses.size(); ++link) {
      if (own[link] || !arrivals.queues(link)) continue;
      const DcqcnPort port{.capacity = network_.links[link].rate,
                           .packet = framing_.wire(),
                           .feedback = 2 * way_,
                           .number = link};
      const std::vector<PortMessage> messages = arrivals.at(link, framing_, transfer_of_, senders);
      const DcqcnUse use = dcqcn_use(port, messages, tuning_);
      out.uses[link] = use.use;
      if (use.passed.empty()) continue;
      const std::vector<double> weights = weights_at(messages, senders, use.passed);
      for (std::size_t s = 0; s < senders.size(); ++s) {
        if (arrivals.excess(link) <= excess[senders[s]]) continue;
        excess[senders[s]] = arrivals.excess(link);
        out.weights[senders[s]] = weights[s];
      }
    }
    for (std::size_t t = 0; t < transfers_.size(); ++t) {
      const std::size_t before = transfers_[t].after;
      if (before != RefereeTransfer::kNone) out.weights[t] = out.weights[before];
    }
    return out;
  }

 private:
  [[nodiscard]] std::vector<double> weights_at(std::span<const PortMessage> messages,
                                               std::span<const std::size_t> senders,
                                               std::span<const double> passed) const {
    std::vector<double> loads(senders.size());
    for (const PortMessage& message : messages) {
      loads[message.sender] += message.bytes.base_units();
    }
    for (std::size_t s = 0; s < senders.size(); ++s) {
      loads[s] /= bytes_per_nic(whole_, transfers_[senders[s]]);
    }
    return dcqcn_weights(passed, loads);
  }

  const PacketNetwork& whole_;
  PacketNetwork network_;  ///< with these flows only
  std::span<const RefereeTransfer> transfers_;
  const Framing& framing_;
  const DcqcnTuning& tuning_;
  std::vector<std::size_t> transfer_of_;  ///< by flow
  Seconds way_;
};

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
      const RefereeTransfer& of = transfers_[flow];
      if (of.after == RefereeTransfer::kNone) {
        starts_.push(network_.flows[of.first].start, 0, flow);
      } else {
        next_[of.after] = flow;
      }
    }
  }
  [[nodiscard]] StepTime next_event() const override {
    return starts_.empty() ? kNever : starts_.next_time();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) {
      const RefereeTransfer& of = transfers_[flow];
      Seconds last;
      for (const PacketFlow& f : flows_of(network_, of)) {
        last = std::max(last, last_packet(network_, f, framing_));
      }
      ends_[flow] = to_seconds(now) + last;
      if (const auto next = next_.find(flow); next != next_.end()) {
        starts_.push(to_step_time(ends_[flow] + transfers_[next->second].gap), 0, next->second);
      }
    }
    ended_ += flows.size();
  }
  void handle_events(StepTime now) override {
    while (!starts_.empty() && starts_.next_time() == now) {
      const FlowIndex flow = starts_.pop().subject;
      fluid_.start(flow, Bytes{bytes_per_nic(network_, transfers_[flow])}, now);
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
  std::map<std::size_t, FlowIndex> next_;  ///< the round that follows a transfer
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
  for (const RefereeTransfer& transfer : of.transfers) {
    if (transfer.after == RefereeTransfer::kNone) continue;
    const RefereeTransfer& before = of.transfers[transfer.after];
    network.rounds.push_back({.first = static_cast<std::uint32_t>(transfer.first),
                              .count = static_cast<std::uint32_t>(transfer.count),
                              .after_first = static_cast<std::uint32_t>(before.first),
                              .after_count = static_cast<std::uint32_t>(before.count),
                              .gap = transfer.gap});
  }
  return network;
}

std::vector<Seconds> flow_level_ends(const PacketNetwork& network,
                                     std::span<const RefereeTransfer> transfers,
                                     const Framing& framing, const DcqcnTuning* tuning) {
  Controlled control{.uses = std::vector<double>(network.links.size(), 1),
                     .weights = std::vector<double>(transfers.size(), 1)};
  if (tuning != nullptr) {
    control = FirstRounds(network, transfers, framing, *tuning).controlled();
  }
  FlowNetwork fluid;
  for (std::size_t link = 0; link < network.links.size(); ++link) {
    fluid.add_link(network.links[link].rate * framing.efficiency() * control.uses[link]);
  }
  FluidTransfers flows(network, transfers, fluid, framing);
  for (const RefereeTransfer& transfer : transfers) {
    const FlowIndex flow = fluid.add_flow(edges_of(network, transfer));
    fluid.set_weight(flow, control.weights[flow], {});
  }
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
    RefereeTimes times{.flow_level_start = of.messages[transfer.first].start,
                       .packet_level_start = of.messages[transfer.first].start,
                       .flow_level = ends[i],
                       .packet_level = to_seconds(last)};
    if (transfer.after != RefereeTransfer::kNone) {
      const RefereeTimes& before = row.transfers[transfer.after];
      times.flow_level_start = before.flow_level + transfer.gap;
      times.packet_level_start = before.packet_level + transfer.gap;
    }
    row.transfers.push_back(times);
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
