#include "sim/step/replay.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/core/random.hpp"
#include "sim/fabric/dcqcn_start.hpp"
#include "sim/step/message_delays.hpp"

namespace lockstep {

class RunningStep::State {
  static constexpr std::uint32_t kNoExchange = UINT32_MAX;
  static constexpr std::uint64_t kPassesBetweenReports = 1024;  // some milliseconds

  enum class Wait : std::uint8_t { none, input, data, send, layer, exchange, barrier, done };

  enum EventKind : std::uint32_t {
    segment_done,
    cover_ends,
    message_arrived,
    collective_starts,
    exchange_starts,
    optimiser_done,
    flow_starts
  };

  struct Actor {
    std::uint32_t stage = 0;
    std::uint32_t replica_class = 0;
    std::uint32_t item = 0;
    std::uint32_t segment = 0;   ///< within the item
    std::uint32_t axis = 0;      ///< of the segment's flows: the one under way
    StepTime all_there;          ///< of it: when all had come and its own compute was done
    std::uint32_t posted = 0;    ///< data-parallel collectives of the stage, in all
    std::uint32_t reduced = 0;   ///< of them, those that are done
    bool in_collective = false;  ///< waits for its group, or exchanges with it
    Wait wait = Wait::none;
    std::uint32_t landing = 0;  ///< messages sent that have not arrived
    StepTime since;             ///< of the wait
    double slowdown = 1.0;
  };

  /// Messages of one actor in one direction: one on the wire, the others queue behind it.
  struct Channel {
    std::uint32_t sent = 0;  ///< handed over by the sender
    std::uint32_t delivered = 0;
    StepTime on_wire;              ///< start of the transfer under way
    std::vector<StepTime> posted;  ///< of messages not yet delivered, oldest at `oldest`
    std::size_t oldest = 0;
  };

  /// Actors of one stage whose experts exchange tokens, on the network or inside an NVLink domain:
  /// none goes on before all have theirs.
  struct Block {
    std::vector<std::uint32_t> actors;
    std::uint32_t arrived = 0;
    StepTime all_there;  ///< when the last of them arrived
  };

  /// A flow that jitter holds back.
  struct LateFlow {
    std::uint32_t starts = 0;  ///< so far
    bool waits = false;
    Bytes bytes;
  };

  /// Actors of one stage that sum gradients and gather weights together.
  struct DataGroupState {
    std::uint32_t stage = 0;
    std::uint32_t number = 0;  ///< among the groups of its kind
    std::vector<std::uint32_t> actors;
    std::vector<StepTime> posted_at;  ///< by collective: when the last of them posted it
    std::uint32_t arrived = 0;        ///< actors that have nothing left to do before the next one
    std::uint32_t collective = 0;     ///< under way, or the last
    StepTime started_at;              ///< of it
  };

 public:
  State(const StepPlan& plan, const std::vector<ReplicaClass>& classes, const Wiring& wiring,
        bool record, Seconds jitter, PassesDone passes_done)
      : plan_(plan),
        classes_(classes),
        wiring_(&wiring),
        network_(wiring.network()),
        record_(record),
        jitter_(jitter),
        passes_done_(std::move(passes_done)),
        next_report_(passes_done_ ? kPassesBetweenReports : UINT64_MAX),
        late_(jitter > Seconds{} ? wiring.flows().size() : 0),
        stages_(plan.stages.size()),
        chunks_(static_cast<std::size_t>(plan.shape.chunks)) {
    set_up();
  }

  void begin(StepTime now) {
    begin_ = now_ = now;
    for (std::uint32_t a = 0; a < actors_.size(); ++a) begin_program(a);
  }
  [[nodiscard]] bool done() const { return unfinished_ == 0; }
  [[nodiscard]] StepTime next_event() const { return queue_.empty() ? kNever : queue_.next_time(); }

  void handle_events(StepTime now) {
    if (next_event() > now) return;
    check_clock(now);
    now_ = now;
    while (!queue_.empty() && queue_.next_time() == now_) handle(queue_.pop());
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) {
    check_clock(now);
    now_ = now;
    const FlowIndex first = wiring_->flows().front().flow;
    for (const FlowIndex flow : flows) end_of(wiring_->flows()[flow - first]);
  }

