/// Reads what predictions of published runs missed by, and says what a scenario has in common with
/// them: models/accuracy/prediction_interval.hpp makes an interval of the two.
#pragma once

#include <string>
#include <string_view>

#include "models/accuracy/prediction_interval.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Throws InputError. `file` is the name for messages.
ResidualTable read_residuals(const std::string& file, std::string_view text);

/// Those that ship: accuracy/published.json of the preset folders. Throws InputError.
ResidualTable load_residuals(const PresetStore& presets);

PredictionTraits traits_of(const Scenario& scenario);

/// The interval of a scenario's step time by the residuals that ship. Throws InputError.
PredictionInterval interval_of(const Scenario& scenario, const PresetStore& presets);

}  // namespace lockstep
