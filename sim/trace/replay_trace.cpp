#include "sim/trace/replay_trace.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>

#include "sim/core/event_queue.hpp"
#include "sim/trace/trace_builder.hpp"
#include "sim/trace/trace_graph.hpp"
#include "sim/trace/trace_wiring.hpp"

namespace lockstep {

class RunningTrace::State {
  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

 public:
  State(const Trace& trace, const TraceMatches& matches, const Cluster& cluster,
        const TraceReplayOptions& options, const Site& site)
      : trace_(trace),
        matches_(matches),
        options_(options),
        wiring_(trace, cluster, options.collectives, site),
        network_(wiring_.network()) {
    set_up_nodes();
    set_up_streams();
    set_up_calls();
    set_up_messages();
    if (options_.record_times) {
      out_.starts.resize(trace.size());
      out_.ends.resize(trace.size());
    }
  }

  void begin(StepTime now) {
    begin_ = now_ = now;
    for (std::uint32_t rank = 0; rank < clocks_.size(); ++rank) {
      clocks_[rank].since = clocks_[rank].ended = now + begin_of(rank);
      if (begin_of(rank) > StepTime{}) {
        queue_.push(clocks_[rank].since, kRankBegins, rank);
      } else {
        begin_rank(rank);
      }
    }
    handle_ready();
  }
  [[nodiscard]] StepTime next_event() const { return queue_.empty() ? kNever : queue_.next_time(); }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) {
    set_clock(now);
    for (const FlowIndex flow : flows) end_of(flow);
    handle_ready();
  }
  void handle_events(StepTime now) {
    if (next_event() > now) return;
    set_clock(now);
    while (!queue_.empty() && queue_.next_time() == now) {
      handle(queue_.pop());
      handle_ready();
    }
  }
  [[nodiscard]] bool done() const { return unfinished_ == 0; }

  void tell(DcqcnStart& start) const { wiring_.tell(start); }

  TraceReplay finish() {
    for (std::uint32_t rank = 0; rank < clocks_.size(); ++rank) {
      out_.end = std::max(out_.end, clocks_[rank].ended - begin_ - begin_of(rank));
    }
    for (const RankClock& clock : clocks_) {
      TraceRankTimes& times = out_.ranks.emplace_back(clock.times);
      assert(times.total() <= out_.end && "a rank does nothing before its beginning");
      times.idle += out_.end - times.total();
    }
    out_.messages = messages_.size();
    out_.messages_moving = to_seconds(message_time_);
    out_.calls = call_times(trace_, called_, [&](std::uint32_t collective) {
      return wiring_.collective(collective).algorithm;
    });
    return std::move(out_);
  }

  /// Where the first rank stands that is at a collective or message and cannot go on.
  [[noreturn]] void fail_stuck() const {
    for (std::uint32_t c = 0; c < calls_.size(); ++c) {
      const TraceMatches::Call& match = matches_.calls[c];
      if (calls_[c].missing == 0 || calls_[c].missing == match.members) continue;
      std::uint32_t here = kNobody, absent = kNobody;
      for (std::uint32_t m = 0; m < match.members; ++m) {
        const std::uint32_t n = matches_.nodes[match.first + m];
        (nodes_[n].unmet == 0 ? here : absent) = n;
      }
      fail_waits(here, absent);
    }
    for (const TraceMatches::Message& message : matches_.messages) {
      if (nodes_[message.receive].unmet == 0 && nodes_[message.send].unmet > 0) {
        fail_waits(message.receive, message.send);
      }
    }
    assert(false && "stuck, but nobody waits");
    std::abort();
  }

 private:
  /// When it last did anything, since its begin.
  [[nodiscard]] StepTime since_begin() const { return now_ - begin_; }
  void set_clock(StepTime now) {
    now_ = now;
    if (since_begin() > kLongestReplay) fail_long();
  }

  [[nodiscard]] StepTime begin_of(std::uint32_t rank) const {
    return trace_.begins.empty() ? StepTime{} : trace_.begins[rank];
  }

  enum EventKind : std::uint32_t { kNodeDone, kCallStarts, kMessageArrives, kRankBegins };

