#include <cassert>

#include "sim/scenario/run_spec.hpp"
#include "topologies/fabrics/switch_cables.hpp"

namespace lockstep {
namespace {

constexpr int kCpusPerNode = 2;  // where the node has no chassis that says

int groups_of(int nodes, int per_group) {
  assert(per_group > 0);
  return (nodes + per_group - 1) / per_group;
}

/// Of all components but cables.
int components_of(FailingComponent component, const RunSpec& run, const NodeSpec& node, int nodes,
                  int gpus) {
  switch (component) {
    case FailingComponent::gpu:
      return gpus;
    case FailingComponent::nic:
      return nodes * node.nics;
    case FailingComponent::cpu:
      return nodes * (node.chassis ? node.chassis->cpus : kCpusPerNode);
    case FailingComponent::node:
      return nodes;
    case FailingComponent::rack:
      return groups_of(nodes, run.domains.rack);
    case FailingComponent::switch_nodes:
      return groups_of(nodes, run.domains.switch_nodes);
    case FailingComponent::feed:
      return groups_of(nodes, run.domains.feed);
    case FailingComponent::job:
      return 1;
    case FailingComponent::cable:
      break;
  }
  assert(false && "every other component is listed above");
  return 1;
}

}  // namespace

std::vector<FailureMode> failing_modes(const RunSpec& run, const NodeSpec& node, int nodes,
                                       int gpus, const FabricSpec& fabric, int beside) {
  std::vector<FailureMode> modes;
  std::optional<std::uint32_t> cables;
  for (const ReliabilityMode& of : run.reliability.modes) {
    modes.push_back(of.mode);
    if (of.component == FailingComponent::cable) {
      if (!cables) cables = switch_cables(fabric, nodes, nic_ports(node));
      modes.back().components = *cables;
      continue;
    }
    modes.back().components = static_cast<std::uint32_t>(
        components_of(of.component, run, node, nodes + beside, gpus + beside * node.gpus));
  }
  return modes;
}

}  // namespace lockstep
