/// `lockstep import recording`: a stack out of a recorded training step.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/recorded_stack.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// Writes the stack to --output, and what was read of it and what was not to the console. Throws
/// InputError and UsageError; nothing is written then.
Exit import_recorded_stack(const ParsedOptions& options, const std::vector<std::string>& files,
                           const PresetStore& presets, Console& console);

}  // namespace lockstep