  void rewire(const Wiring& wiring, StepTime now) {
    assert(wiring.flows().size() == wiring_->flows().size());
    for (std::size_t i = 0; i < wiring.flows().size(); ++i) {
      const FlowIndex from = wiring_->flows()[i].flow, to = wiring.flows()[i].flow;
      if (!network_.active(from)) continue;
      network_.hand_over(from, to, now);
      if (!wiring.stalled(to)) network_.resume(to, now);
    }
    wiring_ = &wiring;
  }

  ReplayResult finish() {
    if (passes_done_) passes_done_(result_.items_run);
    result_.end = now_ - begin_;
    for (ActorTimes& t : result_.actors) {
      waited_for_all(t) += result_.end - t.finished;
      if (t.total() != result_.end)
        throw std::logic_error("an actor's times do not add up to the step");
    }
    return std::move(result_);
  }

 private:
  /// Where an actor's wait for all others belongs. Of one stage there is no other that computes:
  /// the others are replicas, which were slowed or whose ways through the fabric are slower.
  [[nodiscard]] StepTime& waited_for_all(ActorTimes& t) const {
    return stages_ == 1 ? t.straggler : t.bubble;
  }

  /// A flow that would take longer ends after kLongestSpan, with bytes left.
  void check_clock(StepTime now) const {
    constexpr StepTime kEnd{static_cast<std::uint64_t>(kLongestSpan.base_units() * 1e12)};
    if (now - begin_ >= kEnd) throw ClockOverflow();
  }

  void set_up() {
    const std::size_t count = classes_.size() * stages_;
    actors_.resize(count);
    channels_.resize(2 * count);
    arrived_.assign(2 * count * chunks_, 0);
    result_.actors.resize(count);
    for (const ReplicaClass& c : classes_) result_.variants.push_back(c.variant);
    exchange_ready_.assign(classes_.size() * plan_.exchanges.size(), 0);
    exchange_posted_.resize(exchange_ready_.size());
    exchange_of_.assign(stages_, kNoExchange);
    if (wiring_->slows_messages()) delays_.emplace(count, chunks_, exchange_ready_.size());
    for (std::uint32_t e = 0; e < plan_.exchanges.size(); ++e) {
      for (const std::uint32_t s : plan_.exchanges[e].stages) exchange_of_[s] = e;
    }
    unfinished_ = count;
    waiting_at_barrier_ = count;
    set_up_groups();
    if (record_) {
      std::size_t items = 0;
      for (const auto& of_class : classes_) {
        for (std::size_t s = 0; s < stages_; ++s) {
          first_record_.push_back(items);
          items += plan_.stage_of(of_class.variant, s).items.size();
        }
      }
      result_.items.resize(items);
    }
    block_of_.resize(count);
    for (const std::vector<std::size_t>& block : blocks_of(classes_)) {
      for (std::size_t s = 0; s < stages_; ++s) {
        Block& of_stage = blocks_.emplace_back();
        for (const std::size_t c : block) {
          const std::size_t actor = c * stages_ + s;
          block_of_[actor] = static_cast<std::uint32_t>(blocks_.size() - 1);
          of_stage.actors.push_back(static_cast<std::uint32_t>(actor));
        }
      }
    }
    for (std::size_t a = 0; a < count; ++a) {
      actors_[a].stage = static_cast<std::uint32_t>(a % stages_);
      actors_[a].replica_class = static_cast<std::uint32_t>(a / stages_);
      const auto& slowdown = classes_[a / stages_].slowdown;
      if (!slowdown.empty()) actors_[a].slowdown = slowdown[a % stages_];
    }
  }

