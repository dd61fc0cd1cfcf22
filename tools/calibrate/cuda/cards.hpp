/// The cards of this machine, before any of them is used.
#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/calibrate/nvml.hpp"

namespace lockstep {

/// How many the process sees. Throws CardUnavailable where there is none.
int card_count();

cudaDeviceProp properties_of(int device);

/// NVML's view of it; null: not to be had.
std::unique_ptr<Nvml> nvml_of(int device);

/// Throws CardUnavailable for a card that other programs use or that is too small; a card that was
/// busy although no program is on it gets a line on standard error and among the conditions. Call
/// it before a context of ours counts as use of it.
void require_idle(int device, Nvml* nvml, const cudaDeviceProp& properties);

/// Conditions of a profile: versions of the CUDA runtime and of the driver, and what NVML says.
void add_versions(const Nvml* nvml, std::vector<std::pair<std::string, std::string>>& conditions);

}  // namespace lockstep
