/// The nodes of a trace under way: which are ready, which are done, and where each rank's time
/// goes. What runs collectives and messages shares it, with the clock and the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/core/event_queue.hpp"
#include "sim/core/flow_network.hpp"
#include "sim/trace/replay_trace.hpp"
#include "sim/trace/trace.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_graph.hpp"
#include "sim/trace/trace_wiring.hpp"

namespace lockstep {

class RunningNodes {
 public:
  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

  enum EventKind : std::uint32_t { kNodeDone, kCallStarts, kMessageArrives, kRankBegins };

  struct RankClock {
    std::uint32_t computing = 0, moving = 0, waiting = 0;
    StepTime since;
    StepTime ended;  ///< its last node that is done
    TraceRankTimes times;
  };
  /// Whose flow it is: a call's or a message's.
  struct FlowUser {
    bool is_call = false;
    std::uint32_t index = 0;
  };

  /// All outlive this.
  RunningNodes(const Trace& trace, FlowNetwork& network, bool record_times)
      : trace_(trace),
        network_(network),
        record_times_(record_times),
        unfinished_(trace.size()),
        nodes_(trace.size()),
        clocks_(static_cast<std::size_t>(trace.ranks)) {
    TraceSuccessors graph = successors_of(trace_);
    out_.longest_path = longest_path(trace_, graph);
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].kind = static_cast<std::uint32_t>(trace_.nodes[n].kind) & 0xFFU;
      nodes_[n].unmet = static_cast<std::uint32_t>(trace_.dependencies_of(n).size());
      nodes_[n].successors = graph.first[n];
    }
    successors_ = std::move(graph.list);
    end_successors_ = static_cast<std::uint32_t>(successors_.size());
    for (std::uint32_t rank = 0; rank < clocks_.size(); ++rank) {
      for (auto n = trace_.rank_first[rank]; n < trace_.rank_first[rank + 1]; ++n) {
        nodes_[n].rank = rank & 0xFFFFFFU;
      }
    }
    if (!record_times_) return;
    out_.starts.resize(trace.size());
    out_.ends.resize(trace.size());
  }
  /// Once all flows are there.
  void make_room_for_flows() { users_.resize(network_.flows()); }

  // --- the clock

  void begin(StepTime now) { begin_ = now_ = now; }
  void set_clock(StepTime now) {
    now_ = now;
    if (since_begin() > kLongestReplay) fail_long();
  }
  [[nodiscard]] StepTime now() const { return now_; }
  [[nodiscard]] StepTime begun() const { return begin_; }
  EventQueue& queue() { return queue_; }
  [[nodiscard]] const EventQueue& queue() const { return queue_; }

  // --- nodes

  [[nodiscard]] TraceNodeKind kind(std::uint32_t n) const {
    return static_cast<TraceNodeKind>(nodes_[n].kind);
  }
  [[nodiscard]] std::uint32_t rank(std::uint32_t n) const { return nodes_[n].rank; }
  /// Its stream, call or message.
  [[nodiscard]] std::uint32_t subject(std::uint32_t n) const { return nodes_[n].subject; }
  void set_subject(std::uint32_t n, std::uint32_t subject) { nodes_[n].subject = subject; }
  /// Whether all that it waits for is done.
  [[nodiscard]] bool is_ready(std::uint32_t n) const { return nodes_[n].unmet == 0; }
  [[nodiscard]] bool all_done() const { return unfinished_ == 0; }

  void begin_rank(std::uint32_t rank) {
    const std::uint32_t end = trace_.rank_first[rank + 1];
    for (std::uint32_t n = trace_.rank_first[rank]; n < end; ++n) {
      if (nodes_[n].unmet == 0) ready_.push_back(n);
    }
  }
  /// Begins what is ready, in the order in which it became so; beginning one may make others ready.
  template <class Begin>
  void begin_ready(Begin&& begin) {
    std::size_t next = 0;
    while (next < ready_.size()) begin(ready_[next++]);
    ready_.clear();
  }
  void note_start(std::uint32_t n) {
    if (record_times_) out_.starts[n] = since_begin();
  }
  void finish(std::uint32_t n) {
    --unfinished_;
    clocks_[nodes_[n].rank].ended = now_;
    if (record_times_) out_.ends[n] = since_begin();
    const std::uint32_t end = successors_end(n);
    for (std::uint32_t s = nodes_[n].successors; s < end; ++s) {
      if (--nodes_[successors_[s]].unmet == 0) ready_.push_back(successors_[s]);
    }
  }

  // --- ranks

  [[nodiscard]] std::vector<RankClock>& clocks() { return clocks_; }
  /// Gives the time since the rank's last change to what the rank did. Call before a change.
  RankClock& book(std::uint32_t rank) {
    RankClock& c = clocks_[rank];
    const StepTime span = now_ - c.since;
    c.since = now_;
    if (c.computing > 0) {
      c.times.compute += span;
    } else if (c.moving > 0) {
      c.times.communication += span;
    } else if (c.waiting > 0) {
      c.times.waiting += span;
    } else {
      c.times.idle += span;
    }
    return c;
  }
  /// Of the rank that runs a node.
  RankClock& book_for(std::uint32_t n) { return book(nodes_[n].rank); }

  // --- flows

  void start_flow(const TraceTransfer& transfer, FlowUser user) {
    users_[transfer.flow] = user;
    network_.start(transfer.flow, transfer.amount, now_);
    ++out_.flows;
  }
  [[nodiscard]] FlowUser user_of(FlowIndex flow) const { return users_[flow]; }

  /// What is told of the replay at its end.
  TraceReplay& out() { return out_; }

 private:
  /// Its duration is in the trace: what few bytes all nodes have here, all of them go through.
  struct Node {
    std::uint32_t unmet = 0;
    std::uint32_t successors = 0;  ///< first of them
    std::uint32_t subject = 0;
    std::uint32_t rank : 24 = 0;
    std::uint32_t kind : 8 = 0;
  };

  [[nodiscard]] StepTime since_begin() const { return now_ - begin_; }
  [[nodiscard]] std::uint32_t successors_end(std::uint32_t n) const {
    return n + 1 < nodes_.size() ? nodes_[n + 1].successors : end_successors_;
  }
  [[noreturn]] void fail_long() const {
    fail_trace(trace_.files.front(), "a step of more than 100 days on this cluster",
               "shorter ones");
  }

  const Trace& trace_;
  FlowNetwork& network_;
  bool record_times_;
  EventQueue queue_;
  StepTime begin_, now_;
  std::size_t unfinished_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> successors_;
  std::uint32_t end_successors_ = 0;
  std::vector<std::uint32_t> ready_;
  std::vector<RankClock> clocks_;
  std::vector<FlowUser> users_;  ///< by flow
  TraceReplay out_;
};

}  // namespace lockstep