  void set_up_groups() {
    first_group_.resize(stages_);
    for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
      const auto groups = data_groups_of(classes_, static_cast<DataGroupKind>(kind));
      group_of_class_[kind].resize(classes_.size());
      for (std::size_t g = 0; g < groups.size(); ++g) {
        for (const std::size_t c : groups[g]) {
          group_of_class_[kind][c] = static_cast<std::uint32_t>(g);
        }
      }
      for (std::size_t s = 0; s < stages_; ++s) {
        first_group_[s][kind] = static_cast<std::uint32_t>(groups_.size());
        const bool used = std::ranges::any_of(
            plan_.stages[s].channels,
            [kind](const DataChannel& c) { return static_cast<std::size_t>(c.group) == kind; });
        for (std::size_t g = 0; used && g < groups.size(); ++g) {
          DataGroupState& state = groups_.emplace_back();
          state.stage = static_cast<std::uint32_t>(s);
          state.number = static_cast<std::uint32_t>(g);
          for (const std::size_t c : groups[g]) {
            state.actors.push_back(static_cast<std::uint32_t>(c * stages_ + s));
          }
          state.posted_at.resize(plan_.stages[s].collectives.size());
        }
      }
    }
    if (!record_) return;
    for (const DataGroupState& group : groups_) result_.data_groups.push_back(group.actors);
  }
  /// The group with which an actor runs a collective of its stage, as an index.
  [[nodiscard]] std::uint32_t group_of(const Actor& a, std::uint32_t collective) const {
    const StagePlan& stage = plan_.stages[a.stage];
    const auto kind =
        static_cast<std::size_t>(stage.channels[stage.collectives[collective].channel].group);
    return first_group_[a.stage][kind] + group_of_class_[kind][a.replica_class];
  }

  [[nodiscard]] const StagePlan& plan_of(const Actor& a) const {
    return plan_.stage_of(classes_[a.replica_class].variant, a.stage);
  }
  [[nodiscard]] std::uint32_t& arrived(std::size_t actor, bool forward, std::size_t chunk) {
    return arrived_[slot(actor, forward, chunk)];
  }
  [[nodiscard]] std::size_t slot(std::size_t actor, bool forward, std::size_t chunk) const {
    return (2 * actor + (forward ? 0 : 1)) * chunks_ + chunk;
  }
  /// When all input of the actor's next item has come, messages that slow links delay on time.
  [[nodiscard]] StepTime input_on_time(std::uint32_t index) const {
    const Actor& a = actors_[index];
    const ProgramItem* item = &plan_of(a).items[a.item];
    StepTime last;
    for (const ProgramItem* of = item; of <= item + (item->work.pairs ? 1 : 0); ++of) {
      if (!of->needs_message) continue;
      const std::size_t from = slot(index, is_forward(of->work.pass), of->work.chunk);
      last = std::max(last, delays_->arrival(from, of->work.micro_batch));
    }
    return last;
  }
  /// Whether the message that an item needs is there, if it needs one.
  [[nodiscard]] bool has_input(std::uint32_t index, const ProgramItem& item) {
    return !item.needs_message ||
           arrived(index, is_forward(item.work.pass), item.work.chunk) > item.work.micro_batch;
  }
  /// The same of all that starts with the actor's next item.
  [[nodiscard]] bool can_start(std::uint32_t index) {
    const Actor& a = actors_[index];
    const ProgramItem* item = &plan_of(a).items[a.item];
    return has_input(index, *item) && (!item->work.pairs || has_input(index, item[1]));
  }
  void wait_for(Actor& a, Wait wait) {
    a.wait = wait;
    a.since = now_;
  }

  // --- an actor's program ---------------------------------------------------------------------

  void begin_program(std::uint32_t index) {
    Actor& a = actors_[index];
    post_up_to(a, plan_of(a).gathers_first);
    advance(index);
  }

  /// Starts whatever the actor can start now, or notes what it waits for.
  void advance(std::uint32_t index) {
    Actor& a = actors_[index];
    const StagePlan& plan = plan_of(a);
    a.wait = Wait::none;
    if (a.item == plan.items.size()) return drain(index);
    const ProgramItem& item = plan.items[a.item];
    const Segment& segment = plan.segments[item.first_segment + a.segment];
    if (a.segment == 0) {
      if (!can_start(index)) return wait_for(a, Wait::input);
      if (delays_) delays_->starts(index, input_on_time(index), now_);
      if (record_) result_.items[first_record_[index] + a.item].start = now_ - begin_;
    }
    if (segment.needs > a.reduced) return wait_for(a, Wait::data);
    ActorTimes& times = result_.actors[index];
    StepTime compute = segment.compute;
    if (a.slowdown != 1.0) {
      compute = at_pace(segment.compute, a);
      times.slow += compute - segment.compute;
    }
    times.compute += segment.compute;
    times.tensor += segment.tensor;
    // What goes on beside flows comes when they run.
    for (const StepTime covered : segment.covered) compute = compute - at_pace(covered, a);
    queue_.push(now_ + compute + segment.tensor, segment_done, index);
  }

