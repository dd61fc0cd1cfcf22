#include "models/data_supply.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

/// A job's speed, as one source after the other holds it back.
class DataBound {
 public:
  explicit DataBound(BytesPerSecond needed) : needed_(needed) {}
  /// A source of the share `of` of the bytes.
  void by(DataLimit limit, BytesPerSecond rate, double of = 1) {
    if (of <= 0) return;
    const double speed = rate / needed_ / of;
    if (speed >= out_.speed) return;
    out_.speed = speed;
    out_.limit = limit;
  }
  [[nodiscard]] EpochSpeed with(double from_storage) const {
    EpochSpeed out = out_;
    out.from_storage = from_storage;
    return out;
  }

 private:
  BytesPerSecond needed_;
  EpochSpeed out_;
};

/// Of a run's bytes, those of its first pass.
double first_share(double epochs) { return epochs > 1 ? 1 / epochs : 1; }

}  // namespace

std::vector<StagingHop> staging_hops(const std::vector<DataTier>& tiers, Bytes bytes) {
  std::vector<StagingHop> out;
  Seconds now;
  for (std::size_t i = 0; i + 1 < tiers.size(); ++i) {
    const BytesPerSecond rate = std::min(tiers[i].read, tiers[i + 1].write);
    const Seconds takes = tiers[i].first_byte + bytes / rate;
    out.push_back({.from = tiers[i].name,
                   .to = tiers[i + 1].name,
                   .starts = now,
                   .takes = takes,
                   .rate = rate});
    now += takes;
  }
  return out;
}

EpochSpeed first_epoch(const DataRates& rates, BytesPerSecond needed, double cached) {
  DataBound bound(needed);
  bound.by(DataLimit::loader, rates.loader);
  bound.by(DataLimit::staging, rates.staging);
  bound.by(DataLimit::storage, rates.storage);
  bound.by(DataLimit::cache, rates.cache_write, cached);
  return bound.with(1);
}

EpochSpeed later_epoch(const DataRates& rates, BytesPerSecond needed, double cached) {
  DataBound bound(needed);
  bound.by(DataLimit::loader, rates.loader);
  bound.by(DataLimit::storage, rates.storage, 1 - cached);
  bound.by(DataLimit::cache, rates.cache_read, cached);
  return bound.with(1 - cached);
}

double speed_over_epochs(double first, double later, double epochs) {
  const double share = first_share(epochs);
  return share == 1 ? first : 1 / (share / first + (1 - share) / later);
}

double share_from_storage(const EpochSpeed& later, double epochs) {
  const double share = first_share(epochs);
  return share == 1 ? 1 : share + (1 - share) * later.from_storage;
}

}  // namespace lockstep
