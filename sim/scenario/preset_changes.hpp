/// What somebody changed of a preset's constants: what published runs say of the preset says
/// nothing of the changed one. Choices (true or false, one of several names) are not constants:
/// they select among what is modelled.
#pragma once

#include <string>
#include <vector>

#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Numbers of a stack that make a step longer or shorter, by their path: "elementwise.slowdown".
/// Not what it keeps in memory, nor values that published runs have too, such as a launch_interval
/// of 0 under CUDA graphs.
std::vector<std::string> changed_constants(StackSpec before, StackSpec after);

/// Members of a GPU that make a step longer or shorter: "hbm_bandwidth". Those that a preset names
/// (collectives), and attention, are not looked at.
std::vector<std::string> changed_constants(GpuSpec before, GpuSpec after,
                                           const PresetStore& presets);

}  // namespace lockstep
