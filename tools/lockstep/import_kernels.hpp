/// A profile out of measured kernels.
#pragma once

#include <string>
#include <vector>

#include "models/hardware.hpp"

namespace lockstep {

/// Rows of kernels (kernel_rows.hpp).
struct KernelFiles {
  std::vector<std::string> gemm, attention, memory;
};

/// The text of a profile of the card (scenarios/profile.schema.json), from the rows that are of it
/// and of one kernel: products and passes that were timed together are passed over, and so is
/// attention beside a kernel of another speed. Throws InputError, also where no row is left.
std::string import_kernels(const KernelFiles& files, const GpuSpec& gpu);

}  // namespace lockstep
