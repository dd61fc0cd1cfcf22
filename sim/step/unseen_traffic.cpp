#include "sim/step/unseen_traffic.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <string_view>
#include <utility>

#include "topologies/switch_limits.hpp"

namespace lockstep {
namespace {

/// Whether a group of `count` ranks, `stride` apart among the ranks of a stage in the order tensor,
/// context, data, has members in two NVLink domains. Ranks of a stage keep that order on the
/// machine, so a group lies in one domain if its first and its last member do.
bool any_group_crosses(const Placement& placement, const PlacementSpec& spec, int count,
                       int stride) {
  if (count <= 1) return false;
  const int lanes = spec.tensor * spec.data;
  const auto domain = [&](int lane, int stage) {
    return placement.domain_of(placement.rank(
        {.tensor = lane % spec.tensor, .data = lane / spec.tensor, .pipeline = stage}));
  };
  const int block = count * stride;
  for (int stage = 0; stage < spec.pipeline; ++stage) {
    for (int first = 0; first + block <= lanes; first += block) {
      for (int member = 0; member < stride; ++member) {
        const int lane = first + member;
        if (domain(lane, stage) != domain(lane + block - stride, stage)) return true;
      }
    }
  }
  return false;
}

std::string inner_note(const Parallelism& par, const StepPlan& plan, const std::string& limits) {
  const Placement placement{plan.placement};
  const auto crosses = [&](int count, int stride) {
    return any_group_crosses(placement, plan.placement, count, stride);
  };
  std::vector<std::string_view> axes;
  if (crosses(par.tensor, 1)) axes.emplace_back("tensor");
  if (crosses(par.context, par.tensor)) axes.emplace_back("context");
  if (crosses(par.expert, par.expert_tensor)) axes.emplace_back("expert");
  if (axes.empty()) return {};
  return fmt::format(
      "Exchanges inside layers between nodes ({} parallel) load NICs and not the switches beyond "
      "them: the fabric has {}, which may make the step longer than this.",
      fmt::join(axes, ", "), limits);
}

/// The network algorithms of collectives among replicas, and whether there are any.
std::set<std::string_view> network_algorithms(const StepPlan& plan) {
  std::set<std::string_view> names;
  const auto look = [&names](const std::vector<StagePlan>& stages) {
    for (const StagePlan& stage : stages) {
      for (const DataChannel& channel : stage.channels) {
        if (channel.cost.network_coefficient > 0) names.insert(channel.cost.algorithm);
      }
    }
  };
  look(plan.stages);
  for (const std::vector<StagePlan>& stages : plan.further_variants) look(stages);
  return names;
}

/// Whether links between switches can be loaded unevenly by groups that are alike.
bool is_uneven(const FabricSpec& fabric) {
  return fabric.routing == Routing::ecmp || !fabric.faults.empty() ||
         routings()[static_cast<std::size_t>(fabric.routing)].is_static ||
         fabric.kind == FabricKind::file;
}

std::string replicas_note(const Scenario& scenario, const StepPlan& plan) {
  std::set<std::string_view> names = network_algorithms(plan);
  const bool uneven = is_uneven(scenario.fabric) && !names.empty();
  names.erase("ring");
  if (names.empty() && !uneven) return {};
  std::string note = "Collectives of data-parallel replicas load links as rings";
  if (!names.empty())
    note += fmt::format(" (their own time is that of {})", fmt::join(names, ", "));
  if (uneven) note += ", and all groups of a stage end with the slowest one";
  return note + ".";
}

}  // namespace

std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan,
                                        const std::string& limits) {
  std::vector<std::string> notes;
  if (limits.empty()) return notes;
  for (std::string note :
       {inner_note(scenario.job.parallelism, plan, limits), replicas_note(scenario, plan)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan) {
  const NicPorts ports = nic_ports(scenario.node);
  const int nodes = std::max(scenario.nodes, Placement{plan.placement}.nodes());
  return unseen_traffic(scenario, plan,
                        switch_limits(scenario.fabric, nodes, ports.count, ports.bandwidth));
}

}  // namespace lockstep
