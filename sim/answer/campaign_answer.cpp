#include "sim/answer/campaign_answer.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/power/run_power.hpp"
#include "sim/site/held_power.hpp"
#include "sim/step/step.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr std::array<RunBucketName, kRunBuckets> kRunBucketNames{
    {{"productive", "Training at full speed"},
     {"degraded", "Slower steps"},
     {"checkpoint", "Waiting for checkpoints"},
     {"lost", "Work done again"},
     {"detection", "Detecting failures"},
     {"diagnosis", "Diagnosing failures"},
     {"restart", "Restarting and reading checkpoints"},
     {"repair_wait", "Waiting for a healthy node"}}};

/// Prices the run whose goodput is the median, by what its site took hour by hour.
RunBill bill_of_site(const CampaignResult& result) {
  const Scenario& scenario = result.scenario;
  const TrajectoryResult& run = *result.typical;
  const Seconds trained = to_seconds(run.buckets[static_cast<std::size_t>(RunBucket::productive)]);
  const double steps = trained.base_units() / result.plan.step_s;
  const Usage usage =
      usage_of(site_bill(*result.site->plan, result.site->books), to_seconds(run.wall),
               steps * result.tokens_per_step(), steps * result.plan.flops_per_step);
  const CostSpec& prices = scenario.power->cost;
  return {.usage = usage,
          .cost = with_plants(cost_of(prices, result.power->holdings, usage),
                              plants_usd(result.site->plan->spec), prices, usage)};
}

/// Nodes under the limit in the hour in which cooling takes most; those of a step are at one
/// outside temperature.
void fit_under_limit(const PowerSpec& spec, const SiteBooks& books, StepPower& power) {
  if (!power.site_nodes) return;
  double highest = 0;
  for (const SiteHourBook& hour : books.hours) highest = std::max(highest, hour.pue);
  if (highest <= 0) return;
  const Watts node = highest / power.pue / power.holdings.nodes * power.facility_meter.high;
  power.site_nodes = static_cast<int>(std::floor(*spec.site_limit / node));
}

/// The mean run, as sums.
TrajectoryResult mean_run(const CampaignResult& result) {
  TrajectoryResult mean;
  for (std::size_t b = 0; b < mean.buckets.size(); ++b) {
    mean.buckets[b] = to_run_time(Seconds{result.summary.shares[b] * result.summary.wall_s.mean});
    mean.wall += mean.buckets[b];
  }
  return mean;
}

/// Energy of the mean run on machines that come in lots. Requires "power" and a fleet.
FleetEnergy energy_of_lots(const CampaignResult& result) {
  const TrajectoryResult mean = mean_run(result);
  const Seconds time = to_seconds(mean.wall);
  const Scenario& scenario = result.scenario;
  if (time <= Seconds{}) return {};
  const Watts level = run_energy(mean, result.power->levels) / time;
  return fleet_energy(*result.fleet, node_draw(level, *result.power, scenario.nodes), time,
                      scenario.power->cost);
}

/// Prices the mean run.
RunBill bill_of(const CampaignResult& result) {
  const Scenario& scenario = result.scenario;
  const CostSpec& prices = scenario.power->cost;
  Usage usage = run_usage(mean_run(result), result.power->levels, prices,
                          result.steps() * result.tokens_per_step(),
                          result.steps() * result.plan.flops_per_step);
  if (result.fleet) {
    const FleetEnergy lots = energy_of_lots(result);
    usage.energy = lots.energy;
    usage.energy_usd = lots.usd();
    usage.grams = lots.grams;
  }
  return {.usage = usage, .cost = cost_of(prices, result.power->holdings, usage)};
}

/// Sizes that published projections are for.
constexpr std::array<int, 4> kProjectedGpus{1024, 8192, 16'384, 131'072};

bool counts_cables(const RunSpec& run) {
  return std::ranges::find(run.reliability.modes, FailingComponent::cable,
                           &ReliabilityMode::component) != run.reliability.modes.end();
}

/// Whether the scenario's fabric, as it is described, joins so many nodes.
bool can_join(const Scenario& scenario, int nodes) {
  FabricSpec whole = scenario.fabric;
  whole.faults.clear();
  const NicPorts ports = nic_ports(scenario.node);
  return !check(whole, nodes, ports.count, ports.bandwidth);
}

std::vector<ProjectedMttf> project(const Scenario& scenario, const RunSpec& run) {
  std::vector<ProjectedMttf> out;
  for (const int gpus : kProjectedGpus) {
    const int nodes = gpus / scenario.node.gpus;
    if (nodes < 1 || !run.reliability.log.empty()) continue;
    if (counts_cables(run) && !can_join(scenario, nodes)) continue;
    const std::vector<FailureMode> modes =
        failing_modes(run, scenario.node, nodes, gpus, scenario.fabric);
    if (std::ranges::none_of(modes, &FailureMode::stops_job)) continue;
    out.push_back({.gpus = gpus, .mttf = mean_time_between_stops(modes)});
  }
  return out;
}

/// A training step; of an iteration one of its updates.
StepReport healthy_step(const CampaignResult& result, bool powered) {
  if (result.plan.iteration) return result.plan.iteration->update;
  return simulate_step(result.scenario, {.record_timeline = powered, .keep_actors = powered});
}

/// Of what the run repeats.
StepPower power_of_repeated(CampaignResult& result) {
  if (!result.plan.iteration) return step_power(result.scenario, result.step);
  RlPower power = rl_power(*result.rl, *result.plan.iteration);
  result.phases = std::move(power.phases);
  return std::move(power.site);
}

}  // namespace

std::span<const RunBucketName, kRunBuckets> run_bucket_names() { return kRunBucketNames; }

