/// What stands behind the figures of a step's page: what `lockstep explain` says of each.
#pragma once

#include <string>
#include <string_view>

#include "sim/scenario/preset_store.hpp"
#include "tools/lockstep/run/run_result.hpp"

namespace lockstep {

class Page;

/// The id of the part of the page that is about a number: "behind-mfu".
std::string place_behind(std::string_view field);

/// A section with a part for each figure, closed until a figure is pressed: formula, inputs with
/// their sources, interval, nearest published runs.
void add_behind(Page& page, const RunResult& result, const PresetStore& presets);

}  // namespace lockstep
