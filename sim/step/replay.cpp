#include "sim/step/replay.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "sim/fabric/dcqcn_start.hpp"
#include "sim/step/replay_collectives.hpp"
#include "sim/step/replay_exchanges.hpp"
#include "sim/step/replay_flows.hpp"
#include "sim/step/replay_layers.hpp"
#include "sim/step/replay_messages.hpp"
#include "sim/step/replay_run.hpp"

namespace lockstep {

/// Runs the actors' programs. Its parts hold what is on its way inside layers, between stages and
/// between replicas; none calls another: here is said who goes on when something has come.
class RunningStep::State {
  using Actor = ReplayRun::Actor;
  using Wait = ReplayRun::Wait;

  static constexpr std::uint64_t kPassesBetweenReports = 1024;  // some milliseconds

 public:
  State(const StepPlan& plan, const std::vector<ReplicaClass>& classes, const Wiring& wiring,
        Recording recording, Seconds jitter, PassesDone passes_done)
      : run_{.plan = plan,
             .classes = classes,
             .wiring = &wiring,
             .recording = recording,
             .stages = plan.stages.size(),
             .chunks = static_cast<std::size_t>(plan.shape.chunks)},
        flows_(run_, jitter),
        layers_(run_, flows_),
        messages_(run_, flows_),
        collectives_(run_, flows_),
        exchanges_(run_, flows_),
        passes_done_(std::move(passes_done)),
        next_report_(passes_done_ ? kPassesBetweenReports : UINT64_MAX) {
    set_up();
  }

  void begin(StepTime now) {
    run_.begin = run_.now = now;
    for (std::uint32_t a = 0; a < run_.actors.size(); ++a) begin_program(a);
  }
  [[nodiscard]] bool done() const { return unfinished_ == 0; }
  [[nodiscard]] StepTime next_event() const {
    return run_.queue.empty() ? kNever : run_.queue.next_time();
  }

  void handle_events(StepTime now) {
    if (next_event() > now) return;
    check_clock(now);
    run_.now = now;
    while (!run_.queue.empty() && run_.queue.next_time() == run_.now) handle(run_.queue.pop());
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) {
    check_clock(now);
    run_.now = now;
    const FlowIndex first = run_.wiring->flows().front().flow;
    for (const FlowIndex flow : flows) end_of(run_.wiring->flows()[flow - first]);
  }

  void rewire(const Wiring& wiring, StepTime now) { flows_.rewire(wiring, now); }

  ReplayResult finish() {
    if (passes_done_) passes_done_(run_.result.items_run);
    run_.result.end = run_.since_begin();
    for (ActorTimes& t : run_.result.actors) {
      waited_for_all(t) += run_.result.end - t.finished;
      if (t.total() != run_.result.end)
        throw std::logic_error("an actor's times do not add up to the step");
    }
    return std::move(run_.result);
  }

 private:
  /// Where an actor's wait for all others belongs. Of one stage there is no other that computes:
  /// the others are replicas, which were slowed or whose ways through the fabric are slower.
  [[nodiscard]] StepTime& waited_for_all(ActorTimes& t) const {
    return run_.stages == 1 ? t.straggler : t.bubble;
  }

  /// A flow that would take longer ends after kLongestSpan, with bytes left.
  void check_clock(StepTime now) const {
    constexpr StepTime kEnd{static_cast<std::uint64_t>(kLongestSpan.base_units() * 1e12)};
    if (now - run_.begin >= kEnd) throw ClockOverflow();
  }

