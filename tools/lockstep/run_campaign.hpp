/// `lockstep run` of a scenario with "run": days to months, with failures and checkpoints.
#pragma once

#include "models/input/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/options.hpp"

namespace lockstep {

Exit run_campaign(const JsonCursor& root, const Scenario& scenario, const PresetStore& presets,
                  const ParsedOptions& options, Console& console);

}  // namespace lockstep
