#include "sim/step/replica_classes.hpp"

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

/// Slowdown of each stage of a replica that has a slow GPU; the group runs at its slowest member.
using Slowdowns = std::map<int, std::vector<double>>;

Slowdowns slow_replicas(const Scenario& scenario, const Placement& placement) {
  Slowdowns slow;
  const auto stages = static_cast<std::size_t>(scenario.job.parallelism.pipeline);
  for (const Straggler& straggler : scenario.stragglers) {
    const RankCoordinates at = placement.coordinates(straggler.gpu);
    auto& stage = slow.try_emplace(at.data, stages, 1.0).first->second[static_cast<std::size_t>(at.pipeline)];
    stage = std::max(stage, straggler.slowdown);
  }
  return slow;
}

/// How far the messages of a replica travel, stage by stage, in switches (-1: over NVLink).
std::vector<int> path_kinds(const Fabric& fabric, const Placement& placement, int data, int stages) {
  std::vector<int> kinds;
  for (int s = 0; s < stages; ++s) {
    const int a = placement.rank({.tensor = 0, .data = data, .pipeline = s});
    const int b = placement.rank({.tensor = 0, .data = data, .pipeline = (s + 1) % stages});
    const bool local = placement.reach(a, b) != Reach::fabric;
    kinds.push_back(local ? -1
                          : fabric.switches_crossed(placement.node_of(a), placement.nic_of(a),
                                                    placement.node_of(b), placement.nic_of(b)));
  }
  return kinds;
}

}  // namespace

std::vector<ReplicaClass> replica_classes(const Scenario& scenario, const StepPlan& plan, bool unfold) {
  const Placement placement{plan.placement};
  const Slowdowns slow = slow_replicas(scenario, placement);
  const int replicas = plan.placement.data;
  const int stages = plan.placement.pipeline;
  const NicPorts ports = nic_ports(scenario.node);
  const Fabric fabric{scenario.fabric, std::max(scenario.nodes, placement.nodes()), ports.count,
                      ports.bandwidth};
  std::vector<ReplicaClass> classes;
  std::map<std::vector<int>, std::size_t> by_path;
  for (int data = 0; data < replicas; ++data) {
    const auto it = slow.find(data);
    if (unfold || it != slow.end()) {
      classes.push_back({data, 1, it == slow.end() ? std::vector<double>{} : it->second});
      continue;
    }
    const auto key = stages == 1 ? std::vector<int>{} : path_kinds(fabric, placement, data, stages);
    const auto [place, is_new] = by_path.try_emplace(key, classes.size());
    if (is_new) {
      classes.push_back({data, 1, {}});
    } else {
      ++classes[place->second].copies;
    }
  }
  return classes;
}

}  // namespace lockstep
