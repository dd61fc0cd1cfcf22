/// The "cluster_queues" of a queue: quotas as Kueue has them.
#pragma once

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

void declare_cluster_queues(const DeclaredMembers& member, QueueSpec& out);

/// What ClusterQueues ask of the other rules, and of all jobs. Throws InputError.
void check_cluster_queues(const JsonCursor& queue, const QueueSpec& spec);

}  // namespace lockstep
