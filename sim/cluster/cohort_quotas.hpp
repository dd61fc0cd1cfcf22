/// What the running jobs of ClusterQueues hold, against their quotas and those of their cohorts.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// How much more than its quota a node of the tree holds, as Kueue's fair sharing compares it: the
/// lower one is served first, the higher one gives way.
struct FairShare {
  bool boundless = false;  ///< it borrows, and its weight is 0: above all that has a weight
  double ratio = 0;        ///< of what it borrows to what its parent's tree could lend, by weight

  friend auto operator<=>(const FairShare&, const FairShare&) = default;
};

/// Queues and cohorts are nodes of trees. A node has for itself what it does not lend, and shares
/// the rest of its subtree's quota with its parent; beyond that it borrows what others below its
/// ancestors have not taken of theirs, up to its limit. Nodes are numbered: queues as the scenario
/// has them, then cohorts. Source: Kueue, pkg/cache/scheduler/resource_node.go and fair_sharing.go,
/// and the API's words on borrowingLimit and lendingLimit. May be copied, to try what a change
/// would make of it.
class CohortQuotas {
 public:
  static constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);

  /// `spec` outlives it. Requires that no cohort is below itself.
  explicit CohortQuotas(const QueueSpec& spec);

  /// Whether there are ClusterQueues: else nothing here may be called.
  [[nodiscard]] bool used() const { return queues_ > 0; }
  [[nodiscard]] std::uint16_t queue_of(std::uint16_t account) const { return queue_of_[account]; }
  [[nodiscard]] bool is_queue(std::size_t node) const { return node < queues_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }
  /// kNoNode: it is the root of its tree.
  [[nodiscard]] std::size_t parent_of(std::size_t node) const { return nodes_[node].parent; }
  [[nodiscard]] const std::vector<std::size_t>& children_of(std::size_t cohort) const {
    return nodes_[cohort].children;
  }
  [[nodiscard]] std::size_t root_of(std::size_t node) const;
  [[nodiscard]] bool same_cohort(std::uint16_t a, std::uint16_t b) const {
    return root_of(a) == root_of(b);
  }
  /// Of a queue: GPUs of its jobs; of a cohort: what those below it hold of what it shares.
  [[nodiscard]] std::int64_t held(std::size_t node) const { return nodes_[node].held; }
  /// GPUs that a queue's jobs may take beside those that they hold.
  [[nodiscard]] std::int64_t available(std::uint16_t queue) const;
  /// GPUs that its jobs may take when no GPU of the tree is held.
  [[nodiscard]] std::int64_t most(std::size_t node) const;
  /// What a node has left of that which it lends to nobody.
  [[nodiscard]] std::int64_t own_left(std::size_t node) const;
  /// Whether a node holds, with so many more, others' GPUs.
  [[nodiscard]] bool borrows(std::size_t node, std::int64_t more = 0) const {
    return nodes_[node].held + more > nodes_[node].quota;
  }
  /// How far up the tree a queue goes for so many more: 0, they are its own; else the height of the
  /// lowest cohort whose quota has them, or of the whole tree.
  struct Reach {
    int height = 0;
    bool below_root = false;  ///< a smaller part than the whole tree has them
  };
  [[nodiscard]] Reach reach_of(std::uint16_t queue, std::int64_t more) const;
  /// A node's dominant resource share; 0 of a root.
  [[nodiscard]] FairShare share_of(std::size_t node) const;
  /// From now on a queue holds so many more; below 0: fewer.
  void add(std::uint16_t queue, std::int64_t gpus);

 private:
  struct Node {
    std::size_t parent = kNoNode;
    std::vector<std::size_t> children{};
    std::int64_t quota = 0;  ///< its own, and what its children share
    std::int64_t own = 0;    ///< what it lends to nobody
    std::int64_t borrowing = -1, lending = -1;
    double weight = 1;
    std::int64_t held = 0;
  };

  [[nodiscard]] std::int64_t left_of(std::size_t node) const;
  [[nodiscard]] int height_of(std::size_t node) const;

  std::vector<std::uint16_t> queue_of_;  ///< by account
  std::vector<Node> nodes_;
  std::size_t queues_ = 0;
};

}  // namespace lockstep