  /// What a span of compute takes on the actor's GPUs.
  static StepTime at_pace(StepTime compute, const Actor& a) {
    if (a.slowdown == 1.0) return compute;
    return {static_cast<std::uint64_t>(std::llround(static_cast<double>(compute.ps) * a.slowdown))};
  }

  void on_segment_done(std::uint32_t index) {
    actors_[index].axis = 0;
    exchange_inside_layers(index);
  }
  /// Starts the next flow of the segment, or ends it.
  void exchange_inside_layers(std::uint32_t index) {
    Actor& a = actors_[index];
    const Segment& segment = current_segment(a);
    while (a.axis < kAxes && segment.amounts[a.axis] <= 0 && !meets_others(index, segment)) {
      ++a.axis;
    }
    if (a.axis == kAxes) return finish_segment(index);
    wait_for(a, Wait::layer);
    if (is_of_experts(static_cast<Axis>(a.axis))) {
      Block& block = blocks_[block_of_[index]];
      if (++block.arrived < block.actors.size()) return;
      block.arrived = 0;
      block.all_there = now_;
      if (segment.amounts[a.axis] <= 0) return go_on_together(block);
    }
    start_flow(wiring_->actor(index).layer[a.axis], segment.amounts[a.axis]);
  }
  /// Whether the actor exchanges tokens with others that may be late, and no flow moves them: their
  /// time has passed with that of compute, and what is left is to wait for the last.
  [[nodiscard]] bool meets_others(std::uint32_t index, const Segment& segment) const {
    constexpr auto kExperts = static_cast<std::uint32_t>(Axis::expert);
    return actors_[index].axis == kExperts && segment.closed[kExperts] > StepTime{} &&
           blocks_[block_of_[index]].actors.size() > 1;
  }
  void go_on_together(const Block& block) {
    for (const std::uint32_t member : block.actors) {
      Actor& a = actors_[member];
      result_.actors[member].straggler += now_ - a.since;
      ++a.axis;
      exchange_inside_layers(member);
    }
  }
  void layer_flow_ended(std::uint32_t subject) {
    const std::uint32_t index = subject / kAxes, axis = subject % kAxes;
    if (!is_of_experts(static_cast<Axis>(axis))) {
      return layer_exchanged(index, axis, actors_[index].since);
    }
    const Block& block = blocks_[block_of_[index]];
    for (const std::uint32_t member : block.actors) {
      layer_exchanged(member, axis, block.all_there);
    }
  }
  /// `started`: when all that take part were there. What the actor computed since it was there
  /// itself is no wait.
  void layer_exchanged(std::uint32_t index, std::uint32_t axis, StepTime started) {
    Actor& a = actors_[index];
    const Segment& segment = current_segment(a);
    const StepTime covered = at_pace(segment.covered[axis], a);
    const StepTime least = a.since + segment.least[axis] + (covered - segment.covered[axis]);
    a.all_there = std::max(started, a.since + covered);
    if (now_ < least) return queue_.push(least, cover_ends, index);
    layer_done(index);
  }
  void layer_done(std::uint32_t index) {
    Actor& a = actors_[index];
    const StepTime covered = at_pace(current_segment(a).covered[a.axis], a);
    const StepTime computed = a.since + covered, met = std::min(a.all_there, now_);
    result_.actors[index].straggler += met - computed;
    result_.actors[index].layer[a.axis] += now_ - met;
    ++a.axis;
    exchange_inside_layers(index);
  }
  [[nodiscard]] const Segment& current_segment(const Actor& a) const {
    const StagePlan& plan = plan_of(a);
    return plan.segments[plan.items[a.item].first_segment + a.segment];
  }

  void finish_segment(std::uint32_t index) {
    Actor& a = actors_[index];
    const StagePlan& plan = plan_of(a);
    const ProgramItem& item = plan.items[a.item];
    const Segment& segment = current_segment(a);
    post_up_to(a, segment.posts);
    if (++a.segment < item.segments) return advance(index);
    if (record_) result_.items[first_record_[index] + a.item].end = now_ - begin_;
    a.segment = 0;
    ++a.item;
    if (++result_.items_run == next_report_) report_passes();
    if (send_outputs(index, item) && plan_.blocking_sends) return wait_for(a, Wait::send);
    advance(index);
  }

