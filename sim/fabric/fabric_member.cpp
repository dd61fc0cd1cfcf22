#include "sim/fabric/fabric_member.hpp"

namespace lockstep {

FabricMember fabric_member(const NodeSpec& node, int gpu) {
  int domain = gpu / node.nvlink_domain;  // whole nodes, or a part of one
  if (node.nvlink_domain < node.gpus) {
    const int per_node = (node.gpus + node.nvlink_domain - 1) / node.nvlink_domain;
    domain = gpu / node.gpus * per_node + gpu % node.gpus / node.nvlink_domain;
  }
  return {.place = {domain, gpu},
          .node = gpu / node.gpus,
          .nic = gpu % node.gpus * nic_ports(node).count / node.gpus};
}

FabricMember fabric_member(const Placement& placement, std::span<const int> nodes, int rank) {
  const int node = placement.node_of(rank);
  return {.place = {placement.domain_of(rank), rank},
          .node = nodes.empty() ? node : nodes[static_cast<std::size_t>(node)],
          .nic = placement.nic_of(rank)};
}

std::vector<GroupMember> places_of(std::span<const FabricMember> members) {
  std::vector<GroupMember> places;
  places.reserve(members.size());
  for (const FabricMember& member : members) places.push_back(member.place);
  return places;
}

}  // namespace lockstep
