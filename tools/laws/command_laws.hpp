/// Laws between commands: what one says of a scenario, another has to say too.
#pragma once

#include <string>
#include <vector>

#include "sim/laws/law.hpp"

namespace lockstep {

/// run, sweep, compare, tune, plan, and replay of a step's own export, each as the program runs it,
/// on files in a folder of their own. `presets`: the folders that --presets gave.
std::vector<Law> command_laws(const std::vector<std::string>& presets);

}  // namespace lockstep