  void report_passes() {
    next_report_ += kPassesBetweenReports;
    passes_done_(result_.items_run);
  }

  // --- pipeline messages ----------------------------------------------------------------------

  /// Sends what an item that has just ended leaves, of a pair that of both; false if nothing.
  bool send_outputs(std::uint32_t index, const ProgramItem& item) {
    if (item.work.pairs) return false;
    const ProgramItem* before = actors_[index].item > 1 ? &item - 1 : nullptr;
    const bool both = before != nullptr && before->work.pairs && before->sends_message;
    if (both) send(index, before->direction);
    if (item.sends_message) send(index, item.direction);
    return both || item.sends_message;
  }

  void send(std::uint32_t index, std::uint32_t direction) {
    const std::uint32_t number = 2 * index + direction;
    Channel& channel = channels_[number];
    ++channel.sent;
    ++actors_[index].landing;
    channel.posted.push_back(now_);
    if (delays_) delays_->sent(number, index);
    const FlowIndex flow = wiring_->actor(index).message[direction];
    if (!network_.active(flow) && !is_late(flow)) start_message(number);
  }

  void start_message(std::uint32_t number) {
    channels_[number].on_wire = now_;
    start_flow(wiring_->actor(number / 2).message[number % 2], plan_.message.base_units());
  }

  void message_left(std::uint32_t number) {
    const std::uint32_t index = number / 2;
    const std::size_t direction = number % 2;
    const ActorWires& wires = wiring_->actor(index);
    queue_.push(now_ + wires.message_latency[direction], message_arrived, number);
    Channel& channel = channels_[number];
    if (record_) {
      const bool forward =
          plan_of(actors_[index]).message_targets[direction][channel.delivered].forward;
      result_.messages.push_back({index, static_cast<std::uint8_t>(direction), forward,
                                  channel.delivered, channel.on_wire - begin_,
                                  now_ + wires.message_latency[direction] - begin_});
    }
    ++channel.delivered;
    if (channel.delivered < channel.sent) start_message(number);
  }

  /// What slow links added to a message that is there now.
  [[nodiscard]] StepTime added_by_links(std::uint32_t number, StepTime posted) const {
    const ActorWires& wires = wiring_->actor(number / 2);
    const StepTime latency = wires.message_latency[number % 2], all = now_ - posted;
    if (all <= latency) return {};
    const double part = wires.slowed[number % 2] * static_cast<double>((all - latency).ps);
    return {static_cast<std::uint64_t>(part)};
  }

  void on_message_arrived(std::uint32_t number) {
    const std::uint32_t sender = number / 2;
    const std::size_t direction = number % 2;
    Channel& channel = channels_[number];
    const StepTime posted = channel.posted[channel.oldest++];
    if (channel.oldest == channel.posted.size()) {
      channel.posted.clear();
      channel.oldest = 0;
    }
    Actor& from = actors_[sender];
    const StepTime added = delays_ ? added_by_links(number, posted) : StepTime{};
    if (--from.landing == 0 && from.wait == Wait::send) {
      result_.actors[sender].message += now_ - from.since;
      if (delays_) delays_->waited_to_send(sender, std::min(added, now_ - from.since));
      advance(sender);
    }
    const auto stages = static_cast<std::uint32_t>(stages_);
    const std::uint32_t next =
        direction == 0 ? (from.stage + 1) % stages : (from.stage + stages - 1) % stages;
    const std::uint32_t receiver = from.replica_class * stages + next;
    auto& received = arrived_count_[number];
    const MessageTarget target = plan_of(from).message_targets[direction][received++];
    ++arrived(receiver, target.forward, target.chunk);
    StepTime handed_over = posted;
    if (delays_) {
      handed_over = delays_->arrived(number, slot(receiver, target.forward, target.chunk), now_,
                                     posted, added);
    }
    Actor& to = actors_[receiver];
    if (to.wait != Wait::input || !can_start(receiver)) return;
    // Until the message was handed over the sender was computing; after that it was on its way.
    const StepTime left = std::clamp(posted, to.since, now_);
    StepTime bubble = left - to.since;
    if (delays_) {
      bubble = std::min(
          bubble, delays_->bubble(receiver, to.since, handed_over, input_on_time(receiver), now_));
    }
    result_.actors[receiver].bubble += bubble;
    result_.actors[receiver].message += now_ - to.since - bubble;
    advance(receiver);
  }

