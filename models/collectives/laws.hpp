/// The laws and shapes of the algorithms and what they share; algorithms.cpp has them in its table.
#pragma once

#include <vector>

#include "models/collectives/algorithms.hpp"

namespace lockstep {

// Each in the file of its name.
void ring_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void tree_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void nvls_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void nvls_tree_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void collnet_direct_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void collnet_chain_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void pat_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void hierarchical_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void pairwise_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);
void two_level_law(const CollectiveContext& context, std::vector<CollectiveCandidate>& out);

// Of a new algorithm beside its law, of the others in shapes.cpp.
/// Where members send to one another, the shape of "pairwise"; a ring of all others.
CollectiveShape ring_shape(const ShapeCall& call);
CollectiveShape tree_shape(const ShapeCall& call);
CollectiveShape nvls_shape(const ShapeCall& call);
CollectiveShape nvls_tree_shape(const ShapeCall& call);
CollectiveShape collnet_shape(const ShapeCall& call);
CollectiveShape pat_shape(const ShapeCall& call);
CollectiveShape hierarchical_shape(const ShapeCall& call);
CollectiveShape pairwise_shape(const ShapeCall& call);
CollectiveShape two_level_shape(const ShapeCall& call);

/// Behind all others, for collective_extension.cpp: a row that has been checked.
void append_collective_algorithm(const CollectiveAlgorithm& row);

/// Bus bandwidth of rings through all nodes: each enters and leaves a node on its own rail.
BytesPerSecond ring_plateau(const CollectiveContext& context);
/// Bus bandwidth of trees over nodes at their best; 0 where NCCL stays on rings.
BytesPerSecond nvls_tree_plateau(const CollectiveContext& context);
/// Both with the NVLinks that they were measured on. Whether trees reach more is asked of these:
/// a node whose links are faster than that loses no algorithm.
struct MeasuredPlateaus {
  BytesPerSecond rings, trees;
};
MeasuredPlateaus measured_plateaus(const CollectiveContext& context);
/// Whether enough members share a node for its switch to reduce for them.
bool reduces_in_switch(const CollectiveContext& context);
/// Latency of large all-reduces along trees over nodes.
Seconds large_tree_latency(const CollectiveContext& context);
/// The regimes of a node that the preset has under this name ("nvls"), or all but those.
void add_regimes(const CollectiveContext& context, std::string_view algorithm,
                 std::vector<CollectiveCandidate>& out);

/// From member to member inside a node. Source: Ring LL and LL128, NVLink, NCCL
/// src/graph/tuning.cc.
constexpr Seconds kRingPerMemberLl = microseconds(0.6);
constexpr Seconds kRingPerMember = microseconds(1.9);

/// Members of the largest nodes whose logs the constants below and the transports' simple_latency
/// are fitted to: what so many take inside their node is part of these.
constexpr int kFittedMembers = 8;

// Large all-reduces across nodes, rings and trees: latency beside that inside a node, in all and
// per node (rings) or doubling of the nodes (trees). Source: fitted to 1,055 rows of public
// nccl-tests logs over 2 to 512 nodes, one value for all systems.
constexpr Seconds kReduceBase = microseconds(50);
constexpr double kReduceBaseHops = 14.5;  ///< of the transport's hop latency
constexpr Seconds kReducePerNode = microseconds(35.4);

// Low-latency protocols across nodes: bandwidth as a share of the plateau of the group. Source: as
// above. Messages in LL and LL128 carry flags and are polled for.
constexpr double kReduceLlShare = 0.00142;
constexpr double kReduceLl128Share = 0.105;

}  // namespace lockstep
