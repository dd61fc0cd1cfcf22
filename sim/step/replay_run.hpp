/// What the parts of a replay share: what is replayed, the clock, the actors, and where time goes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/core/event_queue.hpp"
#include "sim/step/message_delays.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

struct ReplayRun {
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

    /// What a span of compute takes on its GPUs.
    [[nodiscard]] StepTime at_pace(StepTime compute) const {
      if (slowdown == 1.0) return compute;
      return {static_cast<std::uint64_t>(std::llround(static_cast<double>(compute.ps) * slowdown))};
    }
  };

  const StepPlan& plan;
  const std::vector<ReplicaClass>& classes;
  const Wiring* wiring;
  Recording recording;
  std::size_t stages;
  std::size_t chunks;
  std::vector<Actor> actors{};  ///< all stages of class 0, then of class 1
  EventQueue queue{};
  StepTime begin{};
  StepTime now{};
  std::optional<MessageDelays> delays{};  ///< where links slower than NICs delay messages
  ReplayResult result{};

  [[nodiscard]] bool records() const { return recording != Recording::none; }
  [[nodiscard]] StepTime since_begin() const { return now - begin; }
  [[nodiscard]] const StagePlan& plan_of(const Actor& a) const {
    return plan.stage_of(classes[a.replica_class].variant, a.stage);
  }
  [[nodiscard]] const Segment& current_segment(const Actor& a) const {
    const StagePlan& of = plan_of(a);
    return of.segments[of.items[a.item].first_segment + a.segment];
  }
  void wait_for(Actor& a, Wait wait) const {
    a.wait = wait;
    a.since = now;
  }
};

}  // namespace lockstep
