#include "sim/trace/group_call.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace lockstep {

PlacementSpec placement_in_order(int ranks, const NodeSpec& node) {
  return {.tensor = ranks,
          .gpus_per_node = node.gpus,
          .nvlink_domain = domain_share(ranks, node),
          .nic_ports = nic_ports(node).count};
}

std::vector<std::vector<int>> by_domain(const Placement& placement, std::span<const int> group) {
  std::vector<std::vector<int>> domains;
  int last = -1;
  for (const int rank : group) {  // ascending, and so are their domains
    const int domain = placement.domain_of(rank);
    if (domain != last) domains.emplace_back();
    last = domain;
    domains.back().push_back(rank);
  }
  return domains;
}

CollectiveCall group_call(CollectiveOp op, Bytes payload,
                          const std::vector<std::vector<int>>& domains) {
  assert(!domains.empty());
  std::size_t ranks = 0;
  for (const std::vector<int>& members : domains) ranks += members.size();
  const auto [least, most] = std::ranges::minmax(domains, {}, &std::vector<int>::size);
  return {.op = op,
          .payload = payload,
          .ranks = static_cast<int>(ranks),
          .ranks_per_node = static_cast<int>(least.size()),
          .nodes = static_cast<int>(domains.size()),
          .ranks_per_node_max = static_cast<int>(most.size())};
}

}  // namespace lockstep