  // --- collectives between replicas -------------------------------------------------------------

  /// `count`: of the stage's collectives, those of before too.
  void post_up_to(Actor& a, std::uint32_t count) {
    while (a.posted < count) {
      groups_[group_of(a, a.posted)].posted_at[a.posted] = now_;
      ++a.posted;
      join_next_collective(a);
    }
  }

  /// A rank runs one collective after the other; each begins when all ranks of its group are there.
  void join_next_collective(Actor& a) {
    if (a.in_collective || a.posted == a.reduced) return;
    a.in_collective = true;
    const std::uint32_t index = group_of(a, a.reduced);
    DataGroupState& group = groups_[index];
    if (++group.arrived < group.actors.size()) return;
    group.arrived = 0;
    group.collective = a.reduced;
    group.started_at = now_;
    queue_.push(now_ + plan_.stages[group.stage].collectives[group.collective].latency,
                collective_starts, index);
  }

  void on_collective_starts(std::uint32_t index) {
    const DataGroupState& group = groups_[index];
    const StagePlan& plan = plan_.stages[group.stage];
    const DataCollective& c = plan.collectives[group.collective];
    const double unit = Wiring::data_unit(plan.channels[c.channel].cost);
    start_flow(wiring_->data(group.stage, c.channel, group.number), c.payload.base_units() * unit);
  }

  void collective_ended(const WiredFlow& flow) {
    const StagePlan& plan = plan_.stages[flow.subject];
    const auto kind = static_cast<std::size_t>(plan.channels[flow.channel].group);
    const std::uint32_t number = first_group_[flow.subject][kind] + flow.group;
    const DataGroupState& group = groups_[number];
    if (record_)
      result_.collectives.push_back(
          {number, group.collective, group.started_at - begin_, now_ - begin_});
    const StepTime posted_at = group.posted_at[group.collective];
    for (const std::uint32_t index : group.actors) {
      ++actors_[index].reduced;
      actors_[index].in_collective = false;
    }
    for (const std::uint32_t index : group.actors) join_next_collective(actors_[index]);
    for (const std::uint32_t index : group.actors) {
      Actor& a = actors_[index];
      if (a.wait != Wait::data || a.reduced < data_needed(a)) continue;
      const StepTime all_there = std::clamp(posted_at, a.since, now_);
      result_.actors[index].straggler += all_there - a.since;
      result_.actors[index].data += now_ - all_there;
      advance(index);
    }
  }
  [[nodiscard]] std::uint32_t data_needed(const Actor& a) const {
    const StagePlan& plan = plan_of(a);
    if (a.item < plan.items.size()) return current_segment(a).needs;
    return optimised_ ? static_cast<std::uint32_t>(plan.collectives.size()) : plan.reduces_end;
  }

  // --- the end of the step
  // ------------------------------------------------------------------------

  /// All passes are done: reduce what is left, meet the others, optimise, gather.
  void drain(std::uint32_t index) {
    Actor& a = actors_[index];
    const StagePlan& plan = plan_of(a);
    if (optimised_) {
      if (a.reduced < plan.collectives.size()) return wait_for(a, Wait::data);
      a.wait = Wait::done;
      result_.actors[index].finished = now_ - begin_;
      --unfinished_;
      return;
    }
    post_up_to(a, plan.reduces_end);  // without overlap nothing has been posted yet
    if (a.reduced < plan.reduces_end) return wait_for(a, Wait::data);
    if (exchange_of_[a.stage] != kNoExchange) return exchange_gradients(index);
    reach_barrier(index);
  }

