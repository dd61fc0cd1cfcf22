/// A part of a scenario that changes a job which came from elsewhere, such as a row of
/// measurements.
#pragma once

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// Applies `from`, an object with keys of a scenario: `model` (what differs from the draft's),
/// `stack` (what it does and its constants, not another one) and the members of the job
/// (declare_job()). Throws InputError, also for a key that it does not know.
void change_job(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft);

}  // namespace lockstep