  /// Its duration is in the trace: what few bytes all nodes have here, all of them go through.
  struct Node {
    std::uint32_t unmet = 0;
    std::uint32_t successors = 0;  ///< first of them
    std::uint32_t subject = 0;     ///< stream, call or message
    std::uint32_t rank : 24 = 0;
    std::uint32_t kind : 8 = 0;
  };
  struct Stream {
    bool busy = false;
    std::vector<std::uint32_t> waiting;  ///< a heap, the lowest node on top
  };
  struct RankClock {
    std::uint32_t computing = 0, moving = 0, waiting = 0;
    StepTime since;
    StepTime ended;  ///< its last node that is done
    TraceRankTimes times;
  };
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
  /// Messages of a size from one rank to another.
  struct Transfer {
    TraceTransfer wire;
    std::uint32_t channel = 0;
  };
  struct Message {
    std::uint32_t transfer : 29 = 0;
    bool left : 1 = false, posted : 1 = false, arrived : 1 = false;
    std::uint32_t next = kNobody;  ///< behind it in the channel
    StepTime start;
  };
  /// Messages of one rank to another, one at a time.
  struct Channel {
    std::uint32_t running = kNobody, last = kNobody;
  };
  struct FlowUser {
    bool is_call = false;
    std::uint32_t index = 0;
  };

  // --- set-up

