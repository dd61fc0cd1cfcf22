#include "sim/scenario/members.hpp"

#include <fmt/format.h>
#include <utility>

#include "sim/core/random.hpp"
#include "sim/scenario/draws.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

std::string name_of(const TrafficEnd& end) {
  return end.gpu < 0 ? fmt::format("node {} nic {}", end.node, end.nic)
                     : fmt::format("node {} gpu {}", end.node, end.gpu);
}

std::vector<TrafficEnd> members_of(const MemberSpec& spec, const NodeSpec& node) {
  const int ports = nic_ports(node).count;
  const int per_node = spec.nics ? ports : node.gpus;
  std::vector<int> numbers;
  if (spec.shuffle_seed) {
    const int all = (spec.nodes * per_node - 1 - spec.first) / spec.stride + 1;
    numbers.resize(static_cast<std::size_t>(all));
    for (int i = 0; i < all; ++i) numbers[static_cast<std::size_t>(i)] = i;
    RandomStream random(draw_name(Draw::members, *spec.shuffle_seed));
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const auto rest = static_cast<std::uint32_t>(numbers.size() - i);
      std::swap(numbers[i], numbers[i + random.below(rest)]);
    }
  }
  std::vector<TrafficEnd> out;
  out.reserve(static_cast<std::size_t>(spec.count));
  for (int i = 0; i < spec.count; ++i) {
    const int place = spec.shuffle_seed ? numbers[static_cast<std::size_t>(i)] : i;
    const int number = spec.first + place * spec.stride;
    const int local = number % per_node;
    out.push_back({.node = spec.first_node + number / per_node,
                   .nic = spec.nics ? local : local * ports / node.gpus,
                   .gpu = spec.nics ? -1 : local});
  }
  return out;
}

std::vector<TrafficEnd> group_of(const std::vector<TrafficEnd>& members, const GroupSpec& groups,
                                 int group) {
  if (groups.count == 1) return members;
  const auto count = static_cast<std::size_t>(groups.count);
  const auto number = static_cast<std::size_t>(group);
  const std::size_t size = members.size() / count;
  const bool strided = groups.spread == GroupSpec::Spread::strided;
  std::vector<TrafficEnd> out;
  out.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(members[strided ? i * count + number : number * size + i]);
  }
  return out;
}

}  // namespace lockstep
