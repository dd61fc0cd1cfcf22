/// Turns a row of published measurements into a scenario: finds the node and the software it ran
/// on, and decides what the row leaves open, saying so in the scenario's assumptions.
#pragma once

#include <string>

#include "sim/measured/rows.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// A row with all that is decided about it, before what is left open is filled in as in a scenario.
struct RowDraft {
  ScenarioDraft draft;
  std::string gpu;           ///< the preset of its card
  std::string stack_preset;  ///< of its software; empty: that has none
  StackSpec stack;           ///< that preset, or what stands in, before what the row changes
};
/// Requires a row without an obstacle. Throws InputError as row_scenario().
RowDraft row_draft(const ReferenceRow& row, const PresetStore& presets);

/// Requires a row without an obstacle. Throws InputError for a row whose GPU or network has no
/// preset, or whose parts do not fit together.
///
/// What a row leaves open is decided as for a scenario (complete_scenario(), choose_stack()), but
/// for
/// - node: of the presets with this GPU the one that has most in common with the row (GPUs per
/// node,
///   NVLink domain, network rate, transport); what differs is taken from the row
/// - network rate and transport: the node's
/// - measured collective rates, where a row has them: a latency per node (see the source)
/// - recompute: the least that fits in memory
/// - positions, biases: by the family of the model
Scenario row_scenario(const ReferenceRow& row, const PresetStore& presets);

/// The preset of a kind of GPU: "H100-SXM5-80GB" is h100_sxm5_80gb; a preset's name may be the
/// beginning of the row's ("H100-SXM-96GB-HBM2e-500W" is h100_sxm_96gb_hbm2e), or the other way
/// round. Throws InputError.
std::string gpu_preset_of(const std::string& kind, const std::string& file,
                          const PresetStore& presets);

}  // namespace lockstep