  void set_up_nodes() {
    TraceSuccessors graph = successors_of(trace_);
    out_.longest_path = longest_path(trace_, graph);
    nodes_.resize(trace_.size());
    unfinished_ = trace_.size();
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].kind = static_cast<std::uint32_t>(trace_.nodes[n].kind) & 0xFFU;
      nodes_[n].unmet = static_cast<std::uint32_t>(trace_.dependencies_of(n).size());
      nodes_[n].successors = graph.first[n];
    }
    successors_ = std::move(graph.list);
    end_successors_ = static_cast<std::uint32_t>(successors_.size());
    clocks_.resize(static_cast<std::size_t>(trace_.ranks));
  }

  void set_up_streams() {
    std::uint32_t streams = 0;
    for (int rank = 0; rank < trace_.ranks; ++rank) {
      const std::uint32_t end = trace_.rank_first[static_cast<std::size_t>(rank) + 1];
      std::uint32_t own = 0;
      for (auto n = trace_.rank_first[static_cast<std::size_t>(rank)]; n < end; ++n) {
        nodes_[n].rank = static_cast<std::uint32_t>(rank) & 0xFFFFFFU;
        if (!takes_time(kind(n))) continue;
        const std::uint16_t stream = trace_.nodes[n].stream;
        nodes_[n].subject = kNobody;
        if (stream == TraceNode::kNoStream) continue;
        nodes_[n].subject = streams + stream;
        own = std::max(own, stream + 1U);
      }
      streams += own;
    }
    streams_.resize(streams);
  }

  void set_up_calls() {
    calls_.resize(matches_.calls.size());
    groups_.resize(trace_.groups.size());
    for (std::uint32_t c = 0; c < calls_.size(); ++c) {
      const TraceMatches::Call& call = matches_.calls[c];
      calls_[c].missing = call.members;
      for (std::uint32_t m = 0; m < call.members; ++m) {
        nodes_[matches_.nodes[call.first + m]].subject = c;
      }
    }
    called_.resize(trace_.collectives.size());
  }

  void set_up_messages() {
    std::map<std::pair<int, int>, std::uint32_t> channels;
    std::map<std::tuple<int, int, double>, std::uint32_t> transfers;
    std::tuple<int, int, double> last{-1, -1, 0};  // messages lie by sender and receiver
    std::uint32_t transfer = 0;
    messages_.resize(matches_.messages.size());
    for (std::uint32_t m = 0; m < messages_.size(); ++m) {
      const auto [send, receive] = matches_.messages[m];
      nodes_[send].subject = m;
      nodes_[receive].subject = m;
      const TraceMessage& sent = trace_.messages[trace_.nodes[send].subject];
      const std::pair ends{static_cast<int>(nodes_[send].rank), sent.peer};
      const std::tuple key{ends.first, ends.second, sent.size.base_units()};
      if (key != last) {
        last = key;
        const auto [at, added] =
            transfers.try_emplace(key, static_cast<std::uint32_t>(transfers_.size()));
        transfer = at->second;
        if (added) {
          const auto channel =
              channels.try_emplace(ends, static_cast<std::uint32_t>(channels.size())).first->second;
          transfers_.push_back({wiring_.message(ends.first, ends.second, sent.size), channel});
        }
      }
      messages_[m].transfer = transfer & 0x1FFF'FFFFU;
    }
    assert(transfers_.size() <= 0x2000'0000U && "of a billion nodes at most, half of them sends");
    channels_.resize(channels.size());
    users_.resize(network_.flows());
  }

  // --- nodes

  static bool computes(TraceNodeKind kind) {
    return kind == TraceNodeKind::compute || kind == TraceNodeKind::memory;
  }
  [[nodiscard]] TraceNodeKind kind(std::uint32_t n) const {
    return static_cast<TraceNodeKind>(nodes_[n].kind);
  }
  [[nodiscard]] std::uint32_t successors_end(std::uint32_t n) const {
    return n + 1 < nodes_.size() ? nodes_[n + 1].successors : end_successors_;
  }

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

  void begin_rank(std::uint32_t rank) {
    const std::uint32_t end = trace_.rank_first[rank + 1];
    for (std::uint32_t n = trace_.rank_first[rank]; n < end; ++n) {
      if (nodes_[n].unmet == 0) ready_.push_back(n);
    }
  }

  /// In the order in which they became ready.
  void handle_ready() {
    std::size_t next = 0;  // beginning one may make others ready
    while (next < ready_.size()) begin(ready_[next++]);
    ready_.clear();
  }

  void begin(std::uint32_t n) {
    switch (kind(n)) {
      case TraceNodeKind::collective:
        return join_call(n);
      case TraceNodeKind::send:
        return post_send(n);
      case TraceNodeKind::receive:
        return post_receive(n);
      default:
        break;
    }
    const std::uint32_t s = nodes_[n].subject;
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
    if (options_.record_times) out_.starts[n] = since_begin();
    if (computes(kind(n))) ++book(nodes_[n].rank).computing;
    if (kind(n) == TraceNodeKind::exchange) ++book(nodes_[n].rank).moving;
    queue_.push(now_ + trace_.nodes[n].duration, kNodeDone, n);
  }

  void node_done(std::uint32_t n) {
    if (computes(kind(n))) --book(nodes_[n].rank).computing;
    if (kind(n) == TraceNodeKind::exchange) --book(nodes_[n].rank).moving;
    finish(n);
    const std::uint32_t s = nodes_[n].subject;
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

  void finish(std::uint32_t n) {
    --unfinished_;
    clocks_[nodes_[n].rank].ended = now_;
    if (options_.record_times) out_.ends[n] = since_begin();
    const std::uint32_t end = successors_end(n);
    for (std::uint32_t s = nodes_[n].successors; s < end; ++s) {
      if (--nodes_[successors_[s]].unmet == 0) ready_.push_back(successors_[s]);
    }
  }

  // --- collectives

  void join_call(std::uint32_t n) {
    const std::uint32_t c = nodes_[n].subject;
    Call& call = calls_[c];
    const TraceMatches::Call& match = matches_.calls[c];
    if (options_.record_times) out_.starts[n] = since_begin();
    if (call.missing == match.members) call.first = now_;
    ++book(nodes_[n].rank).waiting;
    if (--call.missing > 0) return;
    call.all = now_;
    Group& group = groups_[trace_.collectives[match.collective].group];
    if (group.busy) {
      group.queue.push_back(c);
      return;
    }
    group.busy = true;
    start_call(c);
  }

  void start_call(std::uint32_t c) {
    const TraceMatches::Call& match = matches_.calls[c];
    for (std::uint32_t m = 0; m < match.members; ++m) {
      RankClock& clock = book(nodes_[matches_.nodes[match.first + m]].rank);
      --clock.waiting;
      ++clock.moving;
    }
    const StepTime latency =
        match.members > 1 ? wiring_.collective(match.collective).latency : StepTime{};
    queue_.push(now_ + latency, kCallStarts, c);
  }

  void move_call(std::uint32_t c) {
    const TraceMatches::Call& match = matches_.calls[c];
    if (match.members < 2) return call_ended(c);
    const TraceTransfer& transfer = wiring_.collective(match.collective);
    start_flow(transfer, {true, c});
  }

  void call_ended(std::uint32_t c) {
    const TraceMatches::Call& match = matches_.calls[c];
    CallTotals& totals = called_[match.collective];
    totals.moving += now_ - calls_[c].all;
    totals.waiting += calls_[c].all - calls_[c].first;
    ++totals.calls;
    for (std::uint32_t m = 0; m < match.members; ++m) {
      const std::uint32_t n = matches_.nodes[match.first + m];
      --book(nodes_[n].rank).moving;
      finish(n);
    }
    Group& group = groups_[trace_.collectives[match.collective].group];
    if (group.next == group.queue.size()) {
      group.queue.clear();
      group.next = 0;
      group.busy = false;
      return;
    }
    start_call(group.queue[group.next++]);
  }

  // --- messages

  void post_send(std::uint32_t n) {
    const std::uint32_t m = nodes_[n].subject;
    if (options_.record_times) out_.starts[n] = since_begin();
    ++book(nodes_[n].rank).moving;
    Message& message = messages_[m];
    message.left = true;
    message.start = now_;
    if (message.posted) receiver_moves(m);
    const Transfer& transfer = transfers_[message.transfer];
    Channel& channel = channels_[transfer.channel];
    if (channel.running == kNobody) {
      channel.running = m;
      start_flow(transfer.wire, {false, m});
    } else {
      messages_[channel.last].next = m;
    }
    channel.last = m;
  }

  void receiver_moves(std::uint32_t m) {
    RankClock& clock = book(nodes_[matches_.messages[m].receive].rank);
    --clock.waiting;
    ++clock.moving;
  }

  void post_receive(std::uint32_t n) {
    Message& message = messages_[nodes_[n].subject];
    if (options_.record_times) out_.starts[n] = since_begin();
    message.posted = true;
    if (message.arrived) return finish(n);
    RankClock& clock = book(nodes_[n].rank);
    message.left ? ++clock.moving : ++clock.waiting;
  }

  void message_left(std::uint32_t m) {
    const Message& message = messages_[m];
    const Transfer& transfer = transfers_[message.transfer];
    queue_.push(now_ + transfer.wire.latency, kMessageArrives, m);
    Channel& channel = channels_[transfer.channel];
    channel.running = message.next;
    if (channel.running != kNobody) {
      const Message& next = messages_[channel.running];
      start_flow(transfers_[next.transfer].wire, {false, channel.running});
    }
  }

  void message_arrived(std::uint32_t m) {
    Message& message = messages_[m];
    const auto [send, receive] = matches_.messages[m];
    message.arrived = true;
    message_time_ += now_ - message.start;
    --book(nodes_[send].rank).moving;
    finish(send);
    if (!message.posted) return;
    --book(nodes_[receive].rank).moving;
    finish(receive);
  }

  // --- dispatch

  void start_flow(const TraceTransfer& transfer, FlowUser user) {
    users_[transfer.flow] = user;
    network_.start(transfer.flow, transfer.amount, now_);
    ++out_.flows;
  }
  void end_of(FlowIndex flow) {
    const FlowUser user = users_[flow];
    user.is_call ? call_ended(user.index) : message_left(user.index);
  }
  void handle(const Event& event) {
    switch (static_cast<EventKind>(event.kind)) {
      case kNodeDone:
        return node_done(event.subject);
      case kCallStarts:
        return move_call(event.subject);
      case kMessageArrives:
        return message_arrived(event.subject);
      case kRankBegins:
        return begin_rank(event.subject);
    }
  }

  [[noreturn]] void fail_long() const {
    fail_trace(trace_.files.front(), "a step of more than 100 days on this cluster",
               "shorter ones");
  }
  [[noreturn]] void fail_waits(std::uint32_t here, std::uint32_t absent) const {
    const auto text = [&](std::uint32_t n) {
      return node_text(trace_.ids[n], trace_.strings[trace_.names[n]]);
    };
    const std::uint32_t other = nodes_[absent].rank;
    // What that rank stands at: its first node that is ready and cannot be done.
    std::uint32_t stands = kNobody;
    for (auto n = trace_.rank_first[other]; n < trace_.rank_first[other + 1]; ++n) {
      const bool waits = nodes_[n].unmet == 0 && !takes_time(kind(n)) && !is_done(n);
      if (waits) {
        stands = n;
        break;
      }
    }
    fail_trace(trace_.files[nodes_[here].rank],
               fmt::format("rank {} at {}, where it waits for {} of rank {}, which stands at {}",
                           nodes_[here].rank, text(here), text(absent), other,
                           stands == kNobody ? "nothing" : text(stands)),
               "ranks that come to collectives and messages in an order that lets all go on");
  }
  [[nodiscard]] bool is_done(std::uint32_t n) const {
    const std::uint32_t subject = nodes_[n].subject;
    if (kind(n) == TraceNodeKind::collective) return calls_[subject].missing == 0;
    return messages_[subject].arrived;
  }

  const Trace& trace_;
  const TraceMatches& matches_;
  const TraceReplayOptions& options_;
  TraceWiring wiring_;
  FlowNetwork& network_;
  EventQueue queue_;
  StepTime begin_, now_;
  std::size_t unfinished_ = 0;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> successors_;
  std::uint32_t end_successors_ = 0;
  std::vector<std::uint32_t> ready_;
  std::vector<Stream> streams_;
  std::vector<RankClock> clocks_;
  std::vector<Call> calls_;
  std::vector<Group> groups_;
  std::vector<Message> messages_;
  std::vector<Transfer> transfers_;
  std::vector<Channel> channels_;
  std::vector<FlowUser> users_;     ///< by flow
  std::vector<CallTotals> called_;  ///< by Trace::collectives
  StepTime message_time_;
  TraceReplay out_;
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
