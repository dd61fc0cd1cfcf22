#include "sim/scenario/responses.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr int kMostQuantiles = 4096;  // by which the centre of the distribution is found
constexpr std::uint32_t kShuffle = 1;

double quantile_of(int i, int count) { return normal_quantile((i + 0.5) / count); }

/// Logarithm of the median at which cut lengths have the wanted mean.
double centre_of(const ResponseLengths& r, int count) {
  const int quantiles = std::min(count, kMostQuantiles);
  std::vector<double> spread(static_cast<std::size_t>(quantiles));
  for (int i = 0; i < quantiles; ++i) {
    spread[static_cast<std::size_t>(i)] = portable_exp(r.sigma * quantile_of(i, quantiles));
  }
  double low = 0, high = portable_log(r.most) + 8 * r.sigma + 1;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2, median = portable_exp(middle);
    double sum = 0;
    for (const double factor : spread) sum += std::min<double>(r.most, median * factor);
    (sum / quantiles < r.mean ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::vector<int> response_lengths(const ResponseLengths& r, int count, std::uint64_t seed) {
  assert(count >= 1 && (!r.listed.empty() || (r.mean >= 1 && r.mean <= r.most)));
  std::vector<int> lengths(static_cast<std::size_t>(count));
  const bool spread = r.listed.empty() && r.sigma > 0 && r.mean < r.most;
  const double centre = spread ? centre_of(r, count) : 0;
  for (int i = 0; i < count; ++i) {
    double length = r.mean;
    if (spread) {
      length = std::min<double>(r.most, portable_exp(centre + r.sigma * quantile_of(i, count)));
    } else if (!r.listed.empty()) {
      length = r.listed[static_cast<std::size_t>(i) % r.listed.size()];
    }
    lengths[static_cast<std::size_t>(i)] = std::max(1, static_cast<int>(std::lround(length)));
  }
  RandomStream random({.seed = seed, .trajectory = 0, .component = 0, .purpose = kShuffle});
  for (std::size_t left = lengths.size(); left > 1; --left) {
    std::swap(lengths[left - 1], lengths[random.below(static_cast<std::uint32_t>(left))]);
  }
  return lengths;
}

}  // namespace lockstep
