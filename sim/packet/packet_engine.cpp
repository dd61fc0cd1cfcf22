#include "sim/packet/packet_engine.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace lockstep {
namespace {

constexpr unsigned kLaneBits = 4;
/// The smallest frame with its preamble and gap. Source: IEEE 802.3-2018, annex 31B.
constexpr std::uint64_t kPauseBytes = 84;

}  // namespace

PacketResult simulate(const PacketNetwork& network, const CreditControl& control) {
  return PacketEngine(network, &control, nullptr).run();
}
PacketResult simulate(const PacketNetwork& network, const EthernetControl& control) {
  return PacketEngine(network, nullptr, &control).run();
}

EthernetControl ethernet_for(BytesPerSecond line_rate) {
  const DcqcnTuning tuning = vendor_tuning(line_rate);
  EthernetControl control;
  control.marking = tuning.marking;
  control.dcqcn = tuning.constants;
  control.xoff = 2 * control.marking.k_max;
  control.xon = control.xoff - 2 * control.framing.wire();
  return control;
}

std::uint64_t pause_headroom(const PacketNetwork& network, LinkIndex link,
                             const EthernetControl& control) {
  const PacketLink& wire = network.links[link];
  const Seconds away = 2 * wire.latency + network.forwarding[wire.to];
  const auto in_flight = static_cast<std::uint64_t>(std::ceil((wire.rate * away).base_units()));
  return in_flight + kPauseBytes + 2 * std::uint64_t{control.framing.wire()};
}

PacketEngine::PacketEngine(const PacketNetwork& network, const CreditControl* credit,
                           const EthernetControl* ethernet)
    : network_(network),
      credit_(credit),
      ethernet_(ethernet),
      framing_(credit != nullptr ? credit->framing : ethernet->framing),
      lane_count_(static_cast<std::uint32_t>(credit != nullptr ? credit->lanes : ethernet->lanes)),
      one_at_a_time_(credit != nullptr && !credit->virtual_output_queues),
      marks_({.seed = ethernet != nullptr ? ethernet->seed : 0}) {
  assert(mistake(network).empty());
  assert(lane_count_ >= 1 && lane_count_ < (1U << kLaneBits));
  assert(credit == nullptr || credit->buffer >= framing_.wire());
  assert(ethernet == nullptr || !ethernet->pause || ethernet->xon < ethernet->xoff);
  for (const Seconds delay : network.forwarding) forwarding_.push_back(to_step_time(delay));
  transmitters_.resize(network.links.size());
  lanes_.resize(network.links.size() * lane_count_);
  for (Lane& lane : lanes_) lane.credit = credit != nullptr ? credit->buffer : 0;
  std::vector<std::uint32_t> outputs(network.forwarding.size());
  for (std::size_t link = 0; link < network.links.size(); ++link) {
    latency_.push_back(to_step_time(network.links[link].latency));
    transmitters_[link].full_packet = serialisation(network.links[link], framing_.wire());
    output_slot_.push_back(outputs[network.links[link].from]++);
  }
  auto queues = static_cast<std::uint32_t>(network.flows.size());
  for (const PacketLink& link : network.links) {
    first_queue_.push_back(queues);
    const bool per_output = credit != nullptr && credit->virtual_output_queues;
    queues += lane_count_ * (per_output ? outputs[link.to] : 1);
  }
  queues_.resize(queues);
  add_flows();
}

PacketResult PacketEngine::run() {
  // Timers alone move nothing: what has not ended by then never will.
  while (moves_ > 0) {
    const Event event = events_.pop();
    now_ = event.at;
    ++result_.events;
    handle(event);
  }
  for (std::size_t f = 0; f < result_.flows.size(); ++f) {
    if (result_.flows[f].delivered < network_.flows[f].bytes) result_.deadlock = true;
  }
  return std::move(result_);
}

