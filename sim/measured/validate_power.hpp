/// Holds power against meters: `lockstep validate --power FILE`.
#pragma once

#include <string>

#include "sim/measured/point_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Predicts every row of a file of measured power (tests/reference/README.md has the format). A row
/// says what it ran on: `gpu` names the preset, `cooling` the chassis of that generation, `where`
/// whether the meter sat before or behind the power supply; `workload` names a scenario in the
/// file's "workloads", else in the project's own tests/reference/power.json, which is run on the
/// row's nodes with as many replicas as they hold. Points: mean node power, mean of all nodes
/// together, idle node and GPU, a node with its GPUs at their limit, joules per token, and a step's
/// profile as the meter averages it, shifted so that it fits best (nobody measured where a step
/// begins). Left out, counted by reason: workloads and GPUs that no preset is about.
///
/// Throws InputError if the file is no such file.
PointTable validate_power(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
