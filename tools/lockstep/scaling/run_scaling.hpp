/// `lockstep run X --scaling 64,128,...`: options in, tables of efficiencies out.
#pragma once

#include <string>

#include "sim/scenario/preset_store.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"

namespace lockstep {

/// As a table, JSON, CSV, and a page where --report asks for one. Throws UsageError for options
/// about one answer alone, and for numbers of GPUs that do not rise.
Exit run_scaling(const std::string& path, const std::string& text, const PresetStore& presets,
                 const ParsedOptions& options, Console& console);

}  // namespace lockstep
