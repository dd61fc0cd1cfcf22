/// What switches that sum (SHARP) pass on between them: the trees of a fabric, one for each rail.
#pragma once

#include <span>
#include <vector>

#include "models/collectives/channels.hpp"
#include "sim/fabric/fabric_member.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A stream that switches pass on, summed: bytes over a link between switches for each byte of
/// payload, and the members whose bytes are in it.
struct SummedStream {
  FabricLink link = 0;
  double bytes = 0;
  std::vector<int> members;
};
/// Of the edges of a shape those that go to switches which sum: every leaf passes one stream of
/// each rail on, however many members it has, and so does every switch above on the way to the
/// rail's root. Empty where all members of a rail share a leaf. Requires has_sum_trees().
///
/// In a fabric that is drawn a rail's root is the lowest switch that is above all of its leaves by
/// cables that work; of several that to which the cables with the fewest rails so far lead. Slow
/// cables are not avoided.
std::vector<SummedStream> summed_streams(const Fabric& fabric,
                                         const std::vector<NetworkEdge>& edges,
                                         std::span<const FabricMember> members);

/// Whether each rail of these members has such a root: always in whole trees, never where switches
/// are in no layers. Where one has none, NCCL gets no SHARP when it sets a communicator up, and
/// sums in GPUs.
bool has_sum_trees(const Fabric& fabric, std::span<const FabricMember> members);
/// Of all NICs of nodes 0 to `nodes` - 1.
bool has_sum_trees(const Fabric& fabric, int nodes);

}  // namespace lockstep