void PacketEngine::handle(const Event& event) {
  const auto kind = static_cast<Kind>(event.kind & ((1U << kKindBits) - 1));
  moves_ -= is_timer(kind) ? 0 : 1;
  const std::uint32_t detail = event.kind >> kKindBits;
  const std::uint32_t subject = event.subject;
  switch (kind) {
    case Kind::start:
      return on_start(subject);
    case Kind::transmitted:
      return on_transmitted(subject);
    case Kind::arrived:
      return on_arrived(subject);
    case Kind::credit:
      lane(subject, detail % (1U << kLaneBits)).credit += detail >> kLaneBits;
      return try_send(subject);
    case Kind::pause:
      return set_paused(subject, detail, true);
    case Kind::resume:
      return set_paused(subject, detail, false);
    case Kind::paced:
      return on_start(subject);
    case Kind::notification:
      return on_notification(subject);
    case Kind::alpha_timer:
    case Kind::rate_timer:
      return on_timer(kind, subject, detail);
  }
}

// Queues of an input buffer: one per lane, or per output of the switch and lane. Ethernet keeps its
// packets at the output, so there the queue is the output's.
std::uint32_t PacketEngine::queue_of(LinkIndex in, LinkIndex out, std::uint32_t lane_number) const {
  if (ethernet_ != nullptr) return first_queue_[out] + lane_number;
  if (!credit_->virtual_output_queues) return first_queue_[in] + lane_number;
  return first_queue_[in] + output_slot_[out] * lane_count_ + lane_number;
}

void PacketEngine::make_ready(std::uint32_t queue, LinkIndex out, std::uint32_t lane_number) {
  Queue& q = queues_[queue];
  assert(!q.ready);
  q.ready = true;
  q.next_ready = kNone;
  Lane& l = lane(out, lane_number);
  (l.first == kNone ? l.first : queues_[l.last].next_ready) = queue;
  l.last = queue;
}

std::uint32_t PacketEngine::next_size(std::uint32_t queue) const {
  if (!is_source(queue)) return wire(packets_[queues_[queue].head]);
  const std::uint64_t left = sources_[queue].left;
  return framing_.header +
         static_cast<std::uint32_t>(std::min<std::uint64_t>(left, framing_.payload));
}

bool PacketEngine::may_send(LinkIndex link, std::uint32_t lane_number) const {
  const Lane& l = lanes_[link * lane_count_ + lane_number];
  if (l.first == kNone || l.paused) return false;
  return credit_ == nullptr || l.credit >= next_size(l.first);
}

void PacketEngine::try_send(LinkIndex link) {
  Transmitter& t = transmitters_[link];
  if (t.busy) return;
  for (std::uint32_t turn = 1; turn <= lane_count_; ++turn) {
    const std::uint32_t lane_number = (t.last_lane + turn) % lane_count_;
    if (!may_send(link, lane_number)) continue;
    t.last_lane = lane_number;
    return send(link, lane_number);
  }
}

void PacketEngine::send(LinkIndex link, std::uint32_t lane_number) {
  Lane& l = lane(link, lane_number);
  const std::uint32_t queue = l.first;
  Queue& q = queues_[queue];
  l.first = q.next_ready;
  q.ready = false;

  const std::uint32_t number = is_source(queue) ? make_packet(queue) : q.head;
  const Packet& packet = packets_[number];
  const std::uint32_t bytes = wire(packet);
  if (!is_source(queue)) {
    q.head = packet.next;
    l.queued -= ethernet_ != nullptr ? bytes : 0;
    q.sending = one_at_a_time_;
    if (q.head != kNone && !q.sending) make_ready(queue, link, lane_number);
  } else {
    after_source_sent(queue, bytes);
  }

  Transmitter& t = transmitters_[link];
  t.busy = true;
  t.queue = queue;
  t.bytes = bytes;
  if (!is_source(queue)) t.from = path(packet)[packet.hop - 1U];
  l.credit -= credit_ != nullptr ? bytes : 0;
  result_.links[link].carried += bytes;
  ++result_.packet_hops;
  const PacketLink& wire_of = network_.links[link];
  const StepTime end =
      now_ + (bytes == framing_.wire() ? t.full_packet : serialisation(wire_of, bytes));
  push(end, Kind::transmitted, link);
  push(end + latency_[link] + forwarding_[wire_of.to], Kind::arrived, number);
}

