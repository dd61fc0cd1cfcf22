/// The candidates of a plan's file: each a scenario, put together from its parts.
#pragma once

#include <array>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/search/plan_spec.hpp"

namespace lockstep {

/// One for each region and size. `root` is the plan's, within its read_whole(): what scenarios lack
/// is added to what the plan lacks. `plan` has its training, regions and data; `inputs` hold where
/// a candidate says nothing. Throws InputError.
std::vector<PlanCandidate> read_candidates(const JsonCursor& root, const PresetStore& presets,
                                           const PlanSpec& plan,
                                           const std::array<Distribution, kPlanInputs>& inputs);

/// Reads "uncertain" over what `out` has; finished.
void read_uncertain(const JsonCursor& from, std::array<Distribution, kPlanInputs>& out);

}  // namespace lockstep
