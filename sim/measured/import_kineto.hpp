/// A profile out of traces of the PyTorch profiler.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/imported.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The text of a profile (scenarios/profile.schema.json) of the products, attention and collectives
/// of traces (Chrome trace JSON, plain or .gz) that were recorded with shapes, and the kernels that
/// were left out. `gpus_per_node`: how ranks fill nodes (NVLink domains); 0: not said, collectives
/// are left out. A product's time is that of all its kernels, over calls
/// the median; a collective's is its shortest call, since its kernel waits inside for other ranks.
/// An empty profile where nothing became a point. Throws InputError.
Imported import_kineto(const std::vector<std::string>& files, const ImportMachine& machine,
                       int gpus_per_node, const PresetStore& presets);

}  // namespace lockstep
