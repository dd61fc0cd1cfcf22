#include "models/spec/expert_load.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "models/spec/transformer.hpp"

namespace lockstep {
namespace {

/// Shares of all copies.
struct Copies {
  double hottest = 0;  ///< for one expert, before the limit
  double fullest = 0;  ///< that the fullest rank takes
  double kept = 0;     ///< that all ranks take
};

/// In proportion to i^-exponent, falling; those above `most` get that, the others share the rest.
std::vector<double> zipf_shares(int experts, double exponent, double most) {
  std::vector<double> shares(static_cast<std::size_t>(experts));
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] = std::pow(static_cast<double>(i + 1), -exponent);
    sum += shares[i];
  }
  double left = 1;
  std::size_t first = 0;
  for (; first < shares.size() && shares[first] * left > most * sum; ++first) {
    sum -= shares[first];
    left -= most;
    shares[first] = most;
  }
  for (; first < shares.size(); ++first) shares[first] *= left / sum;
  return shares;
}

Copies by_zipf(const ExpertShape& x, int ranks, double exponent, double limit) {
  const std::vector<double> shares = zipf_shares(x.count, exponent, 1.0 / x.per_token);
  Copies out{.hottest = shares.front()};
  for (const double share : shares) out.kept += std::min(share, limit);
  if (shares.front() <= limit) out.kept = 1;
  const double first = std::min(shares.front(), limit);
  const double others = x.count > 1 ? (out.kept - first) / (x.count - 1) : 0;
  const double here = static_cast<double>(x.count) / ranks;
  out.fullest = first + std::max(0.0, here - 1) * others;
  return out;
}

Copies by_imbalance(const ExpertShape& x, int ranks, double imbalance, double limit) {
  const double here = static_cast<double>(x.count) / ranks;
  const double fullest = std::min(imbalance / ranks, 1.0);
  const double others = ranks > 1 ? (1 - fullest) / (ranks - 1) : 0;
  Copies out{.hottest = fullest / here};
  out.fullest = std::min(fullest, here * limit);
  out.kept = out.hottest <= limit ? 1 : out.fullest + (ranks - 1) * std::min(others, here * limit);
  return out;
}

}  // namespace

ExpertLoad expert_load(const ExpertShape& x, int ranks, const ExpertRouting& r) {
  assert(x.count >= 1 && ranks >= 1 && !(r.padded && r.capacity == 0));
  ExpertLoad load;
  if (!r.is_even() || (r.capacity > 0 && r.capacity < 1)) {
    const double limit = r.capacity > 0 ? r.capacity / x.count : 1;
    const Copies copies =
        r.zipf > 0 ? by_zipf(x, ranks, r.zipf, limit) : by_imbalance(x, ranks, r.imbalance, limit);
    load.kept = copies.kept;
    load.rows = copies.kept;
    load.fullest = std::max(1.0, ranks * copies.fullest / copies.kept);
    load.hottest = x.count * copies.hottest;
  }
  if (r.padded) {
    load.rows = r.capacity;
    load.fullest = 1;
  }
  return load;
}

ExpertLoad expert_load(const TrainingJob& job) {
  if (job.model.experts.count == 0) return {};
  return expert_load(job.model.experts, job.parallelism.expert, job.routing);
}

}  // namespace lockstep
