/// Parts of a "queue" that stand by themselves: preemption, placement, Slurm's cycles, partitions,
/// quotas. Each function declares its member.
#pragma once

#include <string_view>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Seconds that a queue may name: three years.
inline constexpr Interval kQueueSpan{0, 1e8};
inline constexpr Interval kPositiveQueueSpan{0, 1e8, true};

/// A member of type RunTime.
void declare_run_time(const DeclaredMembers& member, std::string_view key, RunTime& out,
                      const Interval& allowed, std::string_view sentence);

void declare_preemption(const DeclaredMembers& member, QueueSpec& out);
void declare_placement(const DeclaredMembers& member, QueuePlacement& out);
void declare_slurm(const DeclaredMembers& member, SlurmCycles& out);
void declare_partitions(const DeclaredMembers& member, QueueSpec& out);
void declare_quotas(const DeclaredMembers& member, QueueSpec& out);

}  // namespace lockstep
