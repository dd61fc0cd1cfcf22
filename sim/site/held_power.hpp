/// What a run draws with all that it holds: nodes in reserve, lots that come and go, the weather.
#pragma once

#include <optional>
#include <vector>

#include "models/power/cost.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/site/fleet.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// A node with its share of the fabric and of what cools and feeds it.
struct NodeDraw {
  Watts working, idle;
  /// All that are there: those that the job runs on work, the others stand idle.
  [[nodiscard]] Watts of(const FleetStep& there) const {
    return there.working() * working + there.standing() * idle;
  }
};
/// While a job of `nodes`, with what `held` has in reserve beside it, draws `level`.
NodeDraw node_draw(Watts level, const StepPower& held, int nodes);

/// Energy of a run on machines that come in lots.
struct FleetEnergy {
  Joules energy;                    ///< of all that are there
  std::optional<double> grams{};    ///< of it, where the grid's intensity is given
  std::vector<EnergyPayment> paid;  ///< own and leased nodes' share by the hour, as each begins
  [[nodiscard]] double usd() const;
};
/// For `run` after it began, at the tariff and the intensity of its hours. A lot that is rented has
/// its energy in its price.
FleetEnergy fleet_energy(const Fleet& fleet, const NodeDraw& draw, Seconds run,
                         const CostSpec& prices);

/// The machines that a run has.
struct HeldAt {
  const Fleet* fleet = nullptr;  ///< lots; null: all machines are there
  Seconds run;                   ///< how long, from its begin
};
/// A step's power with `reserved` idle nodes, at the scenario's outside temperature; site_peak, and
/// what is built and hosted for it, are those of the lots while they draw most. Requires "power",
/// and a step with its timeline and actors.
StepPower held_power(const Scenario& scenario, const StepReport& step, int reserved,
                     const HeldAt& at);
/// Held power of a step, or an iteration, whose power on `nodes` is known.
StepPower held_power(StepPower step, int nodes, int reserved, const HeldAt& at);

/// What a site draws at its highest: a mean over steps, and how much of the whole job steps then.
struct HighestDraw {
  Watts level;
  double busy = 1;  ///< 0: it draws evenly
};
/// With a step's own swing on it: what a meter reads at most, and what no meter is too slow for.
struct PeakDraw {
  Watts metered, instant;
};
/// `draw`: how many times as much as in `held` the machines draw, in `highest` already.
PeakDraw peak_draw(const HighestDraw& highest, const StepPower& held, double draw = 1);
/// Of a run on lots, at the power of training: while it lasts, by the lots that draw most then.
HighestDraw highest_draw(const Fleet& fleet, Seconds run, const StepPower& held, int nodes);
/// Makes that the peak that the site is held to and built for.
void take_peak(const HighestDraw& highest, StepPower& held);

}  // namespace lockstep
