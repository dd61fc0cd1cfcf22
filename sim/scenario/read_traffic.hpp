/// Reads a traffic scenario from JSON and checks every value. scenarios/comm/README.md describes
/// the format; scenarios/comm.schema.json is for editors.
#pragma once

#include <string>
#include <string_view>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/traffic.hpp"

namespace lockstep {

/// How much there is to simulate, from the entries alone.
struct TrafficExtent {
  double messages = 0;  ///< simulated one by one
  double at_once = 0;   ///< of them, those that are kept at any time
  double paths = 0;     ///< looked up for them
};
TrafficExtent extent_of(const TrafficEntry& entry);

/// From the root of a parsed file, which has to have "traffic". Throws InputError.
TrafficScenario read_traffic(const JsonCursor& root, const PresetStore& presets);

/// The same from a text. `file` is the name for messages.
TrafficScenario read_traffic(const std::string& file, std::string_view text,
                             const PresetStore& presets);

}  // namespace lockstep
