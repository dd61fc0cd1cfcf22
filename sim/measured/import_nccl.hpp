/// A profile out of what nccl-tests measured.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/imported.hpp"
#include "sim/measured/nccl_log.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The text of a profile (scenarios/profile.schema.json) with the collectives of logs, of JSON
/// that nccl-tests wrote, and of files of series (tests/reference/README.md), of which those of
/// `machine.gpu` are taken, over several nodes those of its network. Hosts that one NVLink domain
/// of the node joins count as one node. Throws InputError, also where nothing is left.
Imported import_nccl(const std::vector<std::string>& files, const ImportMachine& machine,
                     const NcclLogOptions& options, const PresetStore& presets);

/// The collectives that such a file of series has of the card inside one node, as points of a
/// profile. Throws InputError.
nlohmann::ordered_json collectives_in_a_node(const std::string& file, const std::string& gpu,
                                             const PresetStore& presets);

}  // namespace lockstep
