#include "models/collectives/algorithms.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>

#include "models/base/extension.hpp"
#include "models/collectives/in_node.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

constexpr Availability refused(std::string reason) { return {Offer::refused, std::move(reason)}; }
constexpr Availability on_request(std::string reason) {
  return {Offer::on_request, std::move(reason)};
}
Availability not_for_this_call() { return {Offer::other_call, {}}; }

/// Why this NCCL is too old, or nothing. Source of the releases: NCCL release notes.
Availability since(const CollectiveContext& context, NcclRelease first) {
  const NcclRelease has = context.options.nccl;
  if (has >= first) return {};
  return refused(fmt::format("came with NCCL {}.{}, this is {}.{}", first.major, first.minor,
                             has.major, has.minor));
}

bool is_pairs(CollectiveOp op) {
  return op == CollectiveOp::all_to_all || op == CollectiveOp::send_receive;
}
bool is_wholly_gathered(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter;
}

/// Why no switch reduces inside the nodes of the group, or nothing.
Availability switch_inside(const CollectiveContext& context) {
  const int least = nvls_least_ranks(context.gpu.collectives);
  if (least == 0) {
    return refused(fmt::format("needs NVSwitch and Hopper or later; {} has none of these here",
                               context.gpu.architecture));
  }
  return {};
}

/// Why switches of the network do not sum for this group, or nothing.
Availability switches_across(const CollectiveContext& context) {
  const std::optional<SharpFabric>& sharp = context.options.sharp;
  if (!sharp) return refused("SHARP is off in this fabric");
  if (context.transport.name != "infiniband") {
    return refused(fmt::format("SHARP sums in InfiniBand switches; the transport is {}",
                               context.transport.name));
  }
  const SharpGeneration& generation = *sharp->generation;
  if (generation.one_tree_per_switch && sharp->busy_trees > 0) {
    return refused(fmt::format(
        "{} switches stream one SHARP tree at a time, and another job has it", generation.name));
  }
  const int rails = static_cast<int>(std::ceil(channel_nics(context)));
  if (rails + sharp->busy_trees > generation.streaming_trees) {
    return refused(fmt::format("{} SHARP trees of {} are free, {} rails need one each",
                               std::max(0, generation.streaming_trees - sharp->busy_trees),
                               generation.streaming_trees, rails));
  }
  return {};
}

Availability ring_availability(const CollectiveContext& context) {
  return is_pairs(context.op) ? not_for_this_call() : Availability{};
}

Availability tree_availability(const CollectiveContext& context) {
  if (context.op != CollectiveOp::all_reduce) return not_for_this_call();
  if (context.k > 1) return since(context, {2, 4});
  return on_request("inside a node the measured low-latency regimes hold what NCCL's trees gain");
}

Availability nvls_availability(const CollectiveContext& context) {
  if (context.op != CollectiveOp::all_reduce) return not_for_this_call();
  if (Availability no = switch_inside(context); no.offer == Offer::refused) return no;
  if (Availability no = since(context, {2, 17}); no.offer == Offer::refused) return no;
  if (!reduces_in_switch(context)) {
    return refused(fmt::format("pays off from {} GPUs in a node; {} take part",
                               nvls_least_ranks(context.gpu.collectives), context.g));
  }
  return context.k > 1 ? switches_across(context) : Availability{};
}

Availability nvls_tree_availability(const CollectiveContext& context) {
  if (context.op != CollectiveOp::all_reduce || context.k == 1) return not_for_this_call();
  if (Availability no = switch_inside(context); no.offer == Offer::refused) return no;
  if (!reduces_in_switch(context)) {
    return refused(fmt::format("pays off from {} GPUs in a node; {} take part",
                               nvls_least_ranks(context.gpu.collectives), context.g));
  }
  const auto [rings, trees] = measured_plateaus(context);
  if (trees <= rings) {
    return refused(fmt::format("trees reach {:.0f} GB/s of bus bandwidth here, rings {:.0f}",
                               trees.base_units() / 1e9, rings.base_units() / 1e9));
  }
  return since(context, {2, 18});
}

Availability collnet_availability(const CollectiveContext& context, NcclRelease first) {
  if (context.op != CollectiveOp::all_reduce || context.k == 1) return not_for_this_call();
  if (Availability no = since(context, first); no.offer == Offer::refused) return no;
  return switches_across(context);
}
Availability collnet_direct_availability(const CollectiveContext& context) {
  if (context.most > 8) return refused("gathers from at most 8 GPUs in a node");
  return collnet_availability(context, {2, 6});
}
Availability collnet_chain_availability(const CollectiveContext& context) {
  return collnet_availability(context, {2, 14});
}

Availability pat_availability(const CollectiveContext& context) {
  if (!is_wholly_gathered(context.op) || context.k == 1) return not_for_this_call();
  if (context.most > 1) return refused("NCCL runs it with one GPU per node only");
  return since(context, {2, 23});
}

