/// What collectives and messages of a trace cost on a cluster, and the flows that they run on: as
/// in a simulated step, a collective is one flow that all its links hold back together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collectives/choice.hpp"
#include "sim/core/flow_network.hpp"
#include "sim/fabric/dcqcn_start.hpp"
#include "sim/fabric/group_uses.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/step/site.hpp"
#include "sim/trace/trace.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// A collective or message on the wire: `latency` by itself, then `amount` over the flow. A message
/// has its latency after its bytes.
struct TraceTransfer {
  FlowIndex flow = 0;
  StepTime latency;
  Bytes amount;
  std::string_view algorithm;
};

class TraceWiring {
 public:
  /// Adds flows to the network of the site. Rank r is GPU r mod g of node r / g. With `options` the
  /// collectives are those that the user allows, else what NCCL takes by itself (and what a profile
  /// measured). Requires a cluster with a GPU for every rank. All but `site` outlive this, as what
  /// it points to. Throws InputError where no algorithm that the user allows can run.
  TraceWiring(const Trace& trace, const Cluster& cluster,
              const std::optional<CollectiveOptions>& options, const Site& site);

  [[nodiscard]] FlowNetwork& network() { return network_; }
  /// Of Trace::collectives; of a group of several ranks.
  [[nodiscard]] const TraceTransfer& collective(std::uint32_t index) const {
    return collectives_[index];
  }
  /// Tells it of the links and of the flows that there are, where those cross the fabric.
  void tell(DcqcnStart& start) const;
  /// A flow for messages of this size between these ranks; the same for the same three.
  TraceTransfer message(int from, int to, Bytes size);

 private:
  struct Uses {
    std::vector<FlowEdge> list;
    void add(LinkIndex link, double coefficient) {
      if (coefficient > 0) list.push_back({link, coefficient});
    }
  };

  [[nodiscard]] FabricMember member(int rank) const {
    return fabric_member(placement_, nodes_, rank);
  }
  /// Connections between two ranks that send to each other.
  [[nodiscard]] int connections_of_pair(const CollectiveCall& call) const;
  /// Messages over so many connections.
  [[nodiscard]] double messages_over(int connections) const {
    return fabric_.spec().routing == Routing::ecmp ? connections : 1;
  }
  LinkIndex port(int rank, int direction);
  void add_route(int from, int to, int connections, double bytes, Uses& uses);
  CollectiveCost cost_of(const CollectiveCall& call);
  TraceTransfer wire(const TraceCollective& collective);
  void add_rings(const std::vector<std::vector<int>>& domains, double bytes_each, Uses& uses);
  [[nodiscard]] std::vector<FabricMember> members_of(const TraceCollective& collective) const;
  [[nodiscard]] double messages_of(const TraceCollective& collective,
                                   const GroupCollective& shape) const;
  const std::vector<RouteHop>& shape_uses(const TraceCollective& collective,
                                          const GroupCollective& shape);

  const Trace& trace_;
  const Cluster& cluster_;
  const std::optional<CollectiveOptions>& options_;
  Placement placement_;
  std::vector<int> nodes_;  ///< of the fabric, by node of the trace; empty: the same
  FabricLinks& links_;
  const Fabric& fabric_;
  FlowNetwork& network_;
  bool limits_;  ///< switches can; where none does only NICs matter, and rings will do
  NicShare nic_;
  int message_connections_;
  std::vector<LinkIndex> ports_;
  std::vector<TraceTransfer> collectives_;
  std::map<std::tuple<CollectiveOp, double, int, int, int, int, double, bool, bool>, CollectiveCost>
      costs_;
  std::map<std::tuple<int, int, double>, TraceTransfer> messages_;
  std::map<std::tuple<std::uint32_t, CollectiveOp, std::string, double, bool, bool>,
           std::vector<RouteHop>>
      shapes_;
  std::vector<std::pair<FlowIndex, double>> sending_;  ///< over the fabric, in how many messages
  GroupUses groups_;
  std::vector<RouteHop> hops_;
};

}  // namespace lockstep
