#include "models/collectives/exchange_skew.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "models/collectives/channels.hpp"

namespace lockstep {
namespace {

/// What `hot` of n members are sent over the mean, and what the others are.
struct Parts {
  double fullest, others;
};
Parts parts_of(double fullest, double hot, double n) {
  const double most = std::min(fullest, n / hot);
  return {most, n > hot ? (n - most * hot) / (n - hot) : 1.0};
}

}  // namespace

SkewFactors skew_factors(const ExchangeSkew& skew, double n, double g, bool gathered) {
  assert(g >= 1 && g <= n && skew.fullest >= 1);
  if (skew.is_even()) return {};
  const double domains = n / g;
  const auto [fullest, others] = parts_of(skew.fullest, skew.whole_domain ? g : 1, n);
  if (!gathered) return {fullest, fullest};
  const double of_domain = skew.whole_domain ? fullest : (fullest + (g - 1) * others) / g;
  if (skew.back) return {.network = of_domain, .nvlink = fullest};
  return {.network = fullest, .nvlink = (fullest + (domains - 1) * others) / domains};
}

std::vector<double> skew_weights(const ExchangeSkew& skew, std::span<const GroupMember> members) {
  assert(!members.empty());
  const auto is_hot = [&](std::size_t member) {
    return skew.whole_domain ? members[member].node == members.front().node : member == 0;
  };
  double hot = 0;
  for (std::size_t m = 0; m < members.size(); ++m) hot += is_hot(m) ? 1 : 0;
  const auto [fullest, others] = parts_of(skew.fullest, hot, static_cast<double>(members.size()));
  std::vector<double> weights(members.size());
  for (std::size_t m = 0; m < members.size(); ++m) weights[m] = is_hot(m) ? fullest : others;
  return weights;
}

}  // namespace lockstep