void PacketEngine::on_transmitted(LinkIndex link) {
  Transmitter& t = transmitters_[link];
  t.busy = false;
  if (!is_source(t.queue)) {
    free_input(t.from, t.last_lane, t.bytes);
    if (one_at_a_time_) show_next(t.queue, t.last_lane);
  }
  try_send(link);
}

// The first packet of an input without virtual output queues comes into sight when its predecessor
// has left.
void PacketEngine::show_next(std::uint32_t queue, std::uint32_t lane_number) {
  Queue& q = queues_[queue];
  q.sending = false;
  if (q.head == kNone) return;
  const LinkIndex out = path(packets_[q.head])[packets_[q.head].hop];
  make_ready(queue, out, lane_number);
  try_send(out);
}

void PacketEngine::on_arrived(std::uint32_t number) {
  Packet& packet = packets_[number];
  const LinkIndex in = path(packet)[packet.hop];
  const std::uint32_t lane_number = network_.flows[packet.flow].lane;
  const std::uint32_t bytes = wire(packet);
  Lane& buffer = lane(in, lane_number);
  buffer.input += bytes;
  result_.links[in].input_max = std::max(result_.links[in].input_max, buffer.input);
  if (++packet.hop < path(packet).size()) return enqueue(number, in, lane_number);

  const std::uint32_t flow = packet.flow;
  deliver(packet);
  packet.next = free_packet_;
  free_packet_ = number;
  free_input(in, lane_number, bytes);
  pass_on(flow);
}

void PacketEngine::enqueue(std::uint32_t number, LinkIndex in, std::uint32_t lane_number) {
  Packet& packet = packets_[number];
  const LinkIndex out = path(packet)[packet.hop];
  if (ethernet_ != nullptr) {
    Lane& output = lane(out, lane_number);
    const double p = mark_probability(ethernet_->marking, output.queued);
    packet.marked |= p > 0 && marks_.uniform() < p;
    output.queued += wire(packet);
    Lane& input = lane(in, lane_number);
    if (ethernet_->pause && !input.input_full && input.input > ethernet_->xoff) {
      input.input_full = true;
      tell(in, lane_number, Kind::pause);
    }
  }
  const std::uint32_t queue = queue_of(in, out, lane_number);
  Queue& q = queues_[queue];
  packet.next = kNone;
  const bool was_empty = q.head == kNone;
  (was_empty ? q.head : packets_[q.tail].next) = number;
  q.tail = number;
  if (!was_empty || q.sending) return;
  make_ready(queue, out, lane_number);
  try_send(out);
}

void PacketEngine::free_input(LinkIndex link, std::uint32_t lane_number, std::uint32_t bytes) {
  Lane& l = lane(link, lane_number);
  l.input -= bytes;
  if (credit_ != nullptr) {
    push(now_ + latency_[link], Kind::credit, link, lane_number | bytes << kLaneBits);
  } else if (l.input_full && l.input <= ethernet_->xon) {
    l.input_full = false;
    tell(link, lane_number, Kind::resume);
  }
}

void PacketEngine::tell(LinkIndex link, std::uint32_t lane_number, Kind kind) {
  const StepTime frame = serialisation(network_.links[link], kPauseBytes);
  push(now_ + frame + latency_[link], kind, link, lane_number);
}

void PacketEngine::set_paused(LinkIndex link, std::uint32_t lane_number, bool paused) {
  Lane& l = lane(link, lane_number);
  l.paused = paused;
  if (paused) {
    ++result_.links[link].pauses;
    l.paused_since = now_;
  } else {
    result_.links[link].paused += now_ - l.paused_since;
    try_send(link);
  }
}

}  // namespace lockstep
