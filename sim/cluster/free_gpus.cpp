#include "sim/cluster/free_gpus.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace lockstep {

FreeGpus::FreeGpus(int nodes, int gpus_per_node, int leaf_nodes)
    : gpus_per_node_(gpus_per_node),
      leaf_nodes_(leaf_nodes),
      total_(static_cast<std::int64_t>(nodes) * gpus_per_node),
      free_(at(nodes), gpus_per_node),
      open_(at(nodes), true),
      by_free_(at(gpus_per_node) + 1, NodeSet(nodes)) {
  if (leaf_nodes > 0) leaves_ = at((nodes + leaf_nodes - 1) / leaf_nodes);
  by_leaf_.resize(leaves_ * (at(gpus_per_node) + 1));
  for (int node = 0; node < nodes; ++node) {
    by_free_.back().add(node);
    count(node, -1, gpus_per_node);
  }
}

void FreeGpus::set(int node, int free) {
  if (open_[at(node)]) {
    by_free_[at(free_[at(node)])].remove(node);
    by_free_[at(free)].add(node);
    count(node, free_[at(node)], free);
    total_ += free - free_[at(node)];
  }
  free_[at(node)] = free;
}

void FreeGpus::take(std::span<const HeldGpus> held) {
  for (const auto& [node, gpus] : held) {
    assert(free_[at(node)] >= gpus && "a GPU twice");
    set(node, free_[at(node)] - gpus);
  }
}

void FreeGpus::give(std::span<const HeldGpus> held) {
  for (const auto& [node, gpus] : held) {
    assert(free_[at(node)] + gpus <= gpus_per_node_);
    set(node, free_[at(node)] + gpus);
  }
}

void FreeGpus::close(int node) {
  if (!open_[at(node)]) return;
  by_free_[at(free_[at(node)])].remove(node);
  count(node, free_[at(node)], -1);
  total_ -= free_[at(node)];
  open_[at(node)] = false;
}

void FreeGpus::open(int node) {
  if (open_[at(node)]) return;
  open_[at(node)] = true;
  by_free_[at(free_[at(node)])].add(node);
  count(node, -1, free_[at(node)]);
  total_ += free_[at(node)];
}

std::vector<double> useless_gpus(std::span<const QueueJob> jobs, int gpus_per_node) {
  if (jobs.empty()) return {};
  std::vector<double> out(static_cast<std::size_t>(gpus_per_node) + 1);
  std::vector<std::size_t> asking(out.size());  // for so many GPUs of a node
  for (const QueueJob& job : jobs) {
    ++asking[static_cast<std::size_t>(std::min<std::int32_t>(job.gpus, gpus_per_node))];
  }
  std::size_t more = 0;
  for (std::size_t free = out.size(); free-- > 0;) {
    out[free] =
        static_cast<double>(free) * static_cast<double>(more) / static_cast<double>(jobs.size());
    more += asking[free];
  }
  return out;
}

Placer::Placer(const QueuePlacement& spec, int nodes, int gpus_per_node,
               std::span<const QueueJob> jobs)
    : spec_(spec),
      nodes_(nodes),
      gpus_per_node_(gpus_per_node),
      leaf_nodes_(spec.leaf_nodes > 0 ? spec.leaf_nodes : nodes) {
  if (spec.within_node != WithinNode::fgd || jobs.empty()) return;
  const std::vector<double> useless = useless_gpus(jobs, gpus_per_node);
  by_gradient_.resize(useless.size());
  for (int gpus = 1; gpus <= gpus_per_node; ++gpus) {
    std::vector<int>& order = by_gradient_[static_cast<std::size_t>(gpus)];
    for (int has = gpus; has <= gpus_per_node; ++has) order.push_back(has);
    std::ranges::stable_sort(order, {}, [&](int has) {
      return useless[static_cast<std::size_t>(has - gpus)] - useless[static_cast<std::size_t>(has)];
    });
  }
}

Placer::Leaf Placer::leaf_for(const FreeGpus& free, int gpus, const NodeSet* within) const {
  std::vector<std::int32_t> scanned;  // where leaves are not counted, or some nodes alone count
  if (within != nullptr || !free.counts_leaves()) {
    scanned.resize(static_cast<std::size_t>(leaves()));
    for (int has = gpus; has <= gpus_per_node_; ++has) {
      const NodeSet& nodes = free.with(has);
      for (int node = nodes.first(0, within); node >= 0; node = nodes.first(node + 1, within)) {
        ++scanned[static_cast<std::size_t>(node / leaf_nodes_)];
      }
    }
  }
  const std::span<const std::int32_t> usable = scanned.empty() ? free.by_leaf(gpus) : scanned;
  int best = 0;
  std::int32_t fewest = std::numeric_limits<std::int32_t>::max();
  for (int leaf = 0; leaf < leaves() && fewest > 1; ++leaf) {
    const std::int32_t nodes = usable[static_cast<std::size_t>(leaf)];
    if (nodes == 0 || nodes >= fewest) continue;
    best = leaf;
    fewest = nodes;
  }
  return {best * leaf_nodes_, std::min(nodes_, (best + 1) * leaf_nodes_)};
}