  [[nodiscard]] const StageExchange& exchange_at(std::uint32_t subject) const {
    return plan_.exchanges[subject % plan_.exchanges.size()];
  }
  void exchange_gradients(std::uint32_t index) {
    Actor& a = actors_[index];
    wait_for(a, Wait::exchange);
    const auto subject = static_cast<std::uint32_t>(a.replica_class * plan_.exchanges.size() +
                                                    exchange_of_[a.stage]);
    if (delays_) {
      delays_->comes(subject, a.replica_class * stages_ + a.stage, now_);
    }
    if (++exchange_ready_[subject] < 2) return;
    exchange_posted_[subject] = now_;
    queue_.push(now_ + to_step_time(exchange_at(subject).cost.latency), exchange_starts, subject);
  }
  void on_exchange_starts(std::uint32_t subject) {
    const StageExchange& exchange = exchange_at(subject);
    start_flow(wiring_->exchange(subject),
               exchange.payload.base_units() * Wiring::data_unit(exchange.cost));
  }
  void exchange_ended(std::uint32_t subject) {
    const std::size_t replica_class = subject / plan_.exchanges.size();
    for (const std::uint32_t stage : exchange_at(subject).stages) {
      const auto index = static_cast<std::uint32_t>(replica_class * stages_ + stage);
      const StepTime both = exchange_posted_[subject];
      const StepTime since = actors_[index].since;
      StepTime bubble = both - since;
      if (delays_) bubble = std::min(bubble, delays_->meets(subject, index, since, both));
      result_.actors[index].bubble += bubble;
      result_.actors[index].message += both - since - bubble;
      result_.actors[index].data += now_ - both;
      reach_barrier(index);
    }
  }

  void reach_barrier(std::uint32_t index) {
    wait_for(actors_[index], Wait::barrier);
    if (--waiting_at_barrier_ > 0) return;
    // The global gradient norm: everybody waits for the last. Stages wait for stages in a bubble.
    result_.optimiser_start = now_ - begin_;
    StepTime last;  // to come, were messages not delayed
    for (std::uint32_t i = 0; delays_ && i < actors_.size(); ++i) {
      last = std::max(last, delays_->came(i, actors_[i].since));
    }
    for (std::uint32_t i = 0; i < actors_.size(); ++i) {
      Actor& a = actors_[i];
      ActorTimes& t = result_.actors[i];
      StepTime bubble = now_ - a.since;
      if (delays_) bubble = std::min(bubble, last - delays_->came(i, a.since));
      waited_for_all(t) += bubble;
      t.message += now_ - a.since - bubble;
      t.data += plan_.synchronisation;
      t.overhead += plan_.overhead;
      const StepTime optimiser = plan_of(a).optimiser;
      t.optimiser += optimiser;
      a.wait = Wait::none;
      queue_.push(now_ + plan_.synchronisation + plan_.overhead + optimiser, optimiser_done, i);
    }
    optimised_ = true;
  }
  void on_optimiser_done(std::uint32_t index) {
    Actor& a = actors_[index];
    post_up_to(a, static_cast<std::uint32_t>(plan_of(a).collectives.size()));
    drain(index);
  }

  // --- dispatch
  // -------------------------------------------------------------------------------------

  void start_flow(FlowIndex flow, double amount) {
    ++result_.flows;
    const Bytes bytes{std::max(amount, 1.0)};
    if (late_.empty()) return put_on_wire(flow, bytes);
    LateFlow& late = late_[number_of(flow)];
    constexpr std::uint32_t kPurpose = 0x6A697474;  // this draw's own
    RandomStream random({.seed = 1,
                         .trajectory = late.starts++,
                         .component = number_of(flow),
                         .purpose = kPurpose});
    late.waits = true;
    late.bytes = bytes;
    queue_.push(now_ + to_step_time(random.uniform() * jitter_), flow_starts, number_of(flow));
  }
  void on_flow_starts(std::uint32_t number) {
    late_[number].waits = false;
    put_on_wire(wiring_->flows()[number].flow, late_[number].bytes);
  }
  void put_on_wire(FlowIndex flow, Bytes bytes) {
    wiring_->stalled(flow) ? network_.start_held(flow, bytes, now_)
                           : network_.start(flow, bytes, now_);
  }
  /// Counts the wiring's flows.
  [[nodiscard]] std::uint32_t number_of(FlowIndex flow) const {
    return static_cast<std::uint32_t>(flow - wiring_->flows().front().flow);
  }
  [[nodiscard]] bool is_late(FlowIndex flow) const {
    return !late_.empty() && late_[number_of(flow)].waits;
  }

