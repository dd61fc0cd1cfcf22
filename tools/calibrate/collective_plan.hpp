/// Which collectives are timed, in which order, and what the ranks are to the models.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hardware.hpp"
#include "tools/calibrate/communicator.hpp"

namespace lockstep {

/// What --only can name beside --nccl: nccl-tests' names, products beside collectives, and
/// collectives that are called otherwise than nccl-tests does.
inline constexpr std::array<std::string_view, 7> kCollectiveSubjects{
    "all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv", "overlap", "variants"};

/// Sizes from 8 bytes to 8 GiB as far as there is room: first every second octave, so that whatever
/// ends the run early has covered all sizes, then those between. Of each size all operations, so
/// that a size which is too long ends all of them. Where ranks share a size, each has whole 16
/// bytes of it, as in nccl-tests. `only`: of kCollectiveSubjects; empty: all.
std::vector<CollectiveTask> plan_collectives(int ranks, Bytes room,
                                             std::span<const std::string> only);

/// A large product in the card's 16-bit format beside the collectives that data-parallel training
/// hides behind products, a gradient bucket in size; on streams of the same priority, then of a
/// higher one.
std::vector<OverlapTask> plan_overlaps(int ranks, const GpuSpec& gpu, Bytes room,
                                       std::span<const std::string> only);

/// All-reduce, all-gather and reduce-scatter in every variant that is something else for them,
/// small ones and such as a gradient bucket, and uneven all-to-all.
std::vector<VariantTask> plan_variants(int ranks, Bytes room, std::span<const std::string> only);

/// How ranks lie over nodes, which the models take for NVLink domains.
struct RankShape {
  int nodes = 1, gpus_per_node = 2;
};
/// `hosts`: of every rank. `node`: the preset of the machines, by which hosts of one NVLink domain
/// are one node; null: not known, each host is a node. Throws UsageError where nodes have unequal
/// numbers of ranks.
RankShape rank_shape(std::span<const std::string> hosts, const NodeSpec* node);

}  // namespace lockstep
