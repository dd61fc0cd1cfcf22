/// Which GPUs of a cluster are free, and on which of them a job goes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/cluster/link_loads.hpp"
#include "sim/cluster/node_set.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// GPUs that a job holds on one node.
struct HeldGpus {
  std::int32_t node;
  std::int32_t gpus;

  friend bool operator==(const HeldGpus&, const HeldGpus&) = default;
};
using Holding = std::vector<HeldGpus>;

/// Free GPUs by node, and nodes by how many they have free, so that a fit is found without a walk
/// over all nodes. Nodes that are closed count as having none.
class FreeGpus {
 public:
  /// `leaf_nodes`: nodes of a leaf switch, which are counted apart; 0: they are not.
  FreeGpus(int nodes, int gpus_per_node, int leaf_nodes = 0);

  [[nodiscard]] int nodes() const { return static_cast<int>(free_.size()); }
  [[nodiscard]] int gpus_per_node() const { return gpus_per_node_; }
  /// On open nodes.
  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] int on(int node) const { return open_[at(node)] ? free_[at(node)] : 0; }
  /// Whether nobody holds a GPU there, open or closed.
  [[nodiscard]] bool is_empty(int node) const { return free_[at(node)] == gpus_per_node_; }
  /// GPUs there that nobody holds, open or closed.
  [[nodiscard]] int not_held_on(int node) const { return free_[at(node)]; }
  [[nodiscard]] bool is_open(int node) const { return open_[at(node)]; }
  /// Open nodes with exactly so many free GPUs.
  [[nodiscard]] const NodeSet& with(int gpus) const { return by_free_[at(gpus)]; }
  [[nodiscard]] const NodeSet& idle() const { return with(gpus_per_node_); }
  [[nodiscard]] bool counts_leaves() const { return leaf_nodes_ > 0; }
  /// Open nodes of each leaf with so many free GPUs at least. Requires counts_leaves().
  [[nodiscard]] std::span<const std::int32_t> by_leaf(int gpus) const {
    return std::span(by_leaf_).subspan(at(gpus) * leaves_, leaves_);
  }

  void take(std::span<const HeldGpus> held);
  void give(std::span<const HeldGpus> held);
  /// Nobody is placed on the node until it is opened again; who is on it stays.
  void close(int node);
  void open(int node);

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  void set(int node, int free);

  /// A node has `free` GPUs from now on, of `before`; below 0: it was or is closed.
  void count(int node, int before, int free) {
    if (leaf_nodes_ == 0) return;
    const std::size_t leaf = at(node / leaf_nodes_);
    for (int gpus = before + 1; gpus <= free; ++gpus) ++by_leaf_[at(gpus) * leaves_ + leaf];
    for (int gpus = free + 1; gpus <= before; ++gpus) --by_leaf_[at(gpus) * leaves_ + leaf];
  }

  int gpus_per_node_;
  int leaf_nodes_;
  std::size_t leaves_ = 0;  ///< that are counted
  std::int64_t total_ = 0;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> by_leaf_;  ///< open nodes with so many free GPUs at least, by leaf
  std::vector<bool> open_;
  std::vector<NodeSet> by_free_;
};

/// WithinNode::fgd: how many GPUs of a node with so many free ones are of no use, on average over
/// the jobs: all of them to a job that asks for more, of a whole node at most. Empty without jobs.
/// Source: Weng et al. 2023, USENIX ATC, "Beware of fragmentation", section 3.2, of whole GPUs.
std::vector<double> useless_gpus(std::span<const QueueJob> jobs, int gpus_per_node);

/// The rules by which jobs are placed on a cluster. AcrossNodes::packed: Slurm's topology/tree with
/// one level above the leaves (Slurm 22.05, select/cons_common/job_test.c, _eval_nodes_topo()),
/// also for jobs of up to one node: first the leaf, then the node.
class Placer {
 public:
  /// `jobs`: those that are to be expected, for WithinNode::fgd.
  Placer(const QueuePlacement& spec, int nodes, int gpus_per_node,
         std::span<const QueueJob> jobs = {});

  /// Where a job of that many GPUs goes: on one node up to a node's, else on whole nodes and, for
  /// what is left, on one more. Nothing where it does not fit now. `within`: nodes that it may
  /// have; null: all. `loads`: what running trainings send, for AcrossNodes::least_contended; null:
  /// nothing.
  [[nodiscard]] std::optional<Holding> place(const FreeGpus& free, int gpus,
                                             const NodeSet* within = nullptr,
                                             const LinkLoads* loads = nullptr) const;

  [[nodiscard]] int leaves() const { return (nodes_ + leaf_nodes_ - 1) / leaf_nodes_; }

 private:
  /// Nodes of a leaf: from `begin` to before `end`.
  struct Leaf {
    int begin, end;
  };
  /// packed: the leaf with the fewest nodes of so many free GPUs, of those that have any.
  [[nodiscard]] Leaf leaf_for(const FreeGpus& free, int gpus, const NodeSet* within) const;
  [[nodiscard]] int node_for_part(const FreeGpus& free, int gpus, const NodeSet* within,
                                  std::span<const HeldGpus> taken) const;
  [[nodiscard]] std::vector<int> nodes_of_block(const NodeSet& idle, int count,
                                                const NodeSet* within) const;
  [[nodiscard]] std::vector<int> whole_nodes(const NodeSet& idle, int count, const NodeSet* within,
                                             const LinkLoads* loads) const;

  QueuePlacement spec_;
  int nodes_;
  int gpus_per_node_;
  int leaf_nodes_;
  /// fgd: by how many GPUs a job takes, free GPUs of nodes that it may go to, the best first.
  std::vector<std::vector<int>> by_gradient_;
};

}  // namespace lockstep
