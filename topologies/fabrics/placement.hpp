/// Where the ranks of a job sit: which node, GPU, NIC and NVLink domain, and how its groups spread.
/// Ranks fill GPUs in order: rank r is GPU r % g of node r / g.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"

namespace lockstep {

enum class ParallelAxis : std::uint8_t { tensor, data, pipeline };
constexpr std::size_t kParallelAxes = 3;

/// The axes of a rank number, innermost (stride 1) first.
using RankOrder = std::array<ParallelAxis, kParallelAxes>;

/// "tp-dp-pp" (Megatron's default: data-parallel neighbours close, stages far apart), "tp-pp-dp",
/// or any other order of the three names. Nothing: not such an order.
std::optional<RankOrder> parse_rank_order(std::string_view text);
/// What parse_rank_order() takes, for messages.
std::string_view rank_order_rule();

/// NIC ports of a node as the fabric sees them. Several NICs of one GPU are one port of their
/// summed bandwidth (p5: 32 NICs, 8 GPUs: 8 ports); fewer NICs than GPUs are shared by neighbouring
/// GPUs.
struct NicPorts {
  int count = 0;
  BytesPerSecond bandwidth;  ///< of each port
};
NicPorts nic_ports(const NodeSpec& node);

/// GPUs that a job of so many ranks takes of each NVLink domain. Of domains that span nodes it
/// takes equal parts, of as few as can give them: 64 of 72 GPUs for a job of 512, as Slurm's
/// --segment=16 on nodes of four asks for. A job that not even twice as many domains share evenly
/// fills one domain after the other.
int domain_share(int ranks, const NodeSpec& node);

/// Position of a rank on the axes, each from 0.
struct RankCoordinates {
  int tensor = 0;
  int data = 0;
  int pipeline = 0;
  friend bool operator==(const RankCoordinates&, const RankCoordinates&) = default;
};

/// Ranks first, first + stride, ... of a process group.
struct RankGroup {
  int first = 0;
  int count = 1;
  int stride = 1;
  [[nodiscard]] int rank(int member) const { return first + member * stride; }
};

/// How a group lies over the machine. `*_max` and `*_min`: of those that hold any member.
struct GroupSpread {
  int nodes = 0;
  int domains = 0;  ///< NVLink domains
  int per_node_min = 0, per_node_max = 0;
  int per_domain_min = 0, per_domain_max = 0;
  friend bool operator==(const GroupSpread&, const GroupSpread&) = default;
};

/// Groups that are copies of one another, moved along the ranks. One of them has the ranks
/// `first` + `members`; each of `repeats` stands for `count` copies, `stride` ranks apart.
struct GroupFamily {
  struct Repeat {
    int count = 1;
    int stride = 1;
  };
  int first = 0;
  std::vector<int> members;  ///< ascending, at least one
  std::vector<Repeat> repeats;
};

/// What the shortest connection between two ranks is.
enum class Reach : std::uint8_t {
  self,           ///< the same GPU
  nvlink_domain,  ///< the same domain, in one node or not
  node,           ///< the same node without a common domain: host memory, PCIe
  fabric,         ///< NICs and switches
};

/// Requires degrees, GPUs per node and domain size of at least 1, and fewer than 2^31 ranks.
/// `nvlink_domain` above `gpus_per_node` spans nodes (72 in NVL72), whole ones.
struct PlacementSpec {
  int tensor = 1;
  int data = 1;
  int pipeline = 1;
  RankOrder order = {ParallelAxis::tensor, ParallelAxis::data, ParallelAxis::pipeline};
  int gpus_per_node = 8;
  int nvlink_domain = 8;
  int nic_ports = 8;  ///< NicPorts::count of a node

  friend auto operator<=>(const PlacementSpec&, const PlacementSpec&) = default;
};

class Placement {
 public:
  explicit Placement(const PlacementSpec& spec);

  [[nodiscard]] const PlacementSpec& spec() const { return spec_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// Nodes that hold a rank; the last may be partly used.
  [[nodiscard]] int nodes() const;

  [[nodiscard]] int rank(const RankCoordinates& at) const;
  [[nodiscard]] RankCoordinates coordinates(int rank) const;

  [[nodiscard]] int node_of(int rank) const { return rank / spec_.gpus_per_node; }
  [[nodiscard]] int local_gpu_of(int rank) const { return rank % spec_.gpus_per_node; }
  [[nodiscard]] int domain_of(int rank) const;
  /// NIC port of the rank's GPU, from 0 in its node.
  [[nodiscard]] int nic_of(int rank) const;
  /// Which of the GPUs that share this NIC port the rank's is, from 0.
  [[nodiscard]] int turn_at_nic(int rank) const;
  [[nodiscard]] Reach reach(int from_rank, int to_rank) const;

  /// The groups that a rank position belongs to: the ranks that differ from it along one axis only.
  [[nodiscard]] RankGroup group(ParallelAxis axis, const RankCoordinates& member) const;
  /// Takes time in proportion to the members.
  [[nodiscard]] GroupSpread spread(const RankGroup& group) const;
  /// Ranks after which the pattern of nodes and domains repeats: groups whose ranks differ by
  /// multiples of it lie in the same way.
  [[nodiscard]] int period() const;
  /// The different ways in which the groups of a family lie. Takes time in proportion to the
  /// members of one group, and not to the number of groups.
  [[nodiscard]] std::vector<GroupSpread> spreads(const GroupFamily& family) const;
  /// Between a rank and its partner in the next stage (the last stage's next is the
  /// first, as interleaved schedules need it).
  [[nodiscard]] Reach next_stage_reach(const RankCoordinates& from) const;

 private:
  [[nodiscard]] int degree(ParallelAxis axis) const;
  [[nodiscard]] GroupSpread spread(int first, const std::vector<int>& members) const;
  [[nodiscard]] int stride(ParallelAxis axis) const {
    return strides_[static_cast<std::size_t>(axis)];
  }

  PlacementSpec spec_;
  std::array<int, kParallelAxes> strides_{};  ///< by axis
  int ranks_ = 1;
  int domains_per_node_ = 1;  ///< 1 also where a domain spans nodes
};

}  // namespace lockstep
