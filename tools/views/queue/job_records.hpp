/// What became of each job of a simulated queue, in the formats in which clusters keep it.
#pragma once

#include <string>

#include "sim/answer/queue_answer.hpp"

namespace lockstep {

/// The table of `sacct -P` with its heading: a row for each job that was submitted, tasks of arrays
/// as 12_0, times in whole seconds from Monday, 2001-01-01 (and the hour at which Slurm's clock
/// begins, where the scenario says it). Of a job that ran several times the last run, as sacct has
/// it without --duplicates. Requires that spans are kept.
std::string accounting_table(const QueueAnswer& answer);

/// The Standard Workload Format, version 2.2 (Feitelson, Parallel Workloads Archive): processors
/// are GPUs, times whole seconds; the run time is all that a job held its GPUs. Jobs that never
/// started are left out and counted in the heading.
std::string workload_log(const QueueAnswer& answer);

}  // namespace lockstep
