#include "sim/fabric/fabric_member.hpp"

namespace lockstep {

FabricMember fabric_member(const NodeSpec& node, int gpu) {
  int domain = gpu / node.nvlink_domain;  // whole nodes, or a part of one
  if (node.nvlink_domain < node.gpus) {
    const int per_node = (node.gpus + node.nvlink_domain - 1) / node.nvlink_domain;
    domain = gpu / node.gpus * per_node + gpu % node.gpus / node.nvlink_domain;
  }
  const int local = gpu % node.gpus, ports = nic_ports(node).count;
  const int nic = local * ports / node.gpus;
  const int first_at_port = ports > 0 ? (nic * node.gpus + ports - 1) / ports : 0;
  return {
      .place = {domain, gpu}, .node = gpu / node.gpus, .nic = nic, .turn = local - first_at_port};
}

FabricMember fabric_member(const Placement& placement, std::span<const int> nodes, int rank) {
  const int node = placement.node_of(rank);
  return {.place = {placement.domain_of(rank), rank},
          .node = nodes.empty() ? node : nodes[static_cast<std::size_t>(node)],
          .nic = placement.nic_of(rank),
          .turn = placement.turn_at_nic(rank)};
}

std::vector<GroupMember> places_of(std::span<const FabricMember> members) {
  std::vector<GroupMember> places;
  places.reserve(members.size());
  for (const FabricMember& member : members) places.push_back(member.place);
  return places;
}

}  // namespace lockstep
