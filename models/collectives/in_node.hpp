/// Collectives inside one NVLink domain: every regime of the interconnect's preset is a candidate.
#pragma once

#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

/// How sharply one regime takes over from the next (p of smooth_minimum) inside a node. Source: the
/// exponent with which regimes fitted nccl-tests series of one node best.
constexpr double kSharpnessInNode = 8;

/// Appends T_i = base + steps * per_step + bus_factor * payload / bus_bandwidth of each regime that
/// serves `ranks` members (of all of them, where none does). Broadcast runs on the all-gather's
/// rings, reduce on the reduce-scatter's, and both carry the whole payload.
void add_in_node_candidates(CollectiveOp op, int ranks, const IntraNodeCollectives& presets,
                            std::vector<CollectiveCandidate>& out);

/// The ring that large payloads take inside a domain of so many members.
struct LargeRing {
  Seconds latency;
  BytesPerSecond bus_bandwidth;
};
/// Of the regimes in Simple the one with the highest bus bandwidth; those of broadcast and reduce
/// are the all-gather's and the reduce-scatter's.
LargeRing large_ring(CollectiveOp op, int ranks, const IntraNodeCollectives& presets);

/// Bus bandwidth that the rings of an all-reduce approach inside this node, NVLS left out: what the
/// rings of a larger group can have here.
BytesPerSecond ring_bus_bandwidth(const IntraNodeCollectives& presets);

/// Bus bandwidth that an all-reduce approaches where the NVLink switch reduces; 0 where it cannot.
BytesPerSecond nvls_bus_bandwidth(const IntraNodeCollectives& presets);
/// Members from which on the switch reduces; 0 where it cannot.
int nvls_least_ranks(const IntraNodeCollectives& presets);
/// What the latency of an all-reduce in the switch has grown by with `ranks` members, beside its
/// base; 0 where it cannot.
Seconds nvls_member_latency(const IntraNodeCollectives& presets, int ranks);

}  // namespace lockstep
