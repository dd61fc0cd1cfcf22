/// The scenario with "queue" that an action of `lockstep queue` is of.
#pragma once

#include "sim/scenario/queue_spec.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// That of the second word, with its trainings timed. Throws InputError.
QueueSpec timed_queue(const ParsedOptions& options);

}  // namespace lockstep
