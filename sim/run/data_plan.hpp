/// The dataset of a run: staged from tier to tier, read by the job, paid for by the month.
#pragma once

#include <string>
#include <vector>

#include "models/data_supply.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {

/// A tier that holds the dataset, from a moment until the run is done.
struct HeldTier {
  std::string name;
  Seconds from;              ///< room for all of it is held, while it arrives too
  Seconds read_at;           ///< the next tier gets it
  double usd_per_month = 0;  ///< of 1/12 of 365.25 days
  double read_usd = 0;       ///< for reading it once, to the next tier
};

struct DataPlan {
  Bytes dataset;
  std::vector<StagingHop> hops;  ///< one after the other; "during": what each alone would take
  Seconds begins;                ///< until the job can begin
  std::vector<HeldTier> tiers;   ///< as hops go, with what the loader reads from
  double epochs = 1;             ///< that the run reads, of the dataset; below 1: a part of it
  double cached = 0;             ///< of the dataset, on the nodes' drives after the first pass
  EpochSpeed first, later;       ///< later: only where there is more than one

  /// What holds the job back for most of its time.
  [[nodiscard]] DataLimit limit() const;
};

/// All tiers on the dataset's way, the one that the loader reads from last. `write` is what the
/// latter takes.
std::vector<DataTier> data_tiers(const DataSpec& data, BytesPerSecond write);
/// The narrowest hop: what the first pass gets while the dataset is still on its way. Infinite
/// where it is there before.
BytesPerSecond staging_rate(const DataSpec& data, BytesPerSecond write);

/// `dataset` is all of it. "before": the hops one after the other; "during": the first bytes have
/// to come through all tiers, then the job begins.
DataPlan stage_data(const DataSpec& data, Bytes dataset, BytesPerSecond write);

/// Money by month of one tier, from the start of staging to `end`: its price for as long as it
/// holds the data, and reading it out, when that begins.
std::vector<double> tier_months(const HeldTier& tier, Seconds end);
/// Of all tiers until `end`.
double storage_usd(const DataPlan& plan, Seconds end);

}  // namespace lockstep
