/// What a series of nccl-tests ran on, as the models take it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"
#include "sim/measured/nccl_series.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

struct NcclMachine {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string gpu_preset, transport_preset;  ///< transport "none" inside one node
  BytesPerSecond nic_bandwidth;              ///< of each GPU
};

/// Why a series says nothing about a machine as it should be (misconfigured, algorithm forced), as
/// its source flags it; or nothing.
std::optional<std::string> oddity(const NcclSeries& series);

/// The machine, or the reason why there is none in `why`. `gpus`: the names of GPU presets, sorted.
std::optional<NcclMachine> machine_of(const NcclSeries& series, const PresetStore& presets,
                                      const std::vector<std::string>& gpus, std::string& why);

}  // namespace lockstep
