/// What a new scenario is to be, asked of a person.
#pragma once

#include <string>

#include "sim/scenario/preset_store.hpp"
#include "tools/author/new_scenario.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// Fills in what no option says by what a person answers.
void ask_for_rest(const ParsedOptions& options, const PresetStore& presets, std::string& kind,
                  NewWish& wish);

/// What a sweep varies, as its file names it: a file of this folder or of the new file's, or one
/// that is installed. Throws InputError where there is none.
std::string varied_scenario(const NewWish& wish, const PresetStore& presets);

}  // namespace lockstep
