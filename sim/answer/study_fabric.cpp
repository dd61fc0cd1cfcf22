#include "sim/answer/study_fabric.hpp"

#include <algorithm>

#include "sim/fabric/collective_load.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/fabrics/switch_limits.hpp"

namespace lockstep {

StudyFabric::StudyFabric(const CollectiveStudy& study) : study_(study) {
  const Cluster& cluster = study.cluster;
  const NicPorts ports = nic_ports(cluster.node);
  if (switch_limits(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth).empty() &&
      !starts_slowly()) {
    return;
  }
  fabric_.emplace(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth);
  add_group(study.group.gpus);
  std::ranges::for_each(study.group.others, [this](const auto& gpus) { add_group(gpus); });
}

const StudyFabric::Limits& StudyFabric::limits(const CollectiveCall& call,
                                               const CollectiveCost& cost) {
  const auto [known, is_new] =
      limits_.try_emplace({call.op, cost.algorithm, call.nodes, call.ranks_per_node});
  if (!is_new || !fabric_) return known->second;
  CollectiveLoad load(*fabric_);
  std::vector<FabricMember> members;
  for (const StartedGroup& group : shaped(call, cost.algorithm)) {
    load.add(group.shape, group.members, kFirstHashSeed);
    members.insert(members.end(), group.members.begin(), group.members.end());
  }
  const auto named = [this](const CollectiveLoad::Slowest& slowest) {
    return Limit{slowest.per_byte, fabric_->link_name(slowest.link)};
  };
  const double efficiency = study_.cluster.transport.efficiency;
  known->second = {.switches = named(load.slowest(efficiency)),
                   .nics = named(load.slowest_nic(members, cost.network_coefficient,
                                                  study_.group.port_bandwidth, efficiency))};
  return known->second;
}

StudyFabric::Slowed StudyFabric::slowed(const CollectiveCall& call,
                                        const CollectiveCost& cost) const {
  const GroupCollective collective{.op = call.op,
                                   .algorithm = cost.algorithm,
                                   .peer_channels = peer_channels(context_of(call)),
                                   .channels = cost.channels};
  const StartedCollective moved =
      move_with_dcqcn(*fabric_, shaped(call, cost.algorithm), collective, cost.payload_rate,
                      call.payload, study_.cluster.transport.efficiency);
  return {moved.moving, moved.slowest ? fabric_->link_name(*moved.slowest) : ""};
}

CollectiveContext StudyFabric::context_of(const CollectiveCall& call) const {
  return unpack(call, study_.cluster.node.gpu, study_.cluster.transport, study_.group.nic(),
                study_.options);
}

std::vector<StartedGroup> StudyFabric::shaped(const CollectiveCall& call,
                                              std::string_view algorithm) const {
  const CollectiveContext context = context_of(call);
  const int channels = shape_channels(context, algorithm);
  std::vector<StartedGroup> out;
  out.reserve(groups_.size());
  for (const std::vector<FabricMember>& group : groups_) {
    const std::vector<GroupMember> places = places_of(group);
    if (group_nodes(places).size() < 2) continue;  // beside others that leave their NVLink domain
    out.push_back(
        {collective_shape(call.op, algorithm, places, channels, peer_channels(context)), group});
  }
  return out;
}

void StudyFabric::add_group(const std::vector<int>& gpus) {
  std::vector<FabricMember>& group = groups_.emplace_back();
  group.reserve(gpus.size());
  for (const int gpu : gpus) group.push_back(fabric_member(study_.cluster.node, gpu));
}

}  // namespace lockstep
