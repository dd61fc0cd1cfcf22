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

/// Sets a stack that is composed from what the named one does, without anything that was fitted to
/// runs of it; it is refused nothing. Throws InputError, also where that stack does not say what it
/// does.
void choose_framework(std::string_view name, const PresetStore& presets, ScenarioDraft& draft);

/// Makes the stack of the draft do what `switches` say: of a composed stack its numbers follow, of
/// any other they change by what composing it makes of the difference.
void change_switches(const StackSwitches& switches, const PresetStore& presets,
                     ScenarioDraft& draft);

/// Reads changes to the draft's stack: to what it does, and to its constants. Throws InputError.
void change_stack(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft);

/// Applies what the stack of a whole scenario learnt from steps of jobs of this kind: sets its
/// level, and how sure that is. Of another kind than any that was measured, half of what was learnt
/// counts.
void apply_learnt(Scenario& scenario);

/// Sets the default stack. `named`: software without a preset; empty: nobody said which it was.
/// Both make the interval around the step time that of unknown software.
void choose_default_stack(std::string_view named, std::string_view release,
                          const PresetStore& presets, ScenarioDraft& draft);

/// Of a default stack that nobody named: where a card has no fused attention, leaves it unfused.
void take_attention_of_cards(ScenarioDraft& draft);

}  // namespace lockstep
