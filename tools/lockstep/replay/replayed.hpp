/// A replay as `lockstep replay` makes it, for other commands.
#pragma once

#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/views/replay/replay_output.hpp"

namespace lockstep {

/// Reads the trace that the positionals name and replays it on the cluster that the options of
/// `lockstep replay` say. Throws InputError or UsageError.
ReplayStudy replayed_study(const ParsedOptions& options, const PresetStore& presets,
                           Console& console);

}  // namespace lockstep
