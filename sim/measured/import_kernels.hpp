/// A profile out of measured kernels.
#pragma once

#include <string>
#include <vector>

#include "models/spec/hardware.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Rows of kernels (kernel_rows.hpp), and series of nccl-tests (nccl_series.hpp).
struct KernelFiles {
  std::vector<std::string> gemm, attention, memory, nccl;
};

/// The text of a profile of the card (scenarios/profile.schema.json), from the rows that are of it
/// and of one kernel, and of the series inside one node: products and passes that were timed
/// together are passed over, and so is attention beside a kernel of another speed. Throws
/// InputError, also where no row is left.
std::string import_kernels(const KernelFiles& files, const GpuSpec& gpu,
                           const PresetStore& presets);

}  // namespace lockstep
