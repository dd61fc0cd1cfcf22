/// "burst" of a queue: jobs that have waited too long start on rented nodes.
#pragma once

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// To be called when the partitions and qualities of service are known, and before the jobs are
/// read: trainings are laid out on rented nodes as well, where these are of another kind.
void declare_burst(const DeclaredMembers& member, const PresetStore& presets, QueueSpec& out);

/// What it asks of the other rules, and what is assumed. Throws InputError.
void check_burst(const JsonCursor& queue, QueueSpec& out);

}  // namespace lockstep
