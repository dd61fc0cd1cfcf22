/// Dominant resource fairness: whose account has least of what it has most of.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// What the running jobs of each account hold of GPUs and of each licence, as shares of all there
/// are; the largest of them, over the account's weight, is its dominant share, and the least comes
/// first. CPUs and nodes go with the GPUs. Weights are the shares of QueueSpec::associations, 1 of
/// an account that is not there; one of 0 comes after all others. Source: Ghodsi et al. 2011, NSDI,
/// "Dominant resource fairness", sections 4.1 and 4.3.
class DominantShares {
 public:
  /// `spec` outlives it. Keeps nothing unless its order is drf.
  explicit DominantShares(const QueueSpec& spec);

  [[nodiscard]] bool used() const { return !held_.empty(); }
  /// A job holds what it asks for (`sign` 1), or does not any more (-1).
  void count(const QueueJob& job, int sign);
  /// The dominant share of an account when the shares were reckoned last.
  [[nodiscard]] double of(std::uint16_t account) const { return shares_[account]; }
  /// Reckons the shares of all accounts anew; whether any has changed.
  bool reckon();

 private:
  const QueueSpec* spec_;
  std::vector<std::vector<std::int64_t>> held_;  ///< by account: GPUs, then each licence
  std::vector<double> weights_, shares_;         ///< by account
};

}  // namespace lockstep
