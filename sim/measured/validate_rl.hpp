/// Holds reinforcement learning against published steps, and generation against published
/// throughput: `lockstep validate --rl FILE`.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Predicts the rows of a file like tests/reference/rl.json (tests/reference/README.md has the
/// format): seconds of a step, and of answering all requests where a row is of an engine alone.
/// Throws InputError.
PointTable validate_rl(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
