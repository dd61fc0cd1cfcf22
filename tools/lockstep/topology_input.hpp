/// Where `lockstep topology` gets a fabric from: a file in any format that is known, a scenario, or
/// a fabric preset with a number of nodes.
#pragma once

#include <optional>
#include <string>

#include "sim/answer/topology_of_cluster.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "tools/console/options.hpp"
#include "topologies/formats/import.hpp"

namespace lockstep {

/// What --rate and --hosts say. Throws UsageError or InputError.
ImportOptions import_options(const ParsedOptions& options);

/// The format that --from names, else the one that the text looks like.
const ImportFormat& import_format(const ParsedOptions& options, const std::string& file,
                                  const std::string& text);

/// The fabric that the second word of the command line names. A server's description has none:
/// throws UsageError for it, and InputError for what cannot be read.
TopologyInput topology_input(const ParsedOptions& options, const PresetStore& presets);

}  // namespace lockstep
