/// Which rank of one pool holds what part of a prompt's keys and values, and which rank of the
/// other pool needs it.
///
/// Layers are cut over stages and heads over tensor-parallel ranks, on both sides; what two ranks
/// have in common goes straight from one to the other. One copy goes over the network: where there
/// are more ranks than heads, and of latent attention, the ranks that keep the same share it out.
#pragma once

#include <vector>

#include "models/spec/hardware.hpp"

namespace lockstep {

/// How those ranks lie that hold one sequence: `tensor` x `pipeline`, of a replica with so many
/// such groups.
struct KvCut {
  int tensor = 1, pipeline = 1, groups = 1;

  [[nodiscard]] int ranks() const { return tensor * pipeline; }
  [[nodiscard]] int gpus() const { return ranks() * groups; }
  /// GPU of the replica, from 0; `rank` of a group counts stage by stage.
  [[nodiscard]] int gpu(int group, int rank) const {
    return (rank / tensor * groups + group) * tensor + rank % tensor;
  }
};

struct KvStream {
  int from = 0, to = 0;  ///< ranks of a group
  double share = 0;      ///< of the keys and values; all streams add up to 1
};
/// Requires degrees of at least 1.
std::vector<KvStream> kv_streams(const KvCut& from, const KvCut& to);

/// One end of transfers.
struct KvSide {
  const NodeSpec& node;
  KvCut cut;
};
/// With nothing else on the way: what the side whose ports carry less lets through, NVLink's where
/// `joined`.
BytesPerSecond kv_rate(const KvSide& from, const KvSide& to, double efficiency, bool joined);

}  // namespace lockstep
