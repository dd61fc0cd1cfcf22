/// A profile out of the tables of Nsight Systems.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/imported.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The text of a profile (scenarios/profile.schema.json) of the products and attention in tables of
/// nsys stats (nsys_report.hpp; plain or .gz), or in an export to SQLite, of a run under PyTorch's
/// emit_nvtx(record_shapes=True): the ranges carry the shapes, the kernels' names the number format
/// and the mask. `type`: of products whose kernels do not say it, as PyTorch calls it; empty: they
/// are left out. A product's time is that of all its kernels, over its ranges the median. An empty
/// profile where nothing became a point. Throws InputError.
Imported import_nsys(const std::vector<std::string>& files, const std::string& type,
                     const ImportMachine& machine, const PresetStore& presets);

}  // namespace lockstep
