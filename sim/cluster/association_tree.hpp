/// Accounts and their users: whose share of the cluster is how large, and how much of it is used.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// The associations that a scenario declares, with those that its jobs need besides: an account
/// below the root, a user in an account, each with one share. Only the root where nothing goes by
/// associations.
class AssociationTree {
 public:
  explicit AssociationTree(const QueueSpec& spec);

  /// Parents come before their children; the first is the root. Limits on single jobs and users
  /// are handed down.
  [[nodiscard]] const std::vector<Association>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<std::uint32_t>& children(std::uint32_t node) const {
    return children_[node];
  }
  /// With the administrator, whom Slurm has below the root of every cluster: with one share.
  [[nodiscard]] std::size_t users() const { return users_.size() + 1; }
  /// The user in the account. Requires a job of theirs in the scenario.
  [[nodiscard]] std::uint32_t of(std::uint16_t account, std::uint16_t user) const {
    return users_.at({account, user});
  }

 private:
  std::uint32_t add(Association node);

  std::vector<Association> nodes_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint32_t> users_;
};

/// Fair-share factors of all nodes (0 for accounts) by Fair Tree: siblings by falling level fair
/// share, the part of its siblings' shares over the part of its parent's usage; users before
/// accounts of equal ones; a factor is the place from the end over the number of users, and equals
/// have one place. `usage` of each node includes that of those below. Source: Slurm 22.05,
/// src/plugins/priority/multifactor/fair_tree.c. As there, accounts that tie are visited one after
/// the other: they are not merged, whatever its documentation says.
std::vector<double> fair_tree_factors(const AssociationTree& tree,
                                      const std::vector<double>& usage);

/// Fair-share factors by the older rule, 2^(-U/(S d)): S is the part of the cluster's shares, U the
/// part of its usage, towards which a user is drawn by what the whole account has used. Source:
/// Slurm 22.05, priority_multifactor.c, priority_p_set_assoc_usage() and _get_fairshare_priority().
std::vector<double> classic_fair_share_factors(const AssociationTree& tree,
                                               const std::vector<double>& usage, double damping);

}  // namespace lockstep
