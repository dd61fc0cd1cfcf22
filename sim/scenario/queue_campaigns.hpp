/// Reads the "campaigns" of a queue: many trials of one job, and how the worse ones are stopped.
#pragma once

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Adds the jobs of all rungs; those of later ones with a submission of kNotSubmitted. Requires
/// that partitions, qualities of service and reservations are known. Throws InputError.
void declare_campaigns(const DeclaredMembers& member, const PresetStore& presets, QueueSpec& out);

}  // namespace lockstep
