/// The referee at work: transmitters, queues, credits and pauses. packet_control.hpp says what is
/// modelled; this header is for its two simulate() functions alone.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/core/event_queue.hpp"
#include "sim/core/random.hpp"
#include "sim/packet/packet_control.hpp"

namespace lockstep {

/// Stores and forwards: a packet begins its next transmission after its last bit has arrived.
class PacketEngine {
 public:
  PacketEngine(const PacketNetwork& network, const CreditControl* credit,
               const EthernetControl* ethernet);
  PacketResult run();

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Packet {
    std::uint32_t flow;
    std::uint32_t number;  ///< within its flow
    std::uint32_t payload;
    std::uint32_t next;  ///< in its queue
    std::uint16_t path;
    std::uint8_t hop;  ///< index of the link that it crosses or waits to cross
    bool marked;
  };
  /// First in, first out. One for each flow at its source, which holds no packets but makes them
  /// when they leave; then those of the switches.
  struct Queue {
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t next_ready = kNone;  ///< in the list of its output
    bool ready = false;
    bool sending = false;  ///< its last first packet is being transmitted; only if one_at_a_time_
  };
  /// A lane of a transmitter: the queues whose first packet wants it, in the order of their turn.
  struct Lane {
    std::uint32_t first = kNone, last = kNone;
    std::int64_t credit = 0;   ///< bytes of room at the other end
    std::uint64_t queued = 0;  ///< bytes waiting here (Ethernet)
    bool paused = false;
    StepTime paused_since;
    // The input buffer at the other end of the link.
    std::uint64_t input = 0;
    bool input_full = false;  ///< a pause was sent
  };
  struct Transmitter {
    bool busy = false;
    std::uint32_t last_lane = 0;
    std::uint32_t queue = kNone;  ///< where its packet comes from,
    LinkIndex from = 0;           ///< and the link before, if not a source
    std::uint32_t bytes = 0;
    StepTime full_packet;  ///< time of the largest packet
  };
  struct Source {
    std::uint64_t left = 0;  ///< message bytes not yet sent
    std::uint32_t packets = 0;
    std::vector<std::uint16_t> order;   ///< of this round's paths
    std::uint32_t timers = 0;           ///< generation of the DCQCN timers
    StepTime next_notification;         ///< the receiver sends none before
    std::vector<std::uint32_t> newest;  ///< 1 + number of the latest arrival, by path
    std::uint32_t newest_of_all = 0;
    std::vector<std::uint32_t> followers;  ///< flows that pass this one on
    bool waiting = false;                  ///< for what it passes on
    std::uint32_t next_round = kNone;      ///< that waits for it
  };

  enum class Kind : std::uint8_t {
    start,        ///< of a flow
    transmitted,  ///< a link's packet has left
    arrived,      ///< a packet, at the far end, forwarded
    credit,       ///< room at the far end of a link
    pause,        ///< of a link's lane
    resume,
    paced,         ///< a flow's limiter lets the next packet go
    notification,  ///< reaches a flow's source
    alpha_timer,
    rate_timer,
  };
  static constexpr unsigned kKindBits = 4;
  static constexpr std::uint32_t kGenerations = (1U << (32 - kKindBits)) - 1;
  static bool is_timer(Kind kind) { return kind >= Kind::alpha_timer; }
  void push(StepTime at, Kind kind, std::uint32_t subject, std::uint32_t detail = 0) {
    moves_ += is_timer(kind) ? 0 : 1;
    events_.push(at, static_cast<std::uint32_t>(kind) | detail << kKindBits, subject);
  }
  void handle(const Event& event);

  // Links and queues.
  Lane& lane(LinkIndex link, std::uint32_t number) { return lanes_[link * lane_count_ + number]; }
  const std::vector<LinkIndex>& path(const Packet& packet) const {
    return network_.flows[packet.flow].paths[packet.path];
  }
  std::uint32_t wire(const Packet& packet) const { return packet.payload + framing_.header; }
  bool is_source(std::uint32_t queue) const { return queue < network_.flows.size(); }
  std::uint32_t queue_of(LinkIndex in, LinkIndex out, std::uint32_t lane_number) const;
  void make_ready(std::uint32_t queue, LinkIndex out, std::uint32_t lane_number);
  void try_send(LinkIndex link);
  bool may_send(LinkIndex link, std::uint32_t lane_number) const;
  std::uint32_t next_size(std::uint32_t queue) const;
  void send(LinkIndex link, std::uint32_t lane_number);
  void on_transmitted(LinkIndex link);
  void show_next(std::uint32_t queue, std::uint32_t lane_number);
  void on_arrived(std::uint32_t number);
  void enqueue(std::uint32_t number, LinkIndex in, std::uint32_t lane_number);
  void free_input(LinkIndex link, std::uint32_t lane_number, std::uint32_t bytes);
  void tell(LinkIndex link, std::uint32_t lane_number, Kind kind);
  void set_paused(LinkIndex link, std::uint32_t lane_number, bool paused);

  // Sources and destinations: packet_sources.cpp.
  void add_flows();
  void on_start(std::uint32_t flow);
  void offer(std::uint32_t flow);
  [[nodiscard]] bool has_next(std::uint32_t flow) const;
  std::uint32_t make_packet(std::uint32_t flow);
  std::uint16_t next_path(std::uint32_t flow);
  void after_source_sent(std::uint32_t flow, std::uint32_t bytes);
  void deliver(const Packet& packet);
  void pass_on(std::uint32_t flow);
  void end_flow(std::uint32_t flow);
  void on_notification(std::uint32_t flow);
  void on_timer(Kind kind, std::uint32_t flow, std::uint32_t generation);
  void start_timer(Kind kind, std::uint32_t flow);

  const PacketNetwork& network_;
  const CreditControl* credit_;      ///< null: Ethernet
  const EthernetControl* ethernet_;  ///< null: InfiniBand
  Framing framing_;
  std::uint32_t lane_count_;
  bool one_at_a_time_;  ///< an input buffer feeds one transmitter at a time
  EventQueue events_;
  std::uint64_t moves_ = 0;  ///< pending events other than timers
  StepTime now_;
  std::vector<Transmitter> transmitters_;  ///< by link
  std::vector<Lane> lanes_;                ///< by link and lane
  std::vector<StepTime> latency_;          ///< by link: of the cable
  std::vector<StepTime> forwarding_;       ///< by vertex
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> output_slot_;  ///< by link: its number among those of its vertex
  std::vector<std::uint32_t> first_queue_;  ///< by link: of its input buffer
  std::vector<Packet> packets_;
  std::uint32_t free_packet_ = kNone;
  std::vector<Source> sources_;
  std::vector<std::uint32_t> awaited_;  ///< by round: flows that have not arrived yet
  std::vector<DcqcnRate> rates_;
  std::vector<StepTime> feedback_;  ///< by flow: how long a notification takes
  RandomStream marks_;
  PacketResult result_;
};

}  // namespace lockstep
