/// Which software a job runs: one way for scenarios and for rows of measured runs.
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// The stack that stands in where nobody says which one ran, or where it has no preset.
inline constexpr std::string_view kDefaultStack = "neutral";

/// Sets the stack of a job whose software was named; the name is that of a preset, or another
/// spelling of one. Throws InputError.
void choose_stack(std::string_view name, std::string_view release, const PresetStore& presets,
                  ScenarioDraft& draft);

/// Sets the default stack. `named`: software without a preset; empty: nobody said which it was.
/// Both make the interval around the step time that of unknown software.
void choose_default_stack(std::string_view named, std::string_view release,
                          const PresetStore& presets, ScenarioDraft& draft);

}  // namespace lockstep
