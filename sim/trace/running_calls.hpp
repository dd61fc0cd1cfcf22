/// The collective calls of a trace under way: each starts when the last of its ranks has come,
/// those of one group one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/trace/running_nodes.hpp"
#include "sim/trace/trace.hpp"
#include "sim/trace/trace_wiring.hpp"

namespace lockstep {

class RunningCalls {
 public:
  /// All outlive this.
  RunningCalls(const Trace& trace, const TraceMatches& matches, const TraceWiring& wiring,
               RunningNodes& nodes)
      : trace_(trace),
        matches_(matches),
        wiring_(wiring),
        nodes_(nodes),
        calls_(matches.calls.size()),
        groups_(trace.groups.size()),
        called_(trace.collectives.size()) {
    for (std::uint32_t c = 0; c < calls_.size(); ++c) {
      const TraceMatches::Call& call = matches_.calls[c];
      calls_[c].missing = call.members;
      for (std::uint32_t m = 0; m < call.members; ++m) {
        nodes_.set_subject(matches_.nodes[call.first + m], c);
      }
    }
  }

  /// How many of a call's ranks have not come.
  [[nodiscard]] std::uint32_t missing(std::uint32_t c) const { return calls_[c].missing; }
  /// By Trace::collectives.
  [[nodiscard]] const std::vector<CallTotals>& totals() const { return called_; }

  /// A rank comes to the call of its node.
  void join(std::uint32_t n) {
    const std::uint32_t c = nodes_.subject(n);
    Call& call = calls_[c];
    const TraceMatches::Call& match = matches_.calls[c];
    nodes_.note_start(n);
    if (call.missing == match.members) call.first = nodes_.now();
    ++nodes_.book_for(n).waiting;
    if (--call.missing > 0) return;
    call.all = nodes_.now();
    Group& group = groups_[trace_.collectives[match.collective].group];
    if (group.busy) {
      group.queue.push_back(c);
      return;
    }
    group.busy = true;
    start(c);
  }

  /// Its latency is over: its bytes go.
  void move(std::uint32_t c) {
    const TraceMatches::Call& match = matches_.calls[c];
    if (match.members < 2) return ended(c);
    const TraceTransfer& transfer = wiring_.collective(match.collective);
    nodes_.start_flow(transfer, {true, c});
  }

  void ended(std::uint32_t c) {
    const TraceMatches::Call& match = matches_.calls[c];
    CallTotals& totals = called_[match.collective];
    totals.moving += nodes_.now() - calls_[c].all;
    totals.waiting += calls_[c].all - calls_[c].first;
    ++totals.calls;
    for (std::uint32_t m = 0; m < match.members; ++m) {
      const std::uint32_t n = matches_.nodes[match.first + m];
      --nodes_.book_for(n).moving;
      nodes_.finish(n);
    }
    Group& group = groups_[trace_.collectives[match.collective].group];
    if (group.next == group.queue.size()) {
      group.queue.clear();
      group.next = 0;
      group.busy = false;
      return;
    }
    start(group.queue[group.next++]);
  }

 private:
  struct Call {
    std::uint32_t missing = 0;  ///< members that have not come
    StepTime first, all;        ///< when the first and the last came
  };
  /// Calls of a group wait for each other.
  struct Group {
    bool busy = false;
    std::vector<std::uint32_t> queue;
    std::size_t next = 0;
  };

  void start(std::uint32_t c) {
    const TraceMatches::Call& match = matches_.calls[c];
    for (std::uint32_t m = 0; m < match.members; ++m) {
      RunningNodes::RankClock& clock = nodes_.book_for(matches_.nodes[match.first + m]);
      --clock.waiting;
      ++clock.moving;
    }
    const StepTime latency =
        match.members > 1 ? wiring_.collective(match.collective).latency : StepTime{};
    nodes_.queue().push(nodes_.now() + latency, RunningNodes::kCallStarts, c);
  }

  const Trace& trace_;
  const TraceMatches& matches_;
  const TraceWiring& wiring_;
  RunningNodes& nodes_;
  std::vector<Call> calls_;
  std::vector<Group> groups_;
  std::vector<CallTotals> called_;
};

}  // namespace lockstep
