#include "sim/traffic/traffic_collective.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <ranges>
#include <utility>

#include "models/collectives/algorithms.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// GPUs of the entry on the NIC port that most share.
int most_on_a_nic(const TrafficEntry& entry, const NodeSpec& node) {
  std::map<std::pair<int, int>, int> on_nic;
  for (const TrafficEnd& end : members_of(entry.members, node)) ++on_nic[{end.node, end.nic}];
  return std::ranges::max(on_nic | std::views::values);
}

/// In another order, with the same ring over their domains: that of member `root` is the first.
std::vector<FabricMember> from_root(const std::vector<FabricMember>& members, int root) {
  std::vector<GroupNode> domains = group_nodes(places_of(members));
  const int first = members[static_cast<std::size_t>(root)].place.node;
  std::ranges::rotate(domains, std::ranges::find(domains, first, &GroupNode::node));
  std::vector<FabricMember> out;
  out.reserve(members.size());
  for (const GroupNode& domain : domains) {
    for (const int at : domain.members) out.push_back(members[static_cast<std::size_t>(at)]);
  }
  return out;
}

}  // namespace

TrafficCollective traffic_collective(const TrafficScenario& scenario, const TrafficEntry& entry,
                                     const std::vector<TrafficEnd>& ends) {
  const CollectiveOp op = info(entry.kind).op.value();
  const NodeSpec& node = scenario.cluster.node;
  TrafficCollective out;
  std::map<int, int> by_domain;
  for (const TrafficEnd& end : ends) {
    out.members.push_back(fabric_member(node, end.node * node.gpus + end.gpu));
    ++by_domain[out.members.back().place.node];
  }
  if (info(entry.kind).is_chain) out.members = from_root(out.members, entry.root);
  TransportSpec transport = scenario.cluster.transport;
  transport.efficiency = scenario.efficiency;
  const auto [least, most] = std::ranges::minmax(by_domain | std::views::values);
  const CollectiveCall call{.op = op,
                            .payload = entry.size.least,
                            .ranks = static_cast<int>(ends.size()),
                            .ranks_per_node = least,
                            .nodes = static_cast<int>(by_domain.size()),
                            .ranks_per_node_max = most};
  const int sharing = most_on_a_nic(entry, node);
  const NicShare nic{nic_ports(node).bandwidth / sharing, static_cast<double>(sharing)};
  out.cost = collective_cost(call, node.gpu, transport, nic);
  const CollectiveOptions options;  // the context refers to it
  const CollectiveContext context = unpack(call, node.gpu, transport, nic, options);
  out.peer_channels = peer_channels(context);
  out.shape = collective_shape(op, out.cost.algorithm, places_of(out.members), out.cost.channels,
                               out.peer_channels);
  const auto n = static_cast<double>(ends.size());
  const double edges = info(entry.kind).is_chain ? n - 1 : n;
  out.pairs = op == CollectiveOp::all_to_all ? n * (n - 1) : edges;
  out.sent = bus_factor(op, call.ranks) * edges * entry.size.least.base_units();
  return out;
}

}  // namespace lockstep