  void set_up() {
    const std::size_t count = run_.classes.size() * run_.stages;
    run_.actors.resize(count);
    run_.result.actors.resize(count);
    for (const ReplicaClass& c : run_.classes) run_.result.variants.push_back(c.variant);
    if (run_.wiring->slows_messages())
      run_.delays.emplace(count, run_.chunks, run_.classes.size() * run_.plan.exchanges.size());
    unfinished_ = count;
    waiting_at_barrier_ = count;
    if (run_.records()) {
      std::size_t items = 0, messages = 0;
      for (const auto& of_class : run_.classes) {
        for (std::size_t s = 0; s < run_.stages; ++s) {
          first_record_.push_back(items);
          const StagePlan& stage = run_.plan.stage_of(of_class.variant, s);
          items += stage.items.size();
          for (const auto& targets : stage.message_targets) messages += targets.size();
        }
      }
      run_.result.items.resize(items);
      if (run_.recording == Recording::all) run_.result.messages.reserve(messages);
    }
    for (std::size_t a = 0; a < count; ++a) {
      run_.actors[a].stage = static_cast<std::uint32_t>(a % run_.stages);
      run_.actors[a].replica_class = static_cast<std::uint32_t>(a / run_.stages);
      const auto& slowdown = run_.classes[a / run_.stages].slowdown;
      if (!slowdown.empty()) run_.actors[a].slowdown = slowdown[a % run_.stages];
    }
  }

  void begin_program(std::uint32_t index) {
    Actor& a = run_.actors[index];
    collectives_.post_up_to(a, run_.plan_of(a).gathers_first);
    advance(index);
  }

  /// Starts whatever the actor can start now, or notes what it waits for.
  void advance(std::uint32_t index) {
    Actor& a = run_.actors[index];
    const StagePlan& plan = run_.plan_of(a);
    a.wait = Wait::none;
    if (a.item == plan.items.size()) return drain(index);
    const ProgramItem& item = plan.items[a.item];
    const Segment& segment = plan.segments[item.first_segment + a.segment];
    if (a.segment == 0) {
      if (!messages_.can_start(index)) return run_.wait_for(a, Wait::input);
      if (run_.delays) run_.delays->starts(index, messages_.input_on_time(index), run_.now);
      if (run_.records())
        run_.result.items[first_record_[index] + a.item].start = run_.since_begin();
    }
    if (segment.needs > a.reduced) return run_.wait_for(a, Wait::data);
    ActorTimes& times = run_.result.actors[index];
    StepTime compute = segment.compute;
    if (a.slowdown != 1.0) {
      compute = a.at_pace(segment.compute);
      times.slow += compute - segment.compute;
    }
    times.compute += segment.compute;
    times.tensor += segment.tensor;
    // What goes on beside flows comes when they run.
    for (const StepTime covered : segment.covered) compute = compute - a.at_pace(covered);
    run_.queue.push(run_.now + compute + segment.tensor, ReplayRun::segment_done, index);
  }

  void on_segment_done(std::uint32_t index) {
    run_.actors[index].axis = 0;
    exchange_inside_layers(index);
  }
  /// Starts the next transfer of the segment, or ends it.
  void exchange_inside_layers(std::uint32_t index) {
    switch (layers_.start_next(index)) {
      case ReplayLayers::Next::waits:
        return;
      case ReplayLayers::Next::segment_ends:
        return finish_segment(index);
      case ReplayLayers::Next::block_goes_on:
        break;
    }
    for (const std::uint32_t member : layers_.block_of(index)) {
      layers_.book_meeting(member);
      exchange_inside_layers(member);
    }
  }
  void layer_flow_ended(std::uint32_t subject) {
    const std::uint32_t index = subject / kAxes, axis = subject % kAxes;
    if (!is_of_experts(static_cast<Axis>(axis))) {
      if (layers_.is_over(index, axis)) layer_done(index);
      return;
    }
    for (const std::uint32_t member : layers_.block_of(index)) {
      if (layers_.is_over(member, axis)) layer_done(member);
    }
  }
  void layer_done(std::uint32_t index) {
    layers_.book_end(index);
    exchange_inside_layers(index);
  }
  void finish_segment(std::uint32_t index) {
    Actor& a = run_.actors[index];
    const StagePlan& plan = run_.plan_of(a);
    const ProgramItem& item = plan.items[a.item];
    const Segment& segment = run_.current_segment(a);
    collectives_.post_up_to(a, segment.posts);
    if (++a.segment < item.segments) return advance(index);
    if (run_.records()) run_.result.items[first_record_[index] + a.item].end = run_.since_begin();
    a.segment = 0;
    ++a.item;
    if (++run_.result.items_run == next_report_) report_passes();
    if (messages_.send_outputs(index, item) && run_.plan.blocking_sends)
      return run_.wait_for(a, Wait::send);
    advance(index);
  }

