#include "sim/trace/replay_trace.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <utility>

#include "sim/trace/running_calls.hpp"
#include "sim/trace/running_messages.hpp"
#include "sim/trace/running_nodes.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_wiring.hpp"

namespace lockstep {

class RunningTrace::State {
  static constexpr std::uint32_t kNobody = RunningNodes::kNobody;

 public:
  State(const Trace& trace, const TraceMatches& matches, const Cluster& cluster,
        const TraceReplayOptions& options, const Site& site)
      : trace_(trace),
        matches_(matches),
        wiring_(trace, cluster, options.collectives, site),
        nodes_(trace, wiring_.network(), options.record_times),
        calls_(trace, matches, wiring_, nodes_),
        messages_(trace, matches, wiring_, nodes_) {
    set_up_streams();
    nodes_.make_room_for_flows();
  }

  void begin(StepTime now) {
    nodes_.begin(now);
    std::vector<RunningNodes::RankClock>& clocks = nodes_.clocks();
    for (std::uint32_t rank = 0; rank < clocks.size(); ++rank) {
      clocks[rank].since = clocks[rank].ended = now + begin_of(rank);
      if (begin_of(rank) > StepTime{}) {
        nodes_.queue().push(clocks[rank].since, RunningNodes::kRankBegins, rank);
      } else {
        nodes_.begin_rank(rank);
      }
    }
    handle_ready();
  }
  [[nodiscard]] StepTime next_event() const {
    return nodes_.queue().empty() ? kNever : nodes_.queue().next_time();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) {
    nodes_.set_clock(now);
    for (const FlowIndex flow : flows) end_of(flow);
    handle_ready();
  }
  void handle_events(StepTime now) {
    if (next_event() > now) return;
    nodes_.set_clock(now);
    EventQueue& queue = nodes_.queue();
    while (!queue.empty() && queue.next_time() == now) {
      handle(queue.pop());
      handle_ready();
    }
  }
  [[nodiscard]] bool done() const { return nodes_.all_done(); }

  void tell(DcqcnStart& start) const { wiring_.tell(start); }

  TraceReplay finish() {
    TraceReplay& out = nodes_.out();
    const std::vector<RunningNodes::RankClock>& clocks = nodes_.clocks();
    for (std::uint32_t rank = 0; rank < clocks.size(); ++rank) {
      out.end = std::max(out.end, clocks[rank].ended - nodes_.begun() - begin_of(rank));
    }
    for (std::uint32_t rank = 0; rank < clocks.size(); ++rank) {
      const RunningNodes::RankClock& clock = clocks[rank];
      TraceRankTimes& times = out.ranks.emplace_back(clock.times);
      const StepTime own = std::max(clock.ended, clock.since) - nodes_.begun() - begin_of(rank);
      assert(times.total() <= own && own <= out.end && "a rank does nothing before its beginning");
      times.idle += own - times.total();
      times.after_end = out.end - own;
    }
    out.messages = messages_.count();
    out.messages_moving = to_seconds(messages_.time());
    out.calls = call_times(trace_, calls_.totals(), [&](std::uint32_t collective) {
      return wiring_.collective(collective).algorithm;
    });
    return std::move(out);
  }

  /// Where the first rank stands that is at a collective or message and cannot go on.
  [[noreturn]] void fail_stuck() const {
    for (std::uint32_t c = 0; c < matches_.calls.size(); ++c) {
      const TraceMatches::Call& match = matches_.calls[c];
      if (calls_.missing(c) == 0 || calls_.missing(c) == match.members) continue;
      std::uint32_t here = kNobody, absent = kNobody;
      for (std::uint32_t m = 0; m < match.members; ++m) {
        const std::uint32_t n = matches_.nodes[match.first + m];
        (nodes_.is_ready(n) ? here : absent) = n;
      }
      fail_waits(here, absent);
    }
    for (const TraceMatches::Message& message : matches_.messages) {
      if (nodes_.is_ready(message.receive) && !nodes_.is_ready(message.send)) {
        fail_waits(message.receive, message.send);
      }
    }
    assert(false && "stuck, but nobody waits");
    std::abort();
  }

 private:
  [[nodiscard]] StepTime begin_of(std::uint32_t rank) const {
    return trace_.begins.empty() ? StepTime{} : trace_.begins[rank];
  }

  struct Stream {
    bool busy = false;
    std::vector<std::uint32_t> waiting;  ///< a heap, the lowest node on top
  };

  void set_up_streams() {
    std::uint32_t streams = 0;
    for (int rank = 0; rank < trace_.ranks; ++rank) {
      const std::uint32_t end = trace_.rank_first[static_cast<std::size_t>(rank) + 1];
      std::uint32_t own = 0;
      for (auto n = trace_.rank_first[static_cast<std::size_t>(rank)]; n < end; ++n) {
        if (!takes_time(nodes_.kind(n))) continue;
        const std::uint16_t stream = trace_.nodes[n].stream;
        nodes_.set_subject(n, kNobody);
        if (stream == TraceNode::kNoStream) continue;
        nodes_.set_subject(n, streams + stream);
        own = std::max(own, stream + 1U);
      }
      streams += own;
    }
    streams_.resize(streams);
  }

  static bool computes(TraceNodeKind kind) {
    return kind == TraceNodeKind::compute || kind == TraceNodeKind::memory;
  }
  void handle_ready() {
    nodes_.begin_ready([this](std::uint32_t n) { begin_node(n); });
  }

