#include "sim/cluster/queue_spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace lockstep {

std::optional<QueueSpread> spread_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const auto at = [&](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return QueueSpread{.mean = sum / static_cast<double>(values.size()),
                     .p50 = at(0.5),
                     .p90 = at(0.9),
                     .p99 = at(0.99),
                     .most = values.back()};
}

}  // namespace lockstep
