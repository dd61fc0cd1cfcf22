/// The project's own reference data: tests/reference in the source tree, or installed.
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Path of a reference file ("training.json"). Throws InputError where there is none.
std::string reference_file(const PresetStore& presets, std::string_view name);

}  // namespace lockstep