int Placer::node_for_part(const FreeGpus& free, int gpus, const NodeSet* within,
                          std::span<const HeldGpus> taken) const {
  bool any = false;
  for (int has = gpus; has <= gpus_per_node_ && !any; ++has) any = free.with(has).count() > 0;
  if (!any) return -1;
  const bool packs =
      spec_.across == AcrossNodes::packed || spec_.across == AcrossNodes::least_contended;
  const bool by_leaf = packs && leaves() > 1 && taken.empty();
  const Leaf leaf = by_leaf ? leaf_for(free, gpus, within) : Leaf{0, nodes_};
  const auto is_taken = [&](int node) {
    return std::ranges::any_of(taken, [&](const HeldGpus& held) { return held.node == node; });
  };
  const auto first_with = [&](int exactly) {
    int node = free.with(exactly).first(leaf.begin, within);
    while (node >= 0 && is_taken(node)) node = free.with(exactly).first(node + 1, within);
    return node < leaf.end ? node : -1;
  };
  if (!by_gradient_.empty()) {
    for (const int has : by_gradient_[static_cast<std::size_t>(gpus)]) {
      const int node = first_with(has);
      if (node >= 0) return node;
    }
    return -1;
  }
  int lowest = -1;
  for (int step = 0; step <= gpus_per_node_ - gpus; ++step) {
    const bool roomiest = spec_.within_node == WithinNode::worst_fit;
    const int node = first_with(roomiest ? gpus_per_node_ - step : gpus + step);
    if (node < 0) continue;
    if (spec_.within_node != WithinNode::first_fit) return node;
    if (lowest < 0 || node < lowest) lowest = node;
  }
  return lowest;
}

namespace {

/// A node of each leaf in turn.
std::vector<int> spread_over_leaves(std::vector<std::vector<int>> idle, int count) {
  std::ranges::stable_sort(idle, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<int> out;
  for (std::size_t turn = 0; static_cast<int>(out.size()) < count; ++turn) {
    for (const std::vector<int>& leaf : idle) {
      if (turn >= leaf.size()) break;
      out.push_back(leaf[turn]);
      if (static_cast<int>(out.size()) == count) break;
    }
  }
  return out;
}

std::vector<std::vector<int>> by_leaf(const NodeSet& nodes, int leaf_nodes, int leaves,
                                      const NodeSet* within = nullptr) {
  std::vector<std::vector<int>> out(static_cast<std::size_t>(leaves));
  for (int node = nodes.first(0, within); node >= 0; node = nodes.first(node + 1, within)) {
    out[static_cast<std::size_t>(node / leaf_nodes)].push_back(node);
  }
  return out;
}

/// The leaf that is taken next for `count` nodes more: the fullest that suffices, else the one with
/// most nodes; equals: the first.
std::size_t best_leaf(const std::vector<std::vector<int>>& leaves, int count) {
  std::size_t best = 0;
  const auto suffices = [&](std::size_t leaf) {
    return static_cast<int>(leaves[leaf].size()) >= count;
  };
  for (std::size_t leaf = 1; leaf < leaves.size(); ++leaf) {
    const std::size_t has = leaves[leaf].size(), most = leaves[best].size();
    const bool better =
        suffices(leaf) ? !suffices(best) || has < most : !suffices(best) && has > most;
    if (better) best = leaf;
  }
  return best;
}

std::vector<int> best_leaves(std::vector<std::vector<int>> leaves, int count) {
  std::vector<int> out;
  while (static_cast<int>(out.size()) < count) {
    const int missing = count - static_cast<int>(out.size());
    std::vector<int>& leaf = leaves[best_leaf(leaves, missing)];
    const std::size_t taken = std::min(leaf.size(), static_cast<std::size_t>(missing));
    out.insert(out.end(), leaf.begin(), leaf.begin() + static_cast<std::ptrdiff_t>(taken));
    leaf.clear();
  }
  return out;
}

/// Idle nodes of each leaf for `count` of them, those on leaves of more than the least load that
/// suffices left out. `loads`: of each leaf. Below 0: there are too few.
double least_load(const std::vector<std::vector<int>>& leaves, std::span<const double> loads,
                  int count) {
  std::vector<std::size_t> order;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (!leaves[leaf].empty()) order.push_back(leaf);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t leaf) { return loads[leaf]; });
  int has = 0;
  for (const std::size_t leaf : order) {
    has += static_cast<int>(leaves[leaf].size());
    if (has >= count) return loads[leaf];
  }
  return -1;
}

/// Leaves below one pod (-1: below all), others without nodes.
std::vector<std::vector<int>> leaves_of_pod(const std::vector<std::vector<int>>& leaves,
                                            const LinkLoads& loads, int pod) {
  std::vector<std::vector<int>> out = leaves;
  for (std::size_t leaf = 0; pod >= 0 && leaf < out.size(); ++leaf) {
    if (loads.pod_of_unit[leaf] != pod) out[leaf].clear();
  }
  return out;
}

