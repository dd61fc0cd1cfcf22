/// What was measured on a card: times of kernels and collectives, and how they correct the laws.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/ratio_field.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/precision.hpp"

namespace lockstep {

/// What every point has.
struct ProfilePoint {
  Seconds time;       ///< median
  double spread = 0;  ///< of repeats, relative; 0: not said
};
struct GemmPoint : ProfilePoint {
  GemmShape shape{1, 1, 1};
  Precision precision = Precision::bf16;
  Load load = Load::burst;
};
struct AttentionPoint : ProfilePoint {
  AttentionShape shape{1, 1, 1, 1, 1};
  AttentionKernel kernel = AttentionKernel::flash2;
};
struct MemoryPoint : ProfilePoint {
  std::string kernel;  ///< "rms_norm", "copy"
  Bytes traffic;       ///< read and written
};

/// A collective of nccl-tests: every node (NVLink domain) has as many members.
struct CollectivePoint : ProfilePoint {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes size;  ///< CollectiveCall::payload
  int nodes = 1, gpus_per_node = 2;

  [[nodiscard]] CollectiveCall call() const {
    return {op, size, nodes * gpus_per_node, gpus_per_node, nodes};
  }
};

/// What joins nodes.
struct NodeNetwork {
  TransportSpec transport;
  BytesPerSecond nic_bandwidth;  ///< of each GPU, one direction
};

struct Profile {
  std::string file;   ///< where it was read from
  std::string about;  ///< device, conditions, source, in words
  std::string gpu;    ///< preset name of the card
  std::string date;   ///< when it was measured; empty: not said
  /// That the card was held to meanwhile; none: its own. Between the lowest cap and that.
  std::optional<Watts> power_limit;
  std::vector<GemmPoint> gemm;
  std::vector<AttentionPoint> attention;
  std::vector<MemoryPoint> memory;
  std::vector<CollectivePoint> collectives;
  std::optional<NodeNetwork>
      network;  ///< that collectives over several nodes ran on; empty: not said

  [[nodiscard]] std::size_t points() const {
    return gemm.size() + attention.size() + memory.size() + collectives.size();
  }
  [[nodiscard]] bool spans_nodes() const;  ///< whether any collective does
};

RatioPlace place_of(const GemmShape& shape);
RatioPlace place_of(const AttentionShape& shape);
/// Of memory traffic, or of a collective's size.
RatioPlace place_of_bytes(Bytes bytes);

/// Measured over modelled for every kind of kernel of some profiles: what the laws of
/// models/kernels and models/collectives are multiplied by. Kinds that were not measured keep their
/// law.
class KernelProfile {
 public:
  /// `cards` has the card of each profile as it was measured: by the preset, under the profile's
  /// power limit, without a profile of its own. `network` joins its nodes: the law of collectives
  /// over several of them is taken on it. Their points are left out without one.
  KernelProfile(std::span<const Profile> profiles, std::span<const GpuSpec> cards,
                const std::optional<NodeNetwork>& network);

  /// A sustained load takes sustained points; without any, those of bursts, since what a kernel
  /// does better or worse than its law it does at any clock.
  [[nodiscard]] double gemm(const GemmShape& shape, Precision precision, Load load) const;
  [[nodiscard]] double attention(const AttentionShape& shape, AttentionKernel kernel) const;
  /// Geometric mean over the kernels that were measured: which one runs is not known where it is
  /// asked for.
  [[nodiscard]] double memory(Bytes traffic) const;
  /// Of the same operation over as many nodes with as many members in each; 1 for any other, and
  /// where members are spread unevenly. A send and receive is a pair, however many GPUs nccl-tests
  /// ran it on: without points of as many it takes those of the smallest group inside one node, or
  /// over several.
  [[nodiscard]] double collective(const CollectiveCall& call) const;

  /// The fields, for leaving points out: in the order of the profile's points of the kind.
  [[nodiscard]] const RatioField* gemm_field(Precision precision, Load load) const;
  [[nodiscard]] const RatioField* attention_field(const AttentionShape& shape,
                                                  AttentionKernel kernel) const;
  [[nodiscard]] const RatioField* memory_field(const std::string& kernel) const;
  [[nodiscard]] const RatioField* collective_field(const CollectivePoint& point) const;

 private:
  std::map<std::pair<Precision, Load>, RatioField> gemm_;
  std::map<std::array<int, 3>, RatioField> attention_;  ///< kernel, direction, causal
  std::map<std::string, RatioField> memory_;
  std::map<std::array<int, 3>, RatioField> collectives_;  ///< operation, nodes, members in each
};

}  // namespace lockstep
