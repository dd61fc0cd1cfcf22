// The engine's ends: sources that make packets at the rate they may, destinations that count them.
#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "sim/packet/packet_engine.hpp"

namespace lockstep {
namespace {

/// Ethernet 14, IPv4 20, UDP 8, base transport 12, reserved 16, invariant CRC 4, frame check 4,
/// preamble and gap 20 bytes. Source: InfiniBand annex A17 (RoCEv2), section A17.9.3.
constexpr std::uint64_t kNotificationBytes = 98;

}  // namespace

void PacketEngine::add_flows() {
  sources_.resize(network_.flows.size());
  std::vector<bool> later(network_.flows.size());
  for (const PacketRound& round : network_.rounds) {
    const auto number = static_cast<std::uint32_t>(awaited_.size());
    awaited_.push_back(round.after_count);
    for (std::uint32_t f = 0; f < round.count; ++f) later[round.first + f] = true;
    for (std::uint32_t f = 0; f < round.after_count; ++f) {
      sources_[round.after_first + f].next_round = number;
    }
  }
  for (std::uint32_t f = 0; f < network_.flows.size(); ++f) {
    const PacketFlow& flow = network_.flows[f];
    assert(flow.lane < lane_count_);
    sources_[f].left = flow.bytes;
    sources_[f].newest.resize(flow.paths.size());
    if (flow.after != PacketFlow::kNone) sources_[flow.after].followers.push_back(f);
    StepTime feedback = to_step_time(path_latency(network_, flow));
    for (const LinkIndex link : flow.paths.front()) {
      feedback += serialisation(network_.links[link], kNotificationBytes);
    }
    feedback_.push_back(feedback);
    if (ethernet_ != nullptr) {
      rates_.emplace_back(ethernet_->dcqcn, network_.links[flow.paths.front().front()].rate);
    }
    if (!later[f]) push(flow.start, Kind::start, f);
  }
  result_.flows.resize(network_.flows.size());
  result_.links.resize(network_.links.size());
}

void PacketEngine::on_start(std::uint32_t flow) {
  offer(flow);
  try_send(network_.flows[flow].paths.front().front());
}

/// Whether the source holds a next byte.
bool PacketEngine::has_next(std::uint32_t flow) const {
  const PacketFlow& of = network_.flows[flow];
  if (of.after == PacketFlow::kNone) return true;
  const PacketFlowResult& before = result_.flows[of.after];
  return before.delivered == network_.flows[of.after].bytes ||
         of.bytes - sources_[flow].left < before.delivered + of.lead;
}

/// Lets the flow's next packet go as soon as its source holds it.
void PacketEngine::offer(std::uint32_t flow) {
  sources_[flow].waiting = !has_next(flow);
  if (sources_[flow].waiting) return;
  make_ready(flow, network_.flows[flow].paths.front().front(), network_.flows[flow].lane);
}

// Sprayed packets take the paths in turn, each round in a new order, so that sources do not fall
// into step with each other.
std::uint16_t PacketEngine::next_path(std::uint32_t flow) {
  const auto paths = static_cast<std::uint32_t>(network_.flows[flow].paths.size());
  if (paths == 1) return 0;
  Source& source = sources_[flow];
  const std::uint32_t turn = source.packets % paths;
  if (turn == 0) {
    source.order.resize(paths);
    std::iota(source.order.begin(), source.order.end(), std::uint16_t{0});
    RandomStream random({.trajectory = flow, .component = source.packets / paths});
    for (std::uint32_t i = paths - 1; i > 0; --i) {
      std::swap(source.order[i], source.order[random.below(i + 1)]);
    }
  }
  return source.order[turn];
}

std::uint32_t PacketEngine::make_packet(std::uint32_t flow) {
  Source& source = sources_[flow];
  Packet packet{.flow = flow,
                .number = source.packets,
                .payload = next_size(flow) - framing_.header,
                .next = kNone,
                .path = next_path(flow),
                .hop = 0,
                .marked = false};
  source.left -= packet.payload;
  ++source.packets;
  if (free_packet_ == kNone) {
    packets_.push_back(packet);
    return static_cast<std::uint32_t>(packets_.size() - 1);
  }
  const std::uint32_t number = free_packet_;
  free_packet_ = packets_[number].next;
  packets_[number] = packet;
  return number;
}

void PacketEngine::after_source_sent(std::uint32_t flow, std::uint32_t bytes) {
  const PacketFlow& of = network_.flows[flow];
  const LinkIndex first = of.paths.front().front();
  if (ethernet_ != nullptr) rates_[flow].on_sent(bytes);
  if (sources_[flow].left == 0) return;
  if (ethernet_ == nullptr || rates_[flow].current() >= network_.links[first].rate) {
    return offer(flow);
  }
  push(now_ + to_step_time(Bytes{double{1} * bytes} / rates_[flow].current()), Kind::paced, flow);
}

void PacketEngine::deliver(const Packet& packet) {
  Source& source = sources_[packet.flow];
  PacketFlowResult& flow = result_.flows[packet.flow];
  flow.delivered += packet.payload;
  ++flow.packets;
  const std::uint32_t order = packet.number + 1;
  flow.disorder += order < source.newest[packet.path] ? 1 : 0;
  flow.overtaken += order < source.newest_of_all ? 1 : 0;
  source.newest[packet.path] = std::max(source.newest[packet.path], order);
  source.newest_of_all = std::max(source.newest_of_all, order);
  assert(flow.delivered <= network_.flows[packet.flow].bytes);
  if (flow.delivered == network_.flows[packet.flow].bytes) end_flow(packet.flow);

  if (!packet.marked || !ethernet_->congestion_control) return;
  if (now_ < source.next_notification) return;
  source.next_notification = now_ + to_step_time(ethernet_->dcqcn.notification_interval);
  push(now_ + feedback_[packet.flow], Kind::notification, packet.flow);
}

/// The flow has arrived; with the last of those that a round waits for, it begins.
void PacketEngine::end_flow(std::uint32_t flow) {
  result_.flows[flow].finish = now_;
  const std::uint32_t number = sources_[flow].next_round;
  if (number == kNone || --awaited_[number] > 0) return;
  const PacketRound& round = network_.rounds[number];
  const StepTime start = now_ + to_step_time(round.gap);
  for (std::uint32_t f = 0; f < round.count; ++f) push(start, Kind::start, round.first + f);
}

/// A packet of the flow has been delivered: sources that wait to pass it on may.
void PacketEngine::pass_on(std::uint32_t flow) {
  for (const std::uint32_t follower : sources_[flow].followers) {
    if (sources_[follower].waiting) on_start(follower);
  }
}

void PacketEngine::on_notification(std::uint32_t flow) {
  if (sources_[flow].left == 0) return;
  ++result_.flows[flow].notifications;
  rates_[flow].on_notification();
  // What is pending of both timers is void by its generation.
  sources_[flow].timers = (sources_[flow].timers + 1) & kGenerations;
  start_timer(Kind::alpha_timer, flow);
  start_timer(Kind::rate_timer, flow);
}

void PacketEngine::start_timer(Kind kind, std::uint32_t flow) {
  const DcqcnConstants& dcqcn = ethernet_->dcqcn;
  const Seconds delay = kind == Kind::alpha_timer ? dcqcn.alpha_timer : dcqcn.rate_timer;
  push(now_ + to_step_time(delay), kind, flow, sources_[flow].timers);
}

void PacketEngine::on_timer(Kind kind, std::uint32_t flow, std::uint32_t generation) {
  if (generation != sources_[flow].timers || sources_[flow].left == 0) return;
  if (kind == Kind::alpha_timer) {
    rates_[flow].on_alpha_timer();
  } else {
    rates_[flow].on_rate_timer();
  }
  start_timer(kind, flow);
}

}  // namespace lockstep
