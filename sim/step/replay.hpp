/// Replays a planned step: actors run their programs, wait for each other, and share links.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/core/event_queue.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

/// What an actor waited for. With its compute these add up to the step, tick for tick.
struct ActorTimes {
  StepTime compute;                     ///< at nominal speed
  StepTime slow;                        ///< what a slow GPU took beyond that
  StepTime tensor;                      ///< exchanges inside layers that no flow moves,
  std::array<StepTime, kAxes> layer{};  ///< and those that flows move, by Axis
  StepTime bubble;                      ///< another stage computes
  StepTime message;                     ///< a pipeline message is on its way
  StepTime data;                        ///< gradients or parameters are on their way
  StepTime straggler;                   ///< another replica is late
  StepTime optimiser;
  StepTime overhead;
  StepTime finished;  ///< end of its last work

  [[nodiscard]] StepTime total() const {
    return compute + slow + tensor + layer[0] + layer[1] + layer[2] + layer[3] + bubble + message +
           data + straggler + optimiser + overhead;
  }
};

/// What a replay keeps of what it runs.
enum class Recording : std::uint8_t {
  none,
  passes,  ///< and data-parallel collectives, for the critical path
  all,     ///< pipeline messages too, for the timeline
};

/// Start and end of a pass, for the timeline and the critical path.
struct ItemRecord {
  StepTime start, end;
};
/// A data-parallel collective of a group of actors: `collective` counts those of its stage.
struct CollectiveRecord {
  std::uint32_t group, collective;
  StepTime start, end;
};

/// A pipeline message on the wire.
struct MessageRecord {
  std::uint32_t actor;     ///< the sender
  std::uint8_t direction;  ///< 0: to the next rank, 1: to the previous one
  bool forward;            ///< activations, else gradients
  std::uint32_t number;    ///< in this direction, from 0
  StepTime start, end;
};

struct ReplayResult {
  StepTime end;
  std::vector<ActorTimes> actors;  ///< class-major: all stages of class 0, then of class 1
  std::vector<ItemRecord> items;   ///< when recording: actor by actor, in program order
  std::vector<CollectiveRecord> collectives;            ///< when recording
  std::vector<std::vector<std::uint32_t>> data_groups;  ///< when recording: their actors
  std::vector<MessageRecord> messages;                  ///< when recording all: as they arrived
  StepTime optimiser_start;                             ///< all gradients are reduced
  std::vector<std::uint32_t> variants;                  ///< by replica class
  std::uint64_t events = 0, flows = 0, items_run = 0;

  [[nodiscard]] const StagePlan& plan_of(const StepPlan& plan, std::size_t actor) const {
    const std::size_t stages = plan.stages.size();
    return plan.stage_of(variants[actor / stages], actor % stages);
  }
};

/// Told how many passes of its actors a replay has done: now and then, and at its end.
using PassesDone = std::function<void(std::uint64_t passes)>;

/// A step under way, on a network that other processes may share.
class RunningStep final : public Process {
 public:
  /// `wiring` was made for the same plan and classes; all three outlive this. Each transfer starts
  /// up to `jitter` late, uniformly, by a draw of its own.
  RunningStep(const StepPlan& plan, const std::vector<ReplicaClass>& classes, const Wiring& wiring,
              Recording recording, Seconds jitter = {}, PassesDone passes_done = {});
  ~RunningStep() override;

  void begin(StepTime now) override;
  [[nodiscard]] StepTime next_event() const override;
  /// Requires flows of its wiring.
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override;
  void handle_events(StepTime now) override;
  [[nodiscard]] bool done() const override;
  /// Throws std::logic_error: no schedule of ours deadlocks.
  [[noreturn]] void fail_stuck(StepTime now) const override;
  /// From now on its flows are those of another wiring of the same job, and what is under way goes
  /// on over them; flows that are stalled there wait. Requires a settled network.
  void rewire(const Wiring& wiring, StepTime now);
  /// Times in it count from its begin. Requires done(). Throws std::logic_error if an actor's times
  /// do not add up to the step.
  ReplayResult finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Runs one step alone, until it is done. Throws ClockOverflow where it takes more than 196 days,
/// as RunningStep does, and std::logic_error if the schedule deadlocks: no
/// schedule of ours does. Where the transport has DCQCN, its start is in it.
ReplayResult replay(const StepPlan& plan, const std::vector<ReplicaClass>& classes,
                    const Wiring& wiring, Recording recording, Seconds jitter = {},
                    PassesDone passes_done = {});

}  // namespace lockstep