  void begin_node(std::uint32_t n) {
    switch (nodes_.kind(n)) {
      case TraceNodeKind::collective:
        return calls_.join(n);
      case TraceNodeKind::send:
        return messages_.post_send(n);
      case TraceNodeKind::receive:
        return messages_.post_receive(n);
      default:
        break;
    }
    const std::uint32_t s = nodes_.subject(n);
    if (s != kNobody) {
      Stream& stream = streams_[s];
      if (stream.busy) {
        stream.waiting.push_back(n);
        std::ranges::push_heap(stream.waiting, std::greater<>{});
        return;
      }
      stream.busy = true;
    }
    start(n);
  }

  void start(std::uint32_t n) {
    nodes_.note_start(n);
    if (computes(nodes_.kind(n))) ++nodes_.book_for(n).computing;
    if (nodes_.kind(n) == TraceNodeKind::exchange) ++nodes_.book_for(n).moving;
    nodes_.queue().push(nodes_.now() + trace_.nodes[n].duration, RunningNodes::kNodeDone, n);
  }

  void node_done(std::uint32_t n) {
    if (computes(nodes_.kind(n))) --nodes_.book_for(n).computing;
    if (nodes_.kind(n) == TraceNodeKind::exchange) --nodes_.book_for(n).moving;
    nodes_.finish(n);
    const std::uint32_t s = nodes_.subject(n);
    if (s == kNobody) return;
    handle_ready();  // what just became ready competes for the stream
    Stream& stream = streams_[s];
    if (stream.waiting.empty()) {
      stream.busy = false;
      return;
    }
    std::ranges::pop_heap(stream.waiting, std::greater<>{});
    const std::uint32_t next = stream.waiting.back();
    stream.waiting.pop_back();
    start(next);
  }

  void end_of(FlowIndex flow) {
    const RunningNodes::FlowUser user = nodes_.user_of(flow);
    user.is_call ? calls_.ended(user.index) : messages_.left(user.index);
  }
  void handle(const Event& event) {
    switch (static_cast<RunningNodes::EventKind>(event.kind)) {
      case RunningNodes::kNodeDone:
        return node_done(event.subject);
      case RunningNodes::kCallStarts:
        return calls_.move(event.subject);
      case RunningNodes::kMessageArrives:
        return messages_.arrived(event.subject);
      case RunningNodes::kRankBegins:
        return nodes_.begin_rank(event.subject);
    }
  }

  [[noreturn]] void fail_waits(std::uint32_t here, std::uint32_t absent) const {
    const auto text = [&](std::uint32_t n) {
      return node_text(trace_.ids[n], trace_.strings[trace_.names[n]]);
    };
    const std::uint32_t other = nodes_.rank(absent);
    // What that rank stands at: its first node that is ready and cannot be done.
    std::uint32_t stands = kNobody;
    for (auto n = trace_.rank_first[other]; n < trace_.rank_first[other + 1]; ++n) {
      const bool waits = nodes_.is_ready(n) && !takes_time(nodes_.kind(n)) && !is_done(n);
      if (waits) {
        stands = n;
        break;
      }
    }
    fail_trace(trace_.files[nodes_.rank(here)],
               fmt::format("rank {} at {}, where it waits for {} of rank {}, which stands at {}",
                           nodes_.rank(here), text(here), text(absent), other,
                           stands == kNobody ? "nothing" : text(stands)),
               "ranks that come to collectives and messages in an order that lets all go on");
  }
  [[nodiscard]] bool is_done(std::uint32_t n) const {
    const std::uint32_t subject = nodes_.subject(n);
    if (nodes_.kind(n) == TraceNodeKind::collective) return calls_.missing(subject) == 0;
    return messages_.has_arrived(subject);
  }

  const Trace& trace_;
  const TraceMatches& matches_;
  TraceWiring wiring_;
  RunningNodes nodes_;
  std::vector<Stream> streams_;
  RunningCalls calls_;
  RunningMessages messages_;
};

RunningTrace::RunningTrace(const Trace& trace, const TraceMatches& matches, const Cluster& cluster,
                           const TraceReplayOptions& options, const Site& site)
    : state_(std::make_unique<State>(trace, matches, cluster, options, site)) {}
RunningTrace::~RunningTrace() = default;

void RunningTrace::begin(StepTime now) { state_->begin(now); }
StepTime RunningTrace::next_event() const { return state_->next_event(); }
void RunningTrace::flows_ended(std::span<const FlowIndex> flows, StepTime now) {
  state_->flows_ended(flows, now);
}
void RunningTrace::handle_events(StepTime now) { state_->handle_events(now); }
bool RunningTrace::done() const { return state_->done(); }
void RunningTrace::fail_stuck(StepTime /*now*/) const { state_->fail_stuck(); }
void RunningTrace::tell(DcqcnStart& start) const { state_->tell(start); }
TraceReplay RunningTrace::finish() { return state_->finish(); }

TraceReplay replay_trace(const Trace& trace, const TraceMatches& matches, const Cluster& cluster,
                         const TraceReplayOptions& options) {
  const NicPorts ports = nic_ports(cluster.node);
  const Fabric fabric(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth);
  FlowNetwork network;
  FabricLinks links(fabric, network, cluster.transport.efficiency);
  RunningTrace running(trace, matches, cluster, options, {.links = &links, .nodes = {}});
  Engine engine(network);
  engine.add(running);
  std::unique_ptr<DcqcnStart> start;
  if (cluster.transport.congestion_control != CongestionControl::none) {
    start = std::make_unique<DcqcnStart>(fabric, network, links.efficiency());
    running.tell(*start);
    engine.add_change(*start);
  }
  engine.run();
  return running.finish();
}

}  // namespace lockstep
