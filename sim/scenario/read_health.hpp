/// "health" of a queue: drains, lemon nodes and how they are found, burn-in.
#pragma once

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

void declare_health(const DeclaredMembers& member, QueueSpec& out);

/// What it asks of the other rules, and what is assumed. Throws InputError.
void check_health(const JsonCursor& queue, QueueSpec& out);

}  // namespace lockstep
