/// Simulates one training step of a scenario.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/scenario/scenario.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Work above which replicas that folding cannot tell exactly are a sample: events of a replay,
/// about ten seconds of a core. Llama 3 405B on 16,384 GPUs with hashed paths takes half a million.
inline constexpr double kStepBudget = 8e6;

/// Told of a simulation under way: how many passes are done, of as many as it now seems. The first
/// time 0 are; a sample that doubles makes them more.
using StepProgress = std::function<void(std::uint64_t done, std::uint64_t all)>;

struct StepOptions {
  Folding folding = Folding::automatic;  ///< automatic: what the scenario says
  bool record_timeline = false;          ///< fill StepReport::timeline
  bool keep_actors = false;              ///< fill StepReport::actors when unfolded too
  bool explain_links = false;            ///< fill StepReport::holds
  bool only_time = false;                ///< leave out what explains the time: critical path, blame
  bool draw_fabric = false;              ///< fill StepReport::use
  bool link_rates = false;               ///< fill StepReport::link_rates, of a recorded replay
  /// Every transfer starts up to so much late, by a draw of its own; replicas then differ, so that
  /// none stands for others.
  Seconds jitter{};
  double budget = kStepBudget;  ///< of Folding::automatic, in step_events()
  /// With stragglers the step is simulated again without them, and counts from 0 again.
  StepProgress progress{};
};

/// Replays one step in the steady state: gradients of this step are reduced, parameters of the step
/// before are gathered. Where folding is automatic and replicas cannot be folded exactly, each is
/// simulated on its own; above the budget a sample of them is, and StepReport::band holds what all
/// of them would take. Does not check that the job fits in memory: models/layer/memory.hpp does.
/// Requires a scenario from complete_scenario(). Throws InputError where a step takes longer than
/// the clock lasts. The same scenario gives the same report, bit for
/// bit.
StepReport simulate_step(const Scenario& scenario, const StepOptions& options = {});

}  // namespace lockstep
