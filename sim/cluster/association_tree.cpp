#include "sim/cluster/association_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace lockstep {
namespace {

/// Whether limits or shares depend on the owner of a job.
bool is_needed(const QueueSpec& spec) {
  const auto has_limits = [](const QualityOfService& of) { return of.limits.any(); };
  return spec.order == QueueOrder::multifactor || !spec.associations.empty() ||
         std::ranges::any_of(spec.qos, has_limits);
}

void inherit(std::int64_t& limit, std::int64_t of_parent) {
  if (limit < 0) limit = of_parent;
}
void inherit(int& limit, int of_parent) {
  if (limit < 0) limit = of_parent;
}

/// Hands down a parent's limits of single jobs and users to children without their own.
void hand_down(UsageLimits& limits, const UsageLimits& parent) {
  inherit(limits.per_job.gpus, parent.per_job.gpus);
  inherit(limits.per_job.nodes, parent.per_job.nodes);
  inherit(limits.per_job.cpus, parent.per_job.cpus);
  inherit(limits.max_wall, parent.max_wall);
  inherit(limits.jobs_per_user, parent.jobs_per_user);
  inherit(limits.submit_per_user, parent.submit_per_user);
}

}  // namespace

AssociationTree::AssociationTree(const QueueSpec& spec) {
  Association root;
  root.name = "root";
  add(std::move(root));
  if (!is_needed(spec)) return;
  Association administrator;
  administrator.name = "root";
  administrator.parent = 0;
  administrator.is_user = true;
  add(std::move(administrator));
  std::map<std::uint16_t, std::uint32_t> accounts;
  std::vector<std::uint32_t> numbers;  // numbers of the scenario's associations
  for (Association node : spec.associations) {
    node.parent = node.parent < 0
                      ? 0
                      : static_cast<std::int32_t>(numbers[static_cast<std::size_t>(node.parent)]);
    const std::uint16_t number = node.number;
    const bool is_user = node.is_user;
    const auto account = nodes_[static_cast<std::size_t>(node.parent)].number;
    const std::uint32_t added = add(std::move(node));
    numbers.push_back(added);
    if (is_user) {
      users_.emplace(std::pair{account, number}, added);
    } else {
      accounts.emplace(number, added);
    }
  }
  for (const QueueJob& job : spec.jobs) {
    if (users_.contains({job.account, job.user})) continue;
    auto account = accounts.find(job.account);
    if (account == accounts.end()) {
      Association node;
      node.name = spec.accounts[job.account];
      node.parent = 0;
      node.number = job.account;
      account = accounts.emplace(job.account, add(std::move(node))).first;
    }
    Association user;
    user.name = spec.users[job.user];
    user.parent = static_cast<std::int32_t>(account->second);
    user.is_user = true;
    user.number = job.user;
    users_.emplace(std::pair{job.account, job.user}, add(std::move(user)));
  }
}

std::uint32_t AssociationTree::add(Association node) {
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  if (node.parent >= 0) {
    const auto parent = static_cast<std::uint32_t>(node.parent);
    hand_down(node.limits, nodes_[parent].limits);
    children_[parent].push_back(number);
  }
  nodes_.push_back(std::move(node));
  children_.emplace_back();
  return number;
}

namespace {

/// Sum of the shares of all children of a parent.
double level_shares(const AssociationTree& tree, std::uint32_t parent) {
  double sum = 0;
  for (const std::uint32_t child : tree.children(parent)) {
    sum += std::max(0.0, tree.nodes()[child].shares);
  }
  return sum;
}

class FairTree {
 public:
  FairTree(const AssociationTree& tree, const std::vector<double>& usage)
      : tree_(&tree),
        usage_(&usage),
        factors_(tree.nodes().size()),
        rank_(tree.users()),
        left_(tree.users()) {}

  std::vector<double> factors() {
    if (tree_->users() > 0) visit(0, false);
    return std::move(factors_);
  }

 private:
  static constexpr double kMost = std::numeric_limits<double>::infinity();

  [[nodiscard]] double level_of(std::uint32_t node, double of_siblings) const {
    const Association& of = tree_->nodes()[node];
    if (of.shares == Association::kParent) return kMost;
    const double share = of_siblings > 0 ? of.shares / of_siblings : 0;
    if (share == 0) return 0;
    const double of_parent = (*usage_)[static_cast<std::size_t>(of.parent)];
    const double used = of_parent > 0 ? (*usage_)[node] / of_parent : 0;
    return used == 0 ? kMost : share / used;
  }

  void visit(std::uint32_t parent, bool parent_ties) {
    struct Sibling {
      double level;
      bool account;
      std::uint32_t node;
    };
    std::vector<Sibling> siblings;
    const double shares = level_shares(*tree_, parent);
    for (const std::uint32_t child : tree_->children(parent)) {
      siblings.push_back({level_of(child, shares), !tree_->nodes()[child].is_user, child});
    }
    std::ranges::stable_sort(siblings, [](const Sibling& a, const Sibling& b) {
      return a.level != b.level ? a.level > b.level : a.account < b.account;
    });
    std::optional<double> before;
    for (std::size_t s = 0; s < siblings.size(); ++s) {
      const Sibling& of = siblings[s];
      const bool ties = s == 0 && parent_ties ? true : before == of.level;
      before = of.level;
      if (of.account) {
        visit(of.node, ties);
        continue;
      }
      if (!ties) rank_ = left_;
      factors_[of.node] = static_cast<double>(rank_) / static_cast<double>(tree_->users());
      --left_;
    }
  }

  const AssociationTree* tree_;
  const std::vector<double>* usage_;
  std::vector<double> factors_;
  std::size_t rank_, left_;
};

}  // namespace

std::vector<double> fair_tree_factors(const AssociationTree& tree,
                                      const std::vector<double>& usage) {
  return FairTree(tree, usage).factors();
}

std::vector<double> classic_fair_share_factors(const AssociationTree& tree,
                                               const std::vector<double>& usage, double damping) {
  const auto& nodes = tree.nodes();
  std::vector<double> shares(nodes.size(), 1), used(nodes.size()), factors(nodes.size());
  used[0] = usage[0] > 0 ? 1 : 0;
  for (std::uint32_t node = 1; node < nodes.size(); ++node) {
    const auto parent = static_cast<std::uint32_t>(nodes[node].parent);
    const double of_siblings = level_shares(tree, parent);
    const bool as_parent = nodes[node].shares == Association::kParent;
    const double part = as_parent ? 1 : of_siblings > 0 ? nodes[node].shares / of_siblings : 0;
    shares[node] = shares[parent] * part;
    const double own = usage[0] > 0 ? usage[node] / usage[0] : 0;
    used[node] = parent == 0 ? own : own + (used[parent] - own) * part;
    if (!nodes[node].is_user) continue;
    factors[node] = shares[node] > 0 ? std::exp2(-used[node] / shares[node] / damping) : 0;
  }
  return factors;
}

}  // namespace lockstep
