/// A profile against the laws, and against itself with points left out.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// `file`: a profile's, or the name of a preset. Each point twice: predicted by the law of its kind
/// alone, and by the law corrected by all other points of the profile. Throws InputError.
PointTable validate_profile(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
