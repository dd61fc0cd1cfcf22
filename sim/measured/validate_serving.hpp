/// Holds serving against measured rows: `lockstep validate --serving FILE`.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Predicts the figures of each row of a file like tests/reference/serving.json
/// (tests/reference/README.md has the format): a point for each figure. Throws InputError.
PointTable validate_serving(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
