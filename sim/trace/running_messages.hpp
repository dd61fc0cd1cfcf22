/// The messages of a trace under way: each leaves as soon as its sender is ready, behind earlier
/// ones to the same rank.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/trace/running_nodes.hpp"
#include "sim/trace/trace.hpp"
#include "sim/trace/trace_wiring.hpp"

namespace lockstep {

class RunningMessages {
 public:
  /// Adds their flows to the wiring. All but the wiring outlive this.
  RunningMessages(const Trace& trace, const TraceMatches& matches, TraceWiring& wiring,
                  RunningNodes& nodes)
      : matches_(matches), nodes_(nodes), messages_(matches.messages.size()) {
    std::map<std::pair<int, int>, std::uint32_t> channels;
    std::map<std::tuple<int, int, double>, std::uint32_t> transfers;
    std::tuple<int, int, double> last{-1, -1, 0};  // messages lie by sender and receiver
    std::uint32_t transfer = 0;
    for (std::uint32_t m = 0; m < messages_.size(); ++m) {
      const auto [send, receive] = matches_.messages[m];
      nodes_.set_subject(send, m);
      nodes_.set_subject(receive, m);
      const TraceMessage& sent = trace.messages[trace.nodes[send].subject];
      const std::pair ends{static_cast<int>(nodes_.rank(send)), sent.peer};
      const std::tuple key{ends.first, ends.second, sent.size.base_units()};
      if (key != last) {
        last = key;
        const auto [at, added] =
            transfers.try_emplace(key, static_cast<std::uint32_t>(transfers_.size()));
        transfer = at->second;
        if (added) {
          const auto channel =
              channels.try_emplace(ends, static_cast<std::uint32_t>(channels.size())).first->second;
          transfers_.push_back({wiring.message(ends.first, ends.second, sent.size), channel});
        }
      }
      messages_[m].transfer = transfer & 0x1FFF'FFFFU;
    }
    assert(transfers_.size() <= 0x2000'0000U && "of a billion nodes at most, half of them sends");
    channels_.resize(channels.size());
  }

  [[nodiscard]] std::size_t count() const { return messages_.size(); }
  [[nodiscard]] bool has_arrived(std::uint32_t m) const { return messages_[m].arrived; }
  /// From leaving to arrival, of all.
  [[nodiscard]] StepTime time() const { return time_; }

  void post_send(std::uint32_t n) {
    const std::uint32_t m = nodes_.subject(n);
    nodes_.note_start(n);
    ++nodes_.book_for(n).moving;
    Message& message = messages_[m];
    message.left = true;
    message.start = nodes_.now();
    if (message.posted) receiver_moves(m);
    const Transfer& transfer = transfers_[message.transfer];
    Channel& channel = channels_[transfer.channel];
    if (channel.running == RunningNodes::kNobody) {
      channel.running = m;
      nodes_.start_flow(transfer.wire, {false, m});
    } else {
      messages_[channel.last].next = m;
    }
    channel.last = m;
  }

  void post_receive(std::uint32_t n) {
    Message& message = messages_[nodes_.subject(n)];
    nodes_.note_start(n);
    message.posted = true;
    if (message.arrived) return nodes_.finish(n);
    RunningNodes::RankClock& clock = nodes_.book_for(n);
    message.left ? ++clock.moving : ++clock.waiting;
  }

  /// Its bytes are on their way: the next of the channel may go.
  void left(std::uint32_t m) {
    const Message& message = messages_[m];
    const Transfer& transfer = transfers_[message.transfer];
    nodes_.queue().push(nodes_.now() + transfer.wire.latency, RunningNodes::kMessageArrives, m);
    Channel& channel = channels_[transfer.channel];
    channel.running = message.next;
    if (channel.running != RunningNodes::kNobody) {
      const Message& next = messages_[channel.running];
      nodes_.start_flow(transfers_[next.transfer].wire, {false, channel.running});
    }
  }

  void arrived(std::uint32_t m) {
    Message& message = messages_[m];
    const auto [send, receive] = matches_.messages[m];
    message.arrived = true;
    time_ += nodes_.now() - message.start;
    --nodes_.book_for(send).moving;
    nodes_.finish(send);
    if (!message.posted) return;
    --nodes_.book_for(receive).moving;
    nodes_.finish(receive);
  }

 private:
  /// Messages of a size from one rank to another.
  struct Transfer {
    TraceTransfer wire;
    std::uint32_t channel = 0;
  };
  struct Message {
    std::uint32_t transfer : 29 = 0;
    bool left : 1 = false, posted : 1 = false, arrived : 1 = false;
    std::uint32_t next = RunningNodes::kNobody;  ///< behind it in the channel
    StepTime start;
  };
  /// Messages of one rank to another, one at a time.
  struct Channel {
    std::uint32_t running = RunningNodes::kNobody, last = RunningNodes::kNobody;
  };

  void receiver_moves(std::uint32_t m) {
    RunningNodes::RankClock& clock = nodes_.book_for(matches_.messages[m].receive);
    --clock.waiting;
    ++clock.moving;
  }

  const TraceMatches& matches_;
  RunningNodes& nodes_;
  std::vector<Message> messages_;
  std::vector<Transfer> transfers_;
  std::vector<Channel> channels_;
  StepTime time_;
};

}  // namespace lockstep
