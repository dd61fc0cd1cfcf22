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
  if (std::string note = replicas_note(scenario, plan); !note.empty()) notes.push_back(note);
  return notes;
}

std::vector<std::string> unseen_traffic(const Scenario& scenario, const StepPlan& plan) {
  const NicPorts ports = nic_ports(scenario.node);
  const int nodes = std::max(scenario.nodes, Placement{plan.placement}.nodes());
  return unseen_traffic(scenario, plan,
                        switch_limits(scenario.fabric, nodes, ports.count, ports.bandwidth));
}

}  // namespace lockstep
