/// The links that traffic can use, fabric and NVLink, and the way of a message over them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/scenario/members.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/step/site.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A link becomes one of the flow network when the first flow crosses it: a fabric of a million
/// links costs only what is used. GPUs' NVLink ports are the traffic's own.
class TrafficNetwork {
 public:
  /// Requires a checked cluster. NICs and switch links carry `efficiency` of their line rate.
  TrafficNetwork(const Cluster& cluster, double efficiency);
  /// On a fabric that other processes may share. Requires that it is the cluster's; the links
  /// outlive this.
  TrafficNetwork(const Cluster& cluster, FabricLinks& links);

  /// Adds the way of a message to the flow under construction: a byte over it for each byte of the
  /// flow's progress. `queue_pair` feeds the ECMP hash. A message `on_rail` leaves its node on the
  /// receiver's rail, as NCCL's rings do; others do where the fabric has PXN. Requires different
  /// ends.
  void add_way(const TrafficEnd& from, const TrafficEnd& to, std::uint64_t queue_pair,
               bool on_rail = false);
  /// add_way() from every one of the ends to every other. Requires that no way was added since the
  /// last flow.
  void add_all_ways(std::span<const TrafficEnd> ends, std::uint64_t queue_pair);
  /// Adds a link of the fabric, and the way out of or into a GPU over NVLink (in a node without it,
  /// PCIe), with so many bytes for each of the flow's progress. Require weight > 0.
  void add_link(FabricLink link, double weight) { add(link, weight); }
  void add_port(const TrafficEnd& end, bool in, double weight) {
    add(gpu_link(end.node, end.gpu, in), weight);
  }
  /// Lets the flow progress no faster than that.
  void add_pace(BytesPerSecond rate);
  /// Makes a flow of the ways added since the last one, at least one.
  FlowIndex add_flow();
  /// Of the last flow made: bytes that it puts into the fabric, per byte of its progress.
  [[nodiscard]] double fabric_weight() const { return fabric_weight_; }
  /// Of the last flow made: its links.
  [[nodiscard]] std::span<const FlowEdge> last_edges() const { return edges_; }

  /// What the switches on that way delay.
  [[nodiscard]] Seconds latency(const TrafficEnd& from, const TrafficEnd& to,
                                bool on_rail = false) const;

  /// Counts the NICs that send in flows made from now on among those of an entry.
  void count_senders(std::size_t entry);
  /// Each NIC once, whichever of the entry's flows it sends in.
  [[nodiscard]] int senders(std::size_t entry) const { return senders_[entry]; }

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  [[nodiscard]] FlowNetwork& flows() { return flows_; }
  [[nodiscard]] const FlowNetwork& flows() const { return flows_; }
  /// Whether any of its flows crosses the link. The next ones require it.
  [[nodiscard]] bool uses(LinkIndex link) const {
    return link < known_.size() && known_[link] != kNoLink;
  }
  /// The fabric's; none for a link of a node, or of others.
  [[nodiscard]] std::optional<FabricLink> fabric_link(LinkIndex link) const {
    if (!uses(link) || in_node(link)) return std::nullopt;
    return known_[link];
  }
  /// "leaf 2 to spine 0", "node 3 gpu 1 out (NVLink)".
  [[nodiscard]] std::string link_name(LinkIndex link) const;
  /// Whether a NIC sends on it: bytes enter the fabric there.
  [[nodiscard]] bool enters_fabric(LinkIndex link) const {
    return !in_node(link) && nic_of_[known_[link]] != kNoNic;
  }
  /// Whether the link joins GPUs of a node or is the pace of a flow, and no part of the fabric.
  [[nodiscard]] bool in_node(LinkIndex link) const { return known_[link] >= fabric_.link_count(); }

 private:
  /// A link of the machine: those of the fabric, then out and in of each GPU, then paces of flows.
  using MachineLink = std::uint32_t;
  static constexpr LinkIndex kNoLink = static_cast<LinkIndex>(-1);
  static constexpr std::uint32_t kNoNic = static_cast<std::uint32_t>(-1);

  void add_tree_ways(std::span<const TrafficEnd> ends, std::uint64_t queue_pair);
  [[nodiscard]] bool joined(const TrafficEnd& from, const TrafficEnd& to) const;
  [[nodiscard]] bool changes_rail(const TrafficEnd& from, const TrafficEnd& to, bool on_rail) const;
  [[nodiscard]] MachineLink gpu_link(int node, int gpu, bool in) const {
    const int number = 2 * (node * node_.gpus + gpu) + (in ? 1 : 0);
    return fabric_.link_count() + static_cast<MachineLink>(number);
  }
  /// The first GPU of a NIC.
  [[nodiscard]] int gpu_of(int nic) const { return (nic * node_.gpus + ports_ - 1) / ports_; }
  /// Among the GPUs that share the port.
  [[nodiscard]] int turn_of(const TrafficEnd& end) const {
    return end.gpu < 0 ? 0 : end.gpu - gpu_of(end.nic);
  }
  void add_local(int from_node, int from_gpu, int to_node, int to_gpu);
  void add(MachineLink link, double weight) {
    double& sum = weights_[link];
    if (sum == 0) used_.push_back(link);
    sum += weight;
  }
  /// Of a link that is not the fabric's.
  [[nodiscard]] BytesPerSecond rate_of_own(MachineLink link) const;
  /// Makes it one of the flow network.
  LinkIndex new_link(MachineLink link);

  /// A fabric and its network, where no other process has any.
  struct Own {
    Own(const Cluster& cluster, double efficiency);
    Fabric fabric;
    FlowNetwork flows;
    FabricLinks links;
  };
  TrafficNetwork(const Cluster& cluster, std::unique_ptr<Own> own);

  std::unique_ptr<Own> own_;
  FabricLinks& links_;
  const Fabric& fabric_;
  FlowNetwork& flows_;
  NodeSpec node_;
  int ports_;
  int domain_nodes_;  ///< nodes that NVLink joins
  bool has_nvlink_;
  std::vector<std::uint32_t> nic_of_;  ///< by fabric link: the NIC that sends on it, or kNoNic
  MachineLink first_pace_ = 0;
  std::vector<BytesPerSecond> paces_;
  std::vector<double> weights_;             ///< of the flow under construction, by machine link
  std::vector<MachineLink> used_;           ///< those that it has
  std::vector<LinkIndex> link_of_;          ///< by machine link; kNoLink until a flow crosses it
  std::vector<MachineLink> known_;          ///< by link of the flow network; kNoLink: of others
  std::vector<std::vector<bool>> counted_;  ///< by entry and NIC: has been seen to send
  std::vector<int> senders_;                ///< by entry: how many of these
  std::size_t counting_ = 0;                ///< the entry that flows are of now
  std::vector<RouteHop> hops_;
  std::vector<FlowEdge> edges_;
  double fabric_weight_ = 0;
};

}  // namespace lockstep