/// Nodes whose busiest link between switches carries least of what others send: below one leaf
/// none; below one pod those of the leaves; else those of the pods, too. Of pods that are alike the
/// one with the fewest idle nodes, and within it as packed.
std::vector<int> least_contended(const std::vector<std::vector<int>>& leaves, int count,
                                 const LinkLoads& loads) {
  if (std::ranges::any_of(
          leaves, [count](const auto& leaf) { return static_cast<int>(leaf.size()) >= count; })) {
    return best_leaves(leaves, count);
  }
  std::vector<double> with_pods = loads.units;
  for (std::size_t unit = 0; !loads.pods.empty() && unit < with_pods.size(); ++unit) {
    const auto pod = static_cast<std::size_t>(loads.pod_of_unit[unit]);
    with_pods[unit] = std::max(with_pods[unit], loads.pods[pod]);
  }
  std::vector<std::vector<int>> best;
  double least = 0;
  std::size_t fewest = 0;
  const auto consider = [&](int pod, std::span<const double> of_leaf) {
    std::vector<std::vector<int>> own = leaves_of_pod(leaves, loads, pod);
    const double load = least_load(own, of_leaf, count);
    if (load < 0) return;
    std::size_t idle = 0;
    for (const auto& leaf : own) idle += leaf.size();
    if (!best.empty() && (load > least || (load == least && idle >= fewest))) return;
    for (std::size_t leaf = 0; leaf < own.size(); ++leaf) {
      if (of_leaf[leaf] > load) own[leaf].clear();
    }
    best = std::move(own);
    least = load;
    fewest = idle;
  };
  for (std::size_t pod = 0; pod < loads.pods.size(); ++pod) {
    consider(static_cast<int>(pod), loads.units);
  }
  consider(-1, with_pods);
  return best_leaves(std::move(best), count);
}

}  // namespace

/// Blocks are of block_nodes, twice as many, four times and so on, side by side. Of the smallest
/// size at which one has room, the one with the fewest idle nodes; in it, few of the smallest
/// blocks. Source: Slurm's topology/block, BlockSizes.
std::vector<int> Placer::nodes_of_block(const NodeSet& idle, int count,
                                        const NodeSet* within) const {
  const int smallest = spec_.block_nodes > 0 ? spec_.block_nodes : leaf_nodes_;
  const int blocks = (nodes_ + smallest - 1) / smallest;
  std::vector<std::vector<int>> all = by_leaf(idle, smallest, blocks, within);
  for (std::size_t size = 1;; size *= 2) {
    std::size_t best = all.size(), fewest = 0;
    for (std::size_t first = 0; first < all.size(); first += size) {
      std::size_t has = 0;
      for (std::size_t b = first; b < std::min(first + size, all.size()); ++b) has += all[b].size();
      const bool suffices = has >= static_cast<std::size_t>(count);
      if (suffices && (best == all.size() || has < fewest)) best = first, fewest = has;
    }
    if (best == all.size() && size < all.size()) continue;
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(std::min(best, all.size() - 1));
    const std::size_t left = static_cast<std::size_t>(all.end() - begin);
    return best_leaves({begin, begin + static_cast<std::ptrdiff_t>(std::min(size, left))}, count);
  }
}

std::vector<int> Placer::whole_nodes(const NodeSet& idle, int count, const NodeSet* within,
                                     const LinkLoads* loads) const {
  if (loads != nullptr && leaves() > 1) {
    return least_contended(by_leaf(idle, leaf_nodes_, leaves(), within), count, *loads);
  }
  const bool packs =
      spec_.across == AcrossNodes::packed || spec_.across == AcrossNodes::least_contended;
  if (packs && leaves() > 1) {
    return best_leaves(by_leaf(idle, leaf_nodes_, leaves(), within), count);
  }
  if (spec_.across == AcrossNodes::spread && leaves() > 1) {
    return spread_over_leaves(by_leaf(idle, leaf_nodes_, leaves(), within), count);
  }
  if (spec_.across == AcrossNodes::block) return nodes_of_block(idle, count, within);
  std::vector<int> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int node = idle.first(0, within); static_cast<int>(out.size()) < count;
       node = idle.first(node + 1, within)) {
    out.push_back(node);
  }
  return out;
}

std::optional<Holding> Placer::place(const FreeGpus& free, int gpus, const NodeSet* within,
                                     const LinkLoads* loads) const {
  if (gpus > free.total()) return std::nullopt;
  // A job of one whole node is placed as one of a part.
  const int whole = gpus > gpus_per_node_ ? gpus / gpus_per_node_ : 0;
  const int part = gpus - whole * gpus_per_node_;
  Holding out;
  if (whole > 0) {
    const int idle =
        within == nullptr ? free.idle().count() : free.idle().count_within(*within, whole);
    if (idle < whole) return std::nullopt;
    for (const int node : whole_nodes(free.idle(), whole, within, loads)) {
      out.push_back({node, gpus_per_node_});
    }
  }
  if (part > 0) {
    const int node = node_for_part(free, part, within, out);
    if (node < 0) return std::nullopt;
    out.push_back({node, part});
  }
  return out;
}

}  // namespace lockstep
