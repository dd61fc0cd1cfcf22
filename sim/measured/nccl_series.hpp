/// A series of an nccl-tests file, and what its words say about the machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"

namespace lockstep {

struct NcclSample {
  Bytes size;                        ///< nccl-tests' size column
  std::optional<double> time_us;     ///< out of place, else in place
  double spread = 0;                 ///< of its repeats, relative; 0: not said
  std::vector<double> repeats_us{};  ///< of a file of series: out of place and in place
};

struct NcclSeries {
  std::string system, gpu, op, network;  ///< network: the field `inter`
  int nodes = 1, ranks = 2, gpus_per_node = 1;
  std::string algorithm;           ///< where it was set by hand
  std::vector<std::string> flags;  ///< what its source says is odd about it
  std::vector<NcclSample> samples;
};

/// Throws InputError if the text is no file of series.
std::vector<NcclSeries> parse_nccl_series(const std::string& file, std::string_view text);

/// "all_reduce", "alltoall", "sendrecv", ...: nccl-tests' names.
std::optional<CollectiveOp> op_of(std::string_view nccl_tests_name);

/// The transport preset that a network is about: "EFA v2 ..." efa_v2, "InfiniBand HDR ..."
/// infiniband; empty if it names none.
std::string transport_of(std::string_view network);

/// What each GPU gets of "8x400 Gb/s per node", "4x400 Gb/s per 4-GPU tray", "1x400 Gb/s per GPU"
/// or "8 Broadcom NICs (400 Gb/s)", one direction; nothing if there is no such statement.
std::optional<BytesPerSecond> nic_bandwidth_per_gpu(std::string_view network, int gpus_per_node);

/// The name among `presets` (sorted) that fits "H100-80GB SXM" best: it has to begin with the chip,
/// and the first of those that share most of the other words is taken. Empty if no chip fits.
std::string gpu_preset_of(std::string_view gpu, const std::vector<std::string>& presets);

}  // namespace lockstep
