/// "power" and "cost" of a scenario.
#pragma once

#include <string>

#include "models/input/json_cursor.hpp"
#include "sim/power/power_spec.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The facility of a scenario that names none.
constexpr std::string_view kDefaultFacility = "air_chiller";

/// Reads both, each with its files relative to the folder of `file`; finished. Throws InputError.
PowerSpec read_power(const JsonCursor& from, const PresetStore& presets);
void read_cost(const JsonCursor& from, const std::string& file, CostSpec& out);

}  // namespace lockstep
