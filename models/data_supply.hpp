/// How a dataset gets to the job: from tier to tier before it trains, and how fast while it does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

/// A tier that a dataset lies in: an archive, an object store, a parallel file system.
struct DataTier {
  std::string name;
  Seconds first_byte;  ///< from a request until it reads at its rate: an archive's retrieval
  BytesPerSecond read, write;                        ///< all clients together
  double usd_per_gb_month = 0, usd_per_gb_read = 0;  ///< of 1e9 bytes
};

/// A dataset's way from a tier to the next.
struct StagingHop {
  std::string from, to;
  Seconds starts, takes;
  BytesPerSecond rate;
};
/// From each tier to the next one, when all of it has arrived:
///
///     takes = first_byte + bytes / min(read of the one, write of the next)
///
/// Requires rates above 0 wherever data is read or written.
std::vector<StagingHop> staging_hops(const std::vector<DataTier>& tiers, Bytes bytes);

/// Rates at which training data can come, all nodes together; infinite: nothing limits it there.
struct DataRates {
  BytesPerSecond loader;                   ///< bytes that the CPUs make batches of
  BytesPerSecond staging;                  ///< from colder tiers, while the job trains
  BytesPerSecond storage;                  ///< what the loader reads from
  BytesPerSecond cache_read, cache_write;  ///< drives of the nodes
};

/// What a job waits for.
enum class DataLimit : std::uint8_t { none, loader, staging, storage, cache, network };
inline constexpr std::array<std::string_view, 6> kDataLimits{"none",    "loader CPUs", "staging",
                                                             "storage", "node cache",  "network"};

/// One pass over the dataset.
struct EpochSpeed {
  double speed = 1;         ///< of a job that never waits for data
  double from_storage = 1;  ///< of its bytes; the others come from the nodes' drives
  DataLimit limit = DataLimit::none;
};
/// The first pass reads all of it from storage, and writes the share `cached` of it to drives:
///
///     speed = min(1, loader / d, staging / d, storage / d, cache_write / (cached d))
///
/// Later passes read that share from the drives (a cache that never throws out what it holds, as
/// MinIO of Mohan et al. 2021, VLDB 14(5), section 4.1):
///
///     speed = min(1, loader / d, storage / ((1 - cached) d), cache_read / (cached d))
///
/// with d what a job at full speed reads. What limits is the least term, the first of equal ones.
EpochSpeed first_epoch(const DataRates& rates, BytesPerSecond needed, double cached);
EpochSpeed later_epoch(const DataRates& rates, BytesPerSecond needed, double cached);

/// Mean over a run of so many passes, by what each of them takes: 1 / sum(share / speed).
double speed_over_epochs(double first, double later, double epochs);
/// Of all bytes of so many passes, those that come from storage.
double share_from_storage(const EpochSpeed& later, double epochs);

}  // namespace lockstep
