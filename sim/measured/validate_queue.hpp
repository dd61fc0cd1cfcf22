/// Holds queues against what was published or recorded of them: `lockstep validate --queue PATH`.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Simulates each queue of a file, or of the files of a folder, as `lockstep run` does
/// (tests/reference/queue/README.md has the format): a point for each figure, and a line for each
/// that is further off than promised. Queues whose trace or schedule is not at hand are counted as
/// skipped. Throws InputError.
PointTable validate_queue(const std::string& path, const PresetStore& presets);

}  // namespace lockstep
