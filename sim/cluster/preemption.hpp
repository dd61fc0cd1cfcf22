/// Who goes for whom by Slurm's rules: preemption by qualities of service, or by partitions' tiers.
#pragma once

#include <cstdint>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// Running jobs that may go for a waiting one, the most dispensable first: by quality or tier and
/// then by nodes, fewest first; or the youngest first. Whoever has run less than the exempt time
/// stays. Source: Slurm 22.05, src/slurmctld/preempt.c and src/plugins/preempt.
std::vector<std::uint32_t> preemption_candidates(const QueueState& state, std::uint32_t j);

/// Whether a job may preempt another, by its quality of service or its partition.
bool may_preempt(const QueueState& state, std::uint32_t j, std::uint32_t of);

/// Preempts for a waiting job that fits on the nodes `usable` (null: all) when others go. They are
/// taken away one by one until it fits; then, reorder_count times, candidates are sorted by how
/// many of the nodes found are theirs, and the search begins anew. Whether the job may now fit:
/// where graces run, it has to wait for their ends. Where victims are suspended, what suspended
/// ones keep is tried before. Source: Slurm 22.05, src/plugins/select/cons_common/job_test.c,
/// _run_now().
bool preempt_for(QueueState& state, std::uint32_t j, const NodeSet* usable);

}  // namespace lockstep
