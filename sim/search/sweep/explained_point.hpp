/// What stands behind a number of a sweep's point: a column of its table, or a number of the answer
/// to the point's scenario.
#pragma once

#include <cstdint>
#include <string>

#include "sim/measured/explanation.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/search/sweep/sweep.hpp"

namespace lockstep {

/// `number`: of the point, as the column "point" of the results has it, below Sweep::candidates().
/// Inputs that the sweep sets
/// are from its axes and derived columns; others as explain_field() has them. Throws InputError for
/// a number that the constraints leave out, a point whose scenario has no answer, and a field that
/// neither the table nor the answer has. `allow_oom`: as for answer_to_document().
FieldExplanation explain_point(const Sweep& sweep, std::uint32_t number, const std::string& field,
                               const PresetStore& presets, bool allow_oom);

}  // namespace lockstep
