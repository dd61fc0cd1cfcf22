/// The power, energy, carbon and money of a whole run: each phase of it at its own level.
#pragma once

#include <span>

#include "models/power/cost.hpp"
#include "sim/power/power_series.hpp"
#include "sim/power/step_power.hpp"
#include "sim/run/trajectory.hpp"

namespace lockstep {

/// Power while wall time goes into a bucket. Training, at full speed or less, and what is
/// done again draw as a step does; while a checkpoint or a hang holds the job its kernels spin;
/// restarting processes hold the cards; during diagnosis and while it waits for a node nobody does.
const PowerLevel& level_of(RunBucket bucket, const PowerLevels& levels);

/// Facility power over the run. Requires phases that begin at 0 and rise, all before `end`; none
/// for a run of no time.
PowerSeries run_series(std::span<const RunPhase> phases, RunTime end, const PowerLevels& levels);

/// The job with idle nodes beside it that wait to take a broken one's place, in number `share` of
/// its own: they are held as machines, and draw idle power all the time. Nameplate and holdings
/// have them too.
StepPower with_reserve(StepPower power, double share);

/// Sum of wall time in each bucket times its level: the integral of run_series().
Joules run_energy(const TrajectoryResult& result, const PowerLevels& levels);

/// What the run used: energy, and by the hour its money and carbon. `tokens` and `model_flops` are
/// what it achieved.
Usage run_usage(const PowerSeries& series, const CostSpec& prices, double tokens,
                Flops model_flops);
/// Usage of a run without phases: the buckets' energy, spread evenly over the wall time.
Usage run_usage(const TrajectoryResult& result, const PowerLevels& levels, const CostSpec& prices,
                double tokens, Flops model_flops);

/// The usage with the power draw multiplied by `factor`: energy, its cost and its carbon.
Usage with_draw(Usage usage, double factor);

}  // namespace lockstep
