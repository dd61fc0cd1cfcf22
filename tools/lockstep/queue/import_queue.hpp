/// `lockstep queue import`: a site's Slurm or Kueue as a scenario.
#pragma once

#include "tools/console/shared_options.hpp"

namespace lockstep {

/// Reads what --slurm, --topology, --accounting, --squeue, --sacctmgr and --qos name, or --kueue
/// with --nodes, and writes the scenario to --output and its jobs beside it, as NAME.jobs.csv. What
/// the scenario lacks is said on standard error, a line each. Of --openb-nodes and --openb-pods it
/// writes a document for `lockstep queue fill`. Throws UsageError without --output and one of
/// these.
Exit import_queue(const ParsedOptions& options, Console& console);

}  // namespace lockstep