Availability hierarchical_availability(const CollectiveContext& context) {
  if (context.op != CollectiveOp::all_reduce || context.k == 1) return not_for_this_call();
  if (context.g == 1) return refused("needs several GPUs in a node; one takes part");
  return on_request("not among NCCL's: frameworks build it from three collectives");
}

bool gathers(const CollectiveContext& context) {
  return context.op == CollectiveOp::all_to_all && context.k > 1 && context.g > 1 &&
         context.gpu.nvlink_bandwidth > BytesPerSecond{};
}

Availability two_level_availability(const CollectiveContext& context) {
  if (context.op != CollectiveOp::all_to_all || context.k == 1) return not_for_this_call();
  if (!gathers(context)) return refused("needs NVLink between several GPUs of a node");
  if (!context.options.pxn) return refused("PXN is off");
  return since(context, {2, 12});
}

Availability pairwise_availability(const CollectiveContext& context) {
  if (!is_pairs(context.op)) return not_for_this_call();
  if (gathers(context) && two_level_availability(context).offer == Offer::weighed) {
    return on_request("PXN is on: NCCL sends through the member beside the right NIC");
  }
  return {};
}

constexpr std::array kAlgorithms{
    CollectiveAlgorithm{"ring", "Around all members, each node entered and left on one rail.",
                        "Patarasuk and Yuan 2009, J. Parallel Distrib. Comput. 69, 117-124; NCCL "
                        "src/graph/tuning.cc",
                        ring_availability, ring_law, ring_shape},
    CollectiveAlgorithm{"tree", "Up and down two binary trees over nodes, half the payload each.",
                        "Sanders, Speck and Traeff 2009, Parallel Computing 35, 581-594; NCCL "
                        "src/graph/trees.cc",
                        tree_availability, tree_law, tree_shape},
    CollectiveAlgorithm{"nvls", "The NVLink switch sums and multicasts; with SHARP across nodes.",
                        "Klenk et al. 2020, ISCA, 996-1009; NCCL src/graph/tuning.cc",
                        nvls_availability, nvls_law, nvls_shape},
    CollectiveAlgorithm{"nvls_tree", "NVLS inside every node, double binary trees across.",
                        "NCCL 2.18 release notes; NCCL src/graph/tuning.cc", nvls_tree_availability,
                        nvls_tree_law, nvls_tree_shape},
    CollectiveAlgorithm{"collnet_direct", "Shares gathered in the node, summed by SHARP switches.",
                        "Graham et al. 2020, ISC, LNCS 12151, 41-59; NCCL src/graph/tuning.cc",
                        collnet_direct_availability, collnet_direct_law, collnet_shape},
    CollectiveAlgorithm{"collnet_chain", "A chain in the node whose end SHARP switches sum.",
                        "Graham et al. 2020, ISC, LNCS 12151, 41-59; NCCL src/graph/tuning.cc",
                        collnet_chain_availability, collnet_chain_law, collnet_shape},
    CollectiveAlgorithm{"pat", "Parallel aggregated trees: log2 n steps of growing parts.",
                        "Jeaugey 2025, arXiv:2506.20252; NCCL src/graph/tuning.cc",
                        pat_availability, pat_law, pat_shape},
    CollectiveAlgorithm{"hierarchical",
                        "Reduce-scatter in the node, all-reduce across, all-gather.",
                        "Jia et al. 2018, arXiv:1807.11205, section 3.3", hierarchical_availability,
                        hierarchical_law, hierarchical_shape},
    CollectiveAlgorithm{"pairwise", "Every member to each other by its own NIC; send and receive.",
                        "NVIDIA nccl-tests doc/PERFORMANCE.md", pairwise_availability, pairwise_law,
                        pairwise_shape},
    CollectiveAlgorithm{"two_level",
                        "Gathered over NVLink first, then one message a node and rail.",
                        "NVIDIA blog, Doubling all2all Performance with NCCL 2.12 (2022): PXN",
                        two_level_availability, two_level_law, two_level_shape},
};

/// Those of the table, and behind them those that were added; has place for all, so that none
/// moves.
std::vector<CollectiveAlgorithm>& algorithm_rows() {
  static std::vector<CollectiveAlgorithm> rows = [] {
    std::vector<CollectiveAlgorithm> all;
    all.reserve(kAlgorithms.size() + kMostExtensions);
    all.assign(kAlgorithms.begin(), kAlgorithms.end());
    return all;
  }();
  return rows;
}

}  // namespace

std::span<const CollectiveAlgorithm> collective_algorithms() { return algorithm_rows(); }
std::span<const CollectiveAlgorithm> own_collective_algorithms() { return kAlgorithms; }

void append_collective_algorithm(const CollectiveAlgorithm& row) {
  algorithm_rows().push_back(row);
}

}  // namespace lockstep
