/// What keeps a step's swing within the ramp that a grid allows, and what each way costs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// One way, with as much of it as just keeps to the ramp.
struct SmoothingWay {
  std::string_view name;          ///< as JSON says it: "store"
  std::string_view words;         ///< "energy stored in power supplies"
  std::optional<Joules> store{};  ///< per GPU, behind its power supply
  std::optional<Watts> floor{};   ///< that a GPU burns up to
  std::optional<Seconds> over{};  ///< from the first replica's begin to the last one's
  int groups = 0;                 ///< of replicas, with `over`
  double ramp_w_per_s = 0;        ///< steepest change over the scenario's ramp_window
  Seconds step{};                 ///< time of a step
  Joules energy{};                ///< of a step, at the site's meter
  bool keeps = true;              ///< to the ramp; else this is the least that was found
};

/// "energy stored in power supplies, 65 J a GPU".
std::string smoothing_words(const SmoothingWay& way);

/// As it is; a store, a floor, slower ramps, staggered replicas. `step` and `power` are the
/// scenario's, which has "power"; `power` with idle nodes beside it, `reserve` of the job's own.
/// Staggering is left out where it cannot be: stagger_problem().
std::vector<SmoothingWay> smoothing_ways(const Scenario& scenario, const StepReport& step,
                                         const StepPower& power, double reserve,
                                         double ramp_w_per_s);

}  // namespace lockstep
