#include "sim/cluster/cohort_quotas.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <string>

namespace lockstep {

CohortQuotas::CohortQuotas(const QueueSpec& spec) : queues_(spec.cluster_queues.size()) {
  if (queues_ == 0) return;
  queue_of_.resize(spec.accounts.size());
  nodes_.resize(queues_);
  std::map<std::string, std::size_t> known;
  const auto cohort = [&](const std::string& name) {
    const auto [at, is_new] = known.try_emplace(name, nodes_.size());
    if (is_new) nodes_.emplace_back();
    return at->second;
  };
  const auto join = [&](std::size_t node, const std::string& parent) {
    if (parent.empty()) return;
    const std::size_t above = cohort(parent);
    nodes_[node].parent = above;
    nodes_[above].children.push_back(node);
  };
  for (std::size_t q = 0; q < queues_; ++q) {
    const ClusterQueue& queue = spec.cluster_queues[q];
    nodes_[q].quota = queue.nominal;
    nodes_[q].borrowing = queue.borrowing_limit;
    nodes_[q].lending = queue.lending_limit;
    nodes_[q].weight = queue.weight;
    join(q, queue.cohort);
    for (const std::uint16_t account : queue.accounts) {
      queue_of_[account] = static_cast<std::uint16_t>(q);
    }
  }
  for (const QueueCohort& of : spec.cohorts) {
    const std::size_t node = cohort(of.name);
    nodes_[node].quota = of.nominal;
    nodes_[node].borrowing = of.borrowing_limit;
    nodes_[node].lending = of.lending_limit;
    nodes_[node].weight = of.weight;
    join(node, of.parent);
  }
  const std::function<void(std::size_t)> add_up = [&](std::size_t n) {
    for (const std::size_t child : nodes_[n].children) {
      add_up(child);
      nodes_[n].quota += nodes_[child].quota - nodes_[child].own;
    }
    if (nodes_[n].lending >= 0) {
      nodes_[n].own = std::max<std::int64_t>(0, nodes_[n].quota - nodes_[n].lending);
    }
  };
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].parent == kNoNode) add_up(n);
  }
}

std::size_t CohortQuotas::root_of(std::size_t node) const {
  while (nodes_[node].parent != kNoNode) node = nodes_[node].parent;
  return node;
}

std::int64_t CohortQuotas::own_left(std::size_t node) const {
  return std::max<std::int64_t>(0, nodes_[node].own - nodes_[node].held);
}

std::int64_t CohortQuotas::left_of(std::size_t node) const {
  const Node& of = nodes_[node];
  if (of.parent == kNoNode) return of.quota - of.held;
  std::int64_t above = left_of(of.parent);
  if (of.borrowing >= 0) {
    const std::int64_t taken = std::max<std::int64_t>(0, of.held - of.own);
    above = std::min(above, of.quota - of.own - taken + of.borrowing);
  }
  return own_left(node) + above;
}

std::int64_t CohortQuotas::available(std::uint16_t queue) const {
  return std::max<std::int64_t>(0, left_of(queue));
}

std::int64_t CohortQuotas::most(std::size_t node) const {
  const Node& of = nodes_[node];
  if (of.parent == kNoNode) return of.quota;
  const std::int64_t all = of.own + most(of.parent);
  return of.borrowing < 0 ? all : std::min(all, of.quota + of.borrowing);
}

int CohortQuotas::height_of(std::size_t node) const {
  int out = 0;
  for (const std::size_t child : nodes_[node].children) out = std::max(out, height_of(child) + 1);
  return out;
}

CohortQuotas::Reach CohortQuotas::reach_of(std::uint16_t queue, std::int64_t more) const {
  const bool has_parent = nodes_[queue].parent != kNoNode;
  if (!borrows(queue, more) || !has_parent) return {0, has_parent};
  std::int64_t remaining = more - own_left(queue);
  std::size_t node = nodes_[queue].parent;
  while (borrows(node, remaining) && nodes_[node].parent != kNoNode) {
    remaining -= own_left(node);
    node = nodes_[node].parent;
  }
  return {height_of(node), nodes_[node].parent != kNoNode};
}

FairShare CohortQuotas::share_of(std::size_t node) const {
  constexpr double kPerMille = 1000;  // so that figures are Kueue's
  const Node& of = nodes_[node];
  const std::int64_t borrowed = of.held - of.quota;
  if (of.parent == kNoNode || borrowed <= 0) return {};
  const std::int64_t lendable = most(of.parent);
  const double ratio =
      lendable > 0 ? static_cast<double>(borrowed) * kPerMille / static_cast<double>(lendable) : 0;
  if (of.weight == 0) return {true, ratio};
  return {false, ratio / of.weight};
}

void CohortQuotas::add(std::uint16_t queue, std::int64_t gpus) {
  std::int64_t more = gpus;
  for (std::size_t n = queue; n != kNoNode && more != 0; n = nodes_[n].parent) {
    Node& of = nodes_[n];
    const std::int64_t before = std::max<std::int64_t>(0, of.held - of.own);
    of.held += more;
    assert(of.held >= 0);
    more = std::max<std::int64_t>(0, of.held - of.own) - before;
  }
}

}  // namespace lockstep