double CampaignResult::gpu_hours() const {
  return fleet ? fleet->used_gpu_hours(Seconds{summary.wall_s.mean}) : whole_gpu_hours();
}

double CampaignResult::whole_gpu_hours() const {
  return summary.wall_s.mean / 3600 * work().gpus();
}

double CampaignResult::held_gpu_hours() const {
  if (fleet) return fleet->held_gpu_hours(Seconds{summary.wall_s.mean});
  return gpu_hours() * (1 + 1.0 * reserved_nodes(plan.campaign.spares) / work().nodes());
}

std::optional<double> CampaignResult::rent_usd() const {
  if (!scenario.usd_per_gpu_hour) return std::nullopt;
  return held_gpu_hours() * *scenario.usd_per_gpu_hour;
}

Seconds CampaignResult::before() const {
  if (fleet) return fleet->begins;  // staging included
  return plan.data ? plan.data->begins : Seconds{};
}

Seconds CampaignResult::data_until() const {
  return plan.data->begins + Seconds{summary.wall_s.mean};
}

double CampaignResult::storage_usd() const {
  return plan.data ? lockstep::storage_usd(*plan.data, data_until()) : 0;
}

double CampaignResult::tokens_per_step() const {
  if (plan.iteration) return plan.tokens_per_step;
  const Batch& batch = scenario.job.batch;
  return static_cast<double>(batch.sequences) * batch.tokens;
}

CostSpec prices_of(const CampaignResult& result) {
  CostSpec out = result.scenario.power->cost;
  if (!result.site_plan || !result.site_plan->spec.priced) return out;
  out.usd_per_kwh.values.clear();
  for (const SiteHour& hour : result.site_plan->spec.hours) {
    out.usd_per_kwh.values.push_back(hour.usd_per_kwh);
  }
  return out;
}

std::vector<MonthMoney> months_of(const CampaignResult& result) {
  const Seconds run{result.summary.wall_s.mean};
  std::vector<EnergyPayment> paid;
  if (result.site) {
    paid = energy_payments(*result.site->plan, result.site->books);
  } else if (result.power) {
    paid = energy_of_lots(result).paid;
  }
  return money_by_month(*result.fleet, run, {}, paid);
}

CampaignResult planned_run(const RunWork& work, const RunSpec& run, WrittenScenario written) {
  SitedCampaign sited = plan_sited(work, run);
  CampaignResult result{.scenario = work.scenario, .plan = std::move(sited.plan), .summary = {}};
  result.rl = work.rl;
  result.site_plan = std::move(sited.site);
  result.fleet = std::move(sited.fleet);
  result.written = std::move(written);
  return result;
}

bool answer_run(const RunSpec& run, const SampleOptions& sampling, bool timeline,
                const StepIntervals& intervals, CampaignResult& result) {
  const Campaign& campaign = result.plan.campaign;
  const std::vector<TrajectoryResult> results = sample(campaign, sampling);
  if (results.empty()) return false;
  result.summary = summarise(campaign, results);
  result.typical_number = median_trajectory(results);
  if (timeline || result.site_plan) {
    result.typical = run_trajectory(campaign, result.typical_number, RunDetail::timeline);
  }
  add_step(result, run);
  const Scenario& scenario = result.scenario;
  result.hash = draw_of(scenario.fabric, scenario.nodes, scenario.node);
  // Published runs are of training steps, not of iterations.
  if (result.rl == nullptr) result.interval = intervals.of(scenario);
  if (result.interval) widen(*result.interval, result.step.band, result.step.step_s);
  return true;
}

void add_step(CampaignResult& result, const RunSpec& run) {
  const Scenario& scenario = result.scenario;
  const bool powered = scenario.power.has_value();
  result.step = healthy_step(result, powered);
  std::vector<std::string>& assumptions = result.plan.assumptions;
  assumptions.insert(assumptions.end(), result.step.notes.begin(), result.step.notes.end());
  constexpr double kMuchWaiting = 0.02;
  const double waits = result.summary.shares[static_cast<std::size_t>(RunBucket::repair_wait)];
  if (waits > kMuchWaiting) {
    assumptions.push_back(
        fmt::format("failures: as often in an hour that waits for a healthy node, {:.1f} % of the "
                    "run, as in one that trains; some kinds do not befall a GPU that waits",
                    100 * waits));
  }
  result.mfu = result.plan.flops_per_step.base_units() /
               (result.plan.step_s * result.work().gpus() * result.step.peak_flops_per_gpu);
  result.projections = project(scenario, run);
  if (!powered) return;
  // With the nodes that it holds in reserve, as a plan has them.
  result.power = held_power(
      power_of_repeated(result), result.work().nodes(), reserved_nodes(result.plan.campaign.spares),
      {.fleet = result.fleet.get(), .run = Seconds{result.summary.wall_s.mean}});
  if (result.site_plan && result.typical) {
    result.site =
        SiteAnswer{.plan = result.site_plan,
                   .books = site_books(*result.site_plan, *result.typical, result.typical_number)};
    take_peak(result.site->books.power.highest, *result.power);
    fit_under_limit(*scenario.power, result.site->books, *result.power);
    result.plan.assumptions.emplace_back(
        "run.site: energy, water, carbon and money are those of the run whose goodput is the "
        "median, hour by hour");
    const std::size_t given = result.site_plan->spec.hours_given;
    if (given > 0 && result.site->books.hours.size() > given) {
      result.plan.assumptions.push_back(
          fmt::format("run.site.hours: the file has {} hours, and the run {}: they are repeated",
                      grouped(static_cast<double>(given)),
                      grouped(static_cast<double>(result.site->books.hours.size()))));
    }
    result.bill = bill_of_site(result);
    return;
  }
  result.bill = bill_of(result);
}

}  // namespace lockstep
