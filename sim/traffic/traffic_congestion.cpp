#include "sim/traffic/traffic_congestion.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"
#include "topologies/fabrics/nic_rates.hpp"

namespace lockstep {
namespace {

std::string about(const TrafficEntry& entry) {
  std::string out = fmt::format("{}, {} members", info(entry.kind).name, entry.members.count);
  if (entry.groups.count > 1) out += fmt::format(" in {} groups", entry.groups.count);
  return out;
}

std::string fabric_text(const TrafficScenario& scenario, const Fabric& fabric) {
  return fmt::format(
      "{}, {}, {} x {} of {}", scenario.cluster.fabric.name,
      name_of(scenario.cluster.fabric.routing), counted(fabric.nodes(), "node"),
      counted(fabric.nics_per_node(), "NIC"),
      words_of(nic_rates(scenario.cluster.fabric, scenario.cluster.nodes, fabric.nic_bandwidth())));
}

}  // namespace

TrafficCongestion::TrafficCongestion(TrafficSimulation& simulation)
    : simulation_(simulation), recorder_(simulation.network().flows()) {
  for (const TrafficEntry& entry : simulation.plan().scenario().entries) {
    recorder_.add_job(entry.name, about(entry));
  }
  for (const Demand& demand : simulation.plan().demands()) add(demand);
  simulation.when_flow_added([this](const Demand& demand) { add(demand); });
}

void TrafficCongestion::add(const Demand& demand) {
  const TrafficPlan& plan = simulation_.plan();
  const TrafficNetwork& network = simulation_.network();
  for (; links_ < network.flows().links(); ++links_) {
    recorder_.add_link(links_, network.link_name(links_), network.flows().capacity(links_),
                       network.enters_fabric(links_));
  }
  const TrafficGroup& group = plan.groups()[demand.group];
  recorder_.add_flow(demand.flow, group.entry, plan.steady_name_of(demand), 1 / demand.pairs);
}

CongestionReport TrafficCongestion::report(const TrafficReport& totals,
                                           const CongestionLimits& limits) const {
  const TrafficScenario& scenario = simulation_.plan().scenario();
  CongestionReport out = recorder_.report(simulation_.last_end(), limits);
  out.title = std::filesystem::path(scenario.file).filename();
  out.file = scenario.file;
  out.about = scenario.about;
  out.fabric = fabric_text(scenario, simulation_.network().fabric());
  out.notes = totals.notes;
  for (std::size_t e = 0; e < out.jobs.size(); ++e) {
    out.jobs[e].step_s = totals.entries[e].time_s();
    out.jobs[e].alone_s = totals.entries[e].alone_s;
  }
  std::ranges::stable_sort(out.transfers, std::ranges::greater{},
                           [](const TransferCongestion& t) { return t.slowdown(); });
  return out;
}

}  // namespace lockstep
