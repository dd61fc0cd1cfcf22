#include "sim/run/data_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/site/finance.hpp"

namespace lockstep {
namespace {

constexpr double kGigabyteOfData = 1e9;

}  // namespace

DataLimit DataPlan::limit() const {
  const bool mostly_later = epochs > 1 && (epochs - 1) / later.speed > 1 / first.speed;
  return mostly_later ? later.limit : first.limit;
}

std::vector<DataTier> data_tiers(const DataSpec& data, BytesPerSecond write) {
  std::vector<DataTier> out = data.tiers;
  out.push_back({.name = data.storage.name,
                 .first_byte = {},
                 .read = data.storage.read,
                 .write = write,
                 .usd_per_gb_month = data.usd_per_gb_month,
                 .usd_per_gb_read = 0});
  return out;
}

BytesPerSecond staging_rate(const DataSpec& data, BytesPerSecond write) {
  BytesPerSecond least{std::numeric_limits<double>::infinity()};
  if (data.staging == DataStaging::before || !data.dataset) return least;
  for (const StagingHop& hop : staging_hops(data_tiers(data, write), *data.dataset)) {
    least = std::min(least, hop.rate);
  }
  return least;
}

DataPlan stage_data(const DataSpec& data, Bytes dataset, BytesPerSecond write) {
  const std::vector<DataTier> tiers = data_tiers(data, write);
  DataPlan out;
  out.dataset = dataset;
  out.hops = staging_hops(tiers, out.dataset);
  const double gigabytes = out.dataset.base_units() / kGigabyteOfData;
  const bool during = data.staging == DataStaging::during;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    out.tiers.push_back({.name = tiers[i].name,
                         .from = i == 0 ? Seconds{} : out.hops[i - 1].starts,
                         .read_at = out.begins,
                         .usd_per_month = gigabytes * tiers[i].usd_per_gb_month,
                         .read_usd = gigabytes * tiers[i].usd_per_gb_read});
    if (i == out.hops.size()) break;
    if (during) out.hops[i].starts = out.begins;
    out.begins += during ? tiers[i].first_byte : out.hops[i].takes;
  }
  return out;
}

std::vector<double> tier_months(const HeldTier& tier, Seconds end) {
  const auto months =
      static_cast<std::size_t>(std::max(1.0, std::ceil(end.base_units() / kMonthSeconds)));
  std::vector<double> out(months, 0.0);
  const double from = tier.from.base_units();
  for (std::size_t m = 0; m < months; ++m) {
    const double begin = std::max(from, static_cast<double>(m) * kMonthSeconds);
    const double until = std::min(end.base_units(), static_cast<double>(m + 1) * kMonthSeconds);
    out[m] += tier.usd_per_month * std::max(0.0, until - begin) / kMonthSeconds;
  }
  const auto read = static_cast<std::size_t>(tier.read_at.base_units() / kMonthSeconds);
  out[std::min(read, months - 1)] += tier.read_usd;
  return out;
}

double storage_usd(const DataPlan& plan, Seconds end) {
  double sum = 0;
  for (const HeldTier& tier : plan.tiers) {
    for (const double usd : tier_months(tier, end)) sum += usd;
  }
  return sum;
}

}  // namespace lockstep
