#include "sim/power/shared_power.hpp"

#include <cassert>
#include <utility>

#include "models/power/site_power.hpp"
#include "sim/power/step_power.hpp"
#include "sim/power/switch_ports.hpp"
#include "sim/step/step.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr Seconds kOneHour{3600};

/// The job by itself on as much of the fabric, or on one that never limits where that cannot be cut
/// to its nodes: what it waits is added for the difference either way.
Scenario job_by_itself(const SharedJob& job) {
  Scenario out = job.scenario;
  out.fabric.faults.clear();
  const NicPorts nics = nic_ports(out.node);
  if (check(out.fabric, out.nodes, nics.count, nics.bandwidth)) {
    out.fabric = FabricSpec{};
    out.fabric.kind = FabricKind::ideal;
  }
  return out;
}

/// Prices of a part of the machines: people are shared out by nodes.
CostSpec prices_for(const CostSpec& prices, double share_of_nodes) {
  CostSpec out = prices;
  out.people_usd_per_hour *= share_of_nodes;
  return out;
}

CostReport hour_of(const CostSpec& prices, const Holdings& holdings, Watts drawn, double tokens) {
  Usage usage;
  usage.time = kOneHour;
  usage.energy = drawn * kOneHour;
  usage.tokens = tokens;
  usage.energy_usd = drawn.base_units() * 1e-3 * prices.usd_per_kwh.integral(Seconds{}, kOneHour) /
                     kOneHour.base_units();
  return cost_of(prices, holdings, usage);
}

SharedJobPower job_power(const SharedJob& job, double step_s, double share_of_nodes,
                         BytesPerSecond ports) {
  const Scenario alone = job_by_itself(job);
  const StepReport report = simulate_step(alone, {.record_timeline = true, .keep_actors = true});
  const StepPower power = site_power(
      alone, gpu_draw(alone, report),
      {PowerPool{alone.node, static_cast<double>(alone.nodes), static_cast<double>(alone.gpus())}},
      ports);
  SharedJobPower out;
  out.step = Seconds{step_s > 0 ? step_s : report.step_s};
  out.tokens = report.tokens_per_step;
  const double works = Seconds{report.step_s} / out.step;
  const auto mean = [works](Watts working, Watts waiting) {
    return works * working + (1 - works) * waiting;
  };
  out.gpu = mean(power.levels.training.gpu, power.levels.waiting.gpu);
  out.facility = mean(power.levels.training.facility, power.levels.waiting.facility);
  out.peak = power.site_peak;
  const CostReport hour = hour_of(prices_for(alone.power->cost, share_of_nodes), power.holdings,
                                  out.facility, out.tokens * (kOneHour / out.step));
  out.owned_usd_per_hour = hour.total_usd();
  out.usd_per_trillion_tokens = hour.usd_per_trillion_tokens;
  return out;
}

/// Nodes that no job has.
void add_idle_nodes(const SharedScenario& scenario, double nodes, BytesPerSecond all_ports,
                    SharedPower& out) {
  if (nodes <= 0) return;
  const Cluster& cluster = scenario.cluster;
  const PowerSpec& spec = *scenario.power;
  const double share = nodes / cluster.nodes;
  const BytesPerSecond ports = share * all_ports;
  out.idle =
      power_usage_effectiveness(spec.facility, spec.outside_celsius) *
      (nodes * idle_node_power(cluster.node).ac() + fabric_power(spec.facility, ports).total());
  const Holdings holdings{.gpus = nodes * cluster.node.gpus,
                          .nodes = nodes,
                          .ports_100g = ports / gigabits_per_second(100),
                          .facility_peak = out.idle};
  out.owned_usd_per_hour +=
      hour_of(prices_for(spec.cost, share), holdings, out.idle, 0).total_usd();
}

}  // namespace

SharedPower shared_power(const SharedScenario& scenario, const SharedResult& result) {
  assert(scenario.power && scenario.cluster.node.gpu.power && scenario.cluster.node.chassis);
  const BytesPerSecond ports = switch_ports(scenario.cluster);
  SharedPower out;
  double idle = scenario.cluster.nodes;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const SharedJob& job = scenario.jobs[j];
    const auto nodes = static_cast<double>(job.nodes.size());
    const double share = nodes / scenario.cluster.nodes;
    out.jobs.push_back(job_power(job, result.congestion.jobs[j].step_s, share, share * ports));
    idle -= nodes;
    out.facility += out.jobs.back().facility;
    out.peak += out.jobs.back().peak;
    out.owned_usd_per_hour += out.jobs.back().owned_usd_per_hour;
  }
  add_idle_nodes(scenario, idle, ports, out);
  out.facility += out.idle;
  out.peak += out.idle;
  return out;
}

double rent_per_hour(const SharedScenario& scenario, const SharedJob& job) {
  return *scenario.usd_per_gpu_hour * job.scenario.gpus();
}
double rent_per_hour(const SharedScenario& scenario) {
  return *scenario.usd_per_gpu_hour * scenario.cluster.nodes * scenario.cluster.node.gpus;
}

}  // namespace lockstep
