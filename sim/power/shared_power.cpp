#include "sim/power/shared_power.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>
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
  out.drawn = power.facility;
  out.waiting = power.levels.waiting.facility;
  out.drawn.add(std::max(Seconds{}, out.step - out.drawn.end), out.waiting);
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

constexpr int kBeginsTried = 240;  // divides by 2, 3, 4, 5, 6, 8, 10, 12, ...

/// The mean of each of as many equal parts of the period.
std::vector<Watts> bin_means(const PowerSeries& series) {
  std::vector<Watts> out(kBeginsTried);
  const double bin = series.end.base_units() / kBeginsTried;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double from = series.start[i].base_units(), to = series.until(i).base_units();
    const auto first = static_cast<std::size_t>(from / bin);
    for (std::size_t b = first; b < out.size() && static_cast<double>(b) * bin < to; ++b) {
      const double begins = std::max(from, static_cast<double>(b) * bin);
      const double ends = std::min(to, static_cast<double>(b + 1) * bin);
      if (ends > begins) out[b] += (ends - begins) / bin * series.power[i];
    }
  }
  return out;
}

/// Watts of a job over the period, from a begin in bins.
double in_bin(const std::vector<Watts>& job, int bin, int begins) {
  const int at = (bin - begins + kBeginsTried) % kBeginsTried;
  return job[static_cast<std::size_t>(at)].base_units();
}

/// Lowest and highest of a site's bins.
std::pair<Watts, Watts> reach_of(const std::vector<double>& site) {
  const auto [low, high] = std::ranges::minmax_element(site);
  return {Watts{*low}, Watts{*high}};
}

}  // namespace

StaggeredSteps staggered_steps(const std::vector<PowerSeries>& jobs,
                               const std::vector<Watts>& waiting) {
  assert(!jobs.empty() && jobs.size() == waiting.size());
  StaggeredSteps out;
  for (const PowerSeries& job : jobs) out.period = std::max(out.period, job.end);
  std::vector<std::vector<Watts>> profiles;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    PowerSeries whole = jobs[j];
    out.longer.push_back(out.period / jobs[j].end - 1);
    whole.add(out.period - whole.end, waiting[j]);
    profiles.push_back(bin_means(whole));
  }
  std::vector<double> site(kBeginsTried, 0.0);
  for (const auto& job : profiles) {
    for (int b = 0; b < kBeginsTried; ++b) site[static_cast<std::size_t>(b)] += in_bin(job, b, 0);
  }
  std::tie(out.low_together, out.high_together) = reach_of(site);
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto swing = [&](std::size_t j) {
    const auto [low, high] = std::ranges::minmax_element(profiles[j]);
    return *high - *low;
  };
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return swing(a) > swing(b); });
  std::ranges::fill(site, 0.0);
  out.begins.resize(jobs.size());
  for (const std::size_t j : order) {
    const auto with = [&](int begins) {
      std::vector<double> sum = site;
      for (int b = 0; b < kBeginsTried; ++b) {
        sum[static_cast<std::size_t>(b)] += in_bin(profiles[j], b, begins);
      }
      return sum;
    };
    int best = 0;
    Watts least = reach_of(with(0)).second;
    for (int begins = 1; begins < kBeginsTried; ++begins) {
      const Watts high = reach_of(with(begins)).second;
      if (high.base_units() >= least.base_units() * (1 - 1e-9)) continue;
      best = begins;
      least = high;
    }
    site = with(best);
    out.begins[j] = static_cast<double>(best) / kBeginsTried * out.period;
  }
  std::tie(out.low, out.high) = reach_of(site);
  return out;
}

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
  if (out.jobs.size() > 1) {
    std::vector<PowerSeries> drawn;
    std::vector<Watts> waiting;
    for (const SharedJobPower& job : out.jobs) {
      drawn.push_back(job.drawn);
      waiting.push_back(job.waiting);
    }
    StaggeredSteps& staggered = out.staggered.emplace(staggered_steps(drawn, waiting));
    for (Watts* level :
         {&staggered.low, &staggered.high, &staggered.low_together, &staggered.high_together}) {
      *level += out.idle;
    }
  }
  return out;
}

double rent_per_hour(const SharedScenario& scenario, const SharedJob& job) {
  return *scenario.usd_per_gpu_hour * job.scenario.gpus();
}
double rent_per_hour(const SharedScenario& scenario) {
  return *scenario.usd_per_gpu_hour * scenario.cluster.nodes * scenario.cluster.node.gpus;
}

}  // namespace lockstep
