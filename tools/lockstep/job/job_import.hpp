/// `lockstep import job`: a scenario out of the files that a training is launched with.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/import_job.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// Writes the scenario to --output, and what became of each key to the console. Throws InputError;
/// nothing is written then but the keys, where they are known.
Exit import_job_files(const ParsedOptions& options, const std::vector<std::string>& files,
                      const PresetStore& presets, Console& console);

}  // namespace lockstep
