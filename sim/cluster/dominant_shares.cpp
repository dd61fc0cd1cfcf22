#include "sim/cluster/dominant_shares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep {

DominantShares::DominantShares(const QueueSpec& spec) : spec_(&spec) {
  if (spec.order != QueueOrder::drf) return;
  held_.assign(spec.accounts.size(), std::vector<std::int64_t>(1 + spec.licenses.size()));
  weights_.assign(spec.accounts.size(), 1.0);
  shares_.assign(spec.accounts.size(), 0.0);
  for (const Association& of : spec.associations) {
    if (!of.is_user) weights_[of.number] = of.shares;
  }
}

void DominantShares::count(const QueueJob& job, int sign) {
  if (!used()) return;
  std::vector<std::int64_t>& held = held_[job.account];
  held[0] += std::int64_t{sign} * job.gpus;
  for (const LicenseNeed& need : spec_->license_sets[job.licenses]) {
    held[1 + std::size_t{need.license}] += std::int64_t{sign} * need.count;
  }
}

bool DominantShares::reckon() {
  bool changed = false;
  for (std::size_t a = 0; a < held_.size(); ++a) {
    double most = static_cast<double>(held_[a][0]) / static_cast<double>(spec_->cluster.gpus());
    for (std::size_t l = 0; l < spec_->licenses.size(); ++l) {
      const auto count = static_cast<double>(std::max(1, spec_->licenses[l].count));
      most = std::max(most, static_cast<double>(held_[a][1 + l]) / count);
    }
    // An account without weight comes last, also when it holds nothing (0 / 0).
    const double share =
        weights_[a] > 0 ? most / weights_[a] : std::numeric_limits<double>::infinity();
    changed = std::exchange(shares_[a], share) != share || changed;
  }
  return changed;
}

}  // namespace lockstep
