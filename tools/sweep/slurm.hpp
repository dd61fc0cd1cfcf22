/// `lockstep sweep --engine slurm`: shards as tasks of a Slurm job array.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/sweep/local_sweep.hpp"

namespace lockstep {

/// Submits the shards that are missing, follows them, collects their files as they come, and
/// submits again what ended without one, three times at most. Ctrl-C leaves the tasks to Slurm: the
/// same command takes them up again. Throws InputError where Slurm says no.
Exit sweep_by_slurm(const SweepRun& run, const ParsedOptions& options);

/// "0-2,5,8-9", as sbatch --array takes it. `tasks` is in order.
std::string array_text(const std::vector<int>& tasks);

/// Of what `squeue -h -r -o %K` prints: the tasks that wait or run. Nothing if it is no such list.
std::optional<std::vector<int>> live_tasks(const std::string& squeue);

}  // namespace lockstep
