#include "sim/step/unseen_traffic.hpp"

#include <algorithm>

#include "topologies/fabrics/switch_limits.hpp"

namespace lockstep {
namespace {

/// Whether lanes of a replica, its tensor-parallel ranks above all, are in collectives of replicas
/// that cross the network, and not all in the same one.
bool has_lanes_apart(const StepPlan& plan) {
  const auto any = [&plan](const std::vector<StagePlan>& stages) {
    return std::ranges::any_of(stages, [&plan](const StagePlan& stage) {
      return std::ranges::any_of(stage.channels, [&](const DataChannel& c) {
        return c.cost.network_coefficient > 0 &&
               stage.groups[static_cast<std::size_t>(c.group)].lanes < plan.placement.tensor;
      });
    });
  };
  return any(plan.stages) || std::ranges::any_of(plan.further_variants, any);
}

/// Whether replicas sum anything that switches can: all-reduces alone.
bool has_sums(const StepPlan& plan) {
  const auto any = [](const std::vector<StagePlan>& stages) {
    return std::ranges::any_of(stages, [](const StagePlan& stage) {
      return std::ranges::any_of(stage.channels, [](const DataChannel& c) {
        return c.op == CollectiveOp::all_reduce && c.cost.network_coefficient > 0;
      });
    });
  };
  return any(plan.stages) || std::ranges::any_of(plan.further_variants, any);
}

/// Whether links between switches can be loaded unevenly by groups that are alike.
bool is_uneven(const FabricSpec& fabric) {
  return fabric.routing == Routing::ecmp || !fabric.faults.empty() ||
         routings()[static_cast<std::size_t>(fabric.routing)].is_static ||
         fabric.kind == FabricKind::file;
}

}  // namespace

std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan,
                                        const std::string& limits) {
  std::vector<std::string> notes;
  if (scenario.stack.communication.sharp && !plan.switches_sum) {
    notes.emplace_back(
        "Faults leave a rail no switch above all of its leaves: NCCL gets no SHARP when it starts, "
        "and sums in GPUs.");
  } else if (scenario.stack.communication.sharp && !has_sums(plan)) {
    notes.emplace_back(
        "SHARP sums all-reduces over the network alone; replicas here exchange by other "
        "collectives.");
  }
  if (limits.empty() || !is_uneven(scenario.fabric) || !has_lanes_apart(plan)) return notes;
  notes.emplace_back(
      "Tensor- and context-parallel ranks of a replica end their collectives with other replicas "
      "together, with the slowest of them.");
  return notes;
}

std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan) {
  const NicPorts ports = nic_ports(scenario.node);
  const int nodes = std::max(scenario.nodes, Placement{plan.placement}.nodes());
  return unseen_traffic(scenario, plan,
                        switch_limits(scenario.fabric, nodes, ports.count, ports.bandwidth));
}

}  // namespace lockstep