  void end_of(const WiredFlow& flow) {
    switch (flow.use) {
      case WiredFlow::Use::message:
        return message_left(flow.subject);
      case WiredFlow::Use::data:
        return collective_ended(flow);
      case WiredFlow::Use::exchange:
        return exchange_ended(flow.subject);
      case WiredFlow::Use::layer:
        return layer_flow_ended(flow.subject);
    }
  }

  void handle(const Event& event) {
    ++result_.events;
    switch (static_cast<EventKind>(event.kind)) {
      case segment_done:
        return on_segment_done(event.subject);
      case cover_ends:
        return layer_done(event.subject);
      case message_arrived:
        return on_message_arrived(event.subject);
      case collective_starts:
        return on_collective_starts(event.subject);
      case exchange_starts:
        return on_exchange_starts(event.subject);
      case optimiser_done:
        return on_optimiser_done(event.subject);
      case flow_starts:
        return on_flow_starts(event.subject);
    }
  }

  const StepPlan& plan_;
  const std::vector<ReplicaClass>& classes_;
  const Wiring* wiring_;
  FlowNetwork& network_;
  bool record_;
  Seconds jitter_;
  PassesDone passes_done_;
  std::uint64_t next_report_;   ///< passes at which it is told; without it never reached
  std::vector<LateFlow> late_;  ///< by number of the flow; empty without jitter
  std::size_t stages_;
  std::size_t chunks_;

  EventQueue queue_;
  StepTime begin_;
  StepTime now_;
  std::vector<Actor> actors_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> arrived_;  ///< by actor, pass, chunk
  std::vector<std::uint32_t> arrived_count_ =
      std::vector<std::uint32_t>(2 * classes_.size() * stages_);
  std::vector<DataGroupState> groups_;                                  ///< of all stages and kinds
  std::vector<std::array<std::uint32_t, kDataGroups>> first_group_;     ///< by stage and kind
  std::array<std::vector<std::uint32_t>, kDataGroups> group_of_class_;  ///< among those of a kind
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;       ///< by actor
  std::vector<std::uint32_t> exchange_of_;    ///< by stage
  std::vector<std::uint8_t> exchange_ready_;  ///< by class and exchange: stages that wait for it
  std::vector<StepTime> exchange_posted_;     ///< by class and exchange
  std::optional<MessageDelays> delays_;       ///< where links slower than NICs delay messages
  std::vector<std::size_t> first_record_;
  std::size_t unfinished_ = 0;
  std::size_t waiting_at_barrier_ = 0;
  bool optimised_ = false;
  ReplayResult result_;
};

RunningStep::RunningStep(const StepPlan& plan, const std::vector<ReplicaClass>& classes,
                         const Wiring& wiring, bool record, Seconds jitter, PassesDone passes_done)
    : state_(
          std::make_unique<State>(plan, classes, wiring, record, jitter, std::move(passes_done))) {}
RunningStep::~RunningStep() = default;

void RunningStep::begin(StepTime now) { state_->begin(now); }
StepTime RunningStep::next_event() const { return state_->next_event(); }
void RunningStep::flows_ended(std::span<const FlowIndex> flows, StepTime now) {
  state_->flows_ended(flows, now);
}
void RunningStep::handle_events(StepTime now) { state_->handle_events(now); }
bool RunningStep::done() const { return state_->done(); }
void RunningStep::fail_stuck(StepTime /*now*/) const {
  throw std::logic_error("the pipeline schedule deadlocks");
}
void RunningStep::rewire(const Wiring& wiring, StepTime now) { state_->rewire(wiring, now); }
ReplayResult RunningStep::finish() { return state_->finish(); }

ReplayResult replay(const StepPlan& plan, const std::vector<ReplicaClass>& classes,
                    const Wiring& wiring, bool record, Seconds jitter, PassesDone passes_done) {
  RunningStep step{plan, classes, wiring, record, jitter, std::move(passes_done)};
  Engine engine(wiring.network());
  engine.add(step);
  const std::unique_ptr<DcqcnStart> start = wiring.dcqcn_start();
  if (start) engine.add_change(*start);
  engine.run();
  return step.finish();
}

}  // namespace lockstep
