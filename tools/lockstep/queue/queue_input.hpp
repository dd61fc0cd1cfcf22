/// The scenario with "queue" that an action of `lockstep queue` is of.
#pragma once

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/queue_spec.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

struct QueueInput {
  QueueSpec spec;
  WrittenScenario written;  ///< as it was parsed, for the page
};
/// That of the second word, with its trainings timed. Throws InputError.
QueueInput timed_queue(const ParsedOptions& options, const PresetStore& presets);

}  // namespace lockstep
