/// A step whose cards' power changes at a bounded rate: what it takes, and what they draw.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/power_corner.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// How fast a card gets on at a power, as a share of its pace when nothing holds it.
struct PacePower {
  double watts = 0;
  double pace = 0;
};
/// Rising in both, straight between points, from (what it draws standing, 0) to (what it asks for,
/// 1). Empty: it waits, and any power does.
using RampLaw = std::vector<PacePower>;

/// 0 to 1.
double pace_at(const RampLaw& law, double watts);

/// When something happens whose time was `asked` while power followed at once.
struct HeldTime {
  StepTime asked;
  double late_s = 0;
};

/// One GPU of an actor over a step.
struct HeldCard {
  Joules energy;
  Watts peak, trough;
  ByGpuPart<Joules> parts{};  ///< together energy
};

struct HeldRamps {
  double late_s = 0;                ///< the step takes as much longer
  std::vector<HeldTime> times;      ///< rising; straight between them
  std::vector<HeldCard> cards;      ///< by actor
  std::vector<PowerCorner> series;  ///< all GPUs of the job together, from 0 to the step's end

  /// Requires a time of the step.
  [[nodiscard]] StepTime when(StepTime asked) const;
};

/// All cards go through the step as `report`'s timeline has it, in lockstep: where a card asks for
/// more than it has, its power rises at power.smoothing.ramp, and all of them go on at the pace of
/// the one that is furthest behind, whose clock is what it would be under a cap of that power
/// (models/power/gpu_power.hpp; below the lowest cap it works a part of the time). Where a card
/// asks for less, its power falls as fast, and it burns what it does not need. This is the most
/// that slow ramps can cost: a card that nobody waits for holds up all others here. Steps repeat.
/// Times are exact for laws that are straight between 13 caps.
/// Requires a recorded report of that step, made without ramps, with actors, and power data.
HeldRamps hold_ramps(const Scenario& scenario, const StepPlan& plan, const StepReport& report,
                     std::span<const TimelineSlice> timeline);

}  // namespace lockstep