  void report_passes() {
    next_report_ += kPassesBetweenReports;
    passes_done_(run_.result.items_run);
  }

  // --- the ends of transfers --------------------------------------------------------------------

  void on_message_arrived(std::uint32_t number) {
    const std::uint32_t sender = number / 2;
    Actor& from = run_.actors[sender];
    const ReplayMessages::Landed message = messages_.land(number);
    if (--from.landing == 0 && from.wait == Wait::send) {
      run_.result.actors[sender].message += run_.now - from.since;
      if (run_.delays)
        run_.delays->waited_to_send(sender, std::min(message.added, run_.now - from.since));
      advance(sender);
    }
    const auto [receiver, handed_over] = messages_.deliver(number, message);
    Actor& to = run_.actors[receiver];
    if (to.wait != Wait::input || !messages_.can_start(receiver)) return;
    // Until the message was handed over the sender was computing; after that it was on its way.
    const StepTime left = std::clamp(message.posted, to.since, run_.now);
    StepTime bubble = left - to.since;
    if (run_.delays) {
      bubble = std::min(bubble, run_.delays->bubble(receiver, to.since, handed_over,
                                                    messages_.input_on_time(receiver), run_.now));
    }
    run_.result.actors[receiver].bubble += bubble;
    run_.result.actors[receiver].message += run_.now - to.since - bubble;
    advance(receiver);
  }

  void collective_ended(const WiredFlow& flow) {
    const auto [actors, posted_at] = collectives_.ended(flow);
    for (const std::uint32_t index : actors) {
      Actor& a = run_.actors[index];
      if (a.wait != Wait::data || a.reduced < data_needed(a)) continue;
      const StepTime all_there = std::clamp(posted_at, a.since, run_.now);
      run_.result.actors[index].straggler += all_there - a.since;
      run_.result.actors[index].data += run_.now - all_there;
      advance(index);
    }
  }
  [[nodiscard]] std::uint32_t data_needed(const Actor& a) const {
    const StagePlan& plan = run_.plan_of(a);
    if (a.item < plan.items.size()) return run_.current_segment(a).needs;
    return optimised_ ? static_cast<std::uint32_t>(plan.collectives.size()) : plan.reduces_end;
  }

  void exchange_ended(std::uint32_t subject) {
    for (const std::uint32_t index : exchanges_.actors_of(subject)) {
      exchanges_.book_end(subject, index);
      reach_barrier(index);
    }
  }

  // --- the end of the step ----------------------------------------------------------------------

  /// All passes are done: reduce what is left, meet the others, optimise, gather.
  void drain(std::uint32_t index) {
    Actor& a = run_.actors[index];
    const StagePlan& plan = run_.plan_of(a);
    if (optimised_) {
      if (a.reduced < plan.collectives.size()) return run_.wait_for(a, Wait::data);
      a.wait = Wait::done;
      run_.result.actors[index].finished = run_.since_begin();
      --unfinished_;
      return;
    }
    collectives_.post_up_to(a, plan.reduces_end);  // without overlap nothing has been posted yet
    if (a.reduced < plan.reduces_end) return run_.wait_for(a, Wait::data);
    if (exchanges_.has(a.stage)) return exchanges_.come(index);
    reach_barrier(index);
  }

  void reach_barrier(std::uint32_t index) {
    run_.wait_for(run_.actors[index], Wait::barrier);
    if (--waiting_at_barrier_ > 0) return;
    // The global gradient norm: everybody waits for the last. Stages wait for stages in a bubble.
    run_.result.optimiser_start = run_.since_begin();
    StepTime last;  // to come, were messages not delayed
    for (std::uint32_t i = 0; run_.delays && i < run_.actors.size(); ++i) {
      last = std::max(last, run_.delays->came(i, run_.actors[i].since));
    }
    for (std::uint32_t i = 0; i < run_.actors.size(); ++i) {
      Actor& a = run_.actors[i];
      ActorTimes& t = run_.result.actors[i];
      StepTime bubble = run_.now - a.since;
      if (run_.delays) bubble = std::min(bubble, last - run_.delays->came(i, a.since));
      waited_for_all(t) += bubble;
      t.message += run_.now - a.since - bubble;
      t.data += run_.plan.stagger + run_.plan.synchronisation;
      t.overhead += run_.plan.overhead;
      const StepTime optimiser = run_.plan_of(a).optimiser;
      t.optimiser += optimiser;
      a.wait = Wait::none;
      run_.queue.push(
          run_.now + run_.plan.stagger + run_.plan.synchronisation + run_.plan.overhead + optimiser,
          ReplayRun::optimiser_done, i);
    }
    optimised_ = true;
  }
  void on_optimiser_done(std::uint32_t index) {
    Actor& a = run_.actors[index];
    collectives_.post_up_to(a, static_cast<std::uint32_t>(run_.plan_of(a).collectives.size()));
    drain(index);
  }

  // --- dispatch ---------------------------------------------------------------------------------

  void end_of(const WiredFlow& flow) {
    switch (flow.use) {
      case WiredFlow::Use::message:
        return messages_.left(flow.subject);
      case WiredFlow::Use::data:
        return collective_ended(flow);
      case WiredFlow::Use::exchange:
        return exchange_ended(flow.subject);
      case WiredFlow::Use::layer:
        return layer_flow_ended(flow.subject);
    }
  }

  void handle(const Event& event) {
    ++run_.result.events;
    switch (static_cast<ReplayRun::EventKind>(event.kind)) {
      case ReplayRun::segment_done:
        return on_segment_done(event.subject);
      case ReplayRun::cover_ends:
        return layer_done(event.subject);
      case ReplayRun::message_arrived:
        return on_message_arrived(event.subject);
      case ReplayRun::collective_starts:
        return collectives_.on_starts(event.subject);
      case ReplayRun::exchange_starts:
        return exchanges_.on_starts(event.subject);
      case ReplayRun::optimiser_done:
        return on_optimiser_done(event.subject);
      case ReplayRun::flow_starts:
        return flows_.on_starts(event.subject);
    }
  }

  ReplayRun run_;
  ReplayFlows flows_;
  ReplayLayers layers_;
  ReplayMessages messages_;
  ReplayCollectives collectives_;
  ReplayExchanges exchanges_;
  PassesDone passes_done_;
  std::uint64_t next_report_;  ///< passes at which it is told; without it never reached
  std::vector<std::size_t> first_record_;
  std::size_t unfinished_ = 0;
  std::size_t waiting_at_barrier_ = 0;
  bool optimised_ = false;
};

RunningStep::RunningStep(const StepPlan& plan, const std::vector<ReplicaClass>& classes,
                         const Wiring& wiring, Recording recording, Seconds jitter,
                         PassesDone passes_done)
    : state_(std::make_unique<State>(plan, classes, wiring, recording, jitter,
                                     std::move(passes_done))) {}
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
                    const Wiring& wiring, Recording recording, Seconds jitter,
                    PassesDone passes_done) {
  RunningStep step{plan, classes, wiring, recording, jitter, std::move(passes_done)};
  Engine engine(wiring.network());
  engine.add(step);
  const std::unique_ptr<DcqcnStart> start = wiring.dcqcn_start();
  if (start) engine.add_change(*start);
  engine.run();
  return step.finish();
}

}  // namespace lockstep
