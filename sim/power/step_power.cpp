#include "sim/power/step_power.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <span>
#include <utility>

#include "sim/power/switch_ports.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/power_ramp.hpp"
#include "sim/step/site.hpp"
#include "sim/step/slice_energy.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

using Rates = ByGpuPart<Watts>;
using Energies = ByGpuPart<Joules>;

constexpr auto at(GpuPart part) { return static_cast<std::size_t>(part); }

/// A change of what a GPU's engines draw.
struct RateChange {
  std::uint64_t ps;
  Rates by;
};
/// A change of what all GPUs together draw.
struct PowerChange {
  std::uint64_t ps;
  double watts;
};

/// Collects what GPUs draw over one step.
class Collector {
 public:
  Collector(const Scenario& scenario, double step_s)
      : floor_(scenario.power->smoothing.floor),
        end_(to_step_time(Seconds{step_s}).ps),
        spent_(scenario.pool_count()) {}

  /// The changes of one GPU of a pool, in any order; it stands for `count`. Returns its mean and
  /// peak.
  StagePower add(std::vector<RateChange>& changes, double count, std::size_t pool,
                 const GpuSpec& gpu) {
    std::ranges::stable_sort(changes,
                             [](const RateChange& a, const RateChange& b) { return a.ps < b.ps; });
    Rates now{};
    StagePower out;
    double before = 0;
    Joules spent;
    for (std::size_t i = 0; i <= changes.size(); ++i) {
      const std::uint64_t from = i == 0 ? 0 : changes[i - 1].ps;
      const std::uint64_t to = i == changes.size() ? end_ : changes[i].ps;
      if (i > 0) {
        for (std::size_t p = 0; p < kGpuParts; ++p) now[p] += changes[i - 1].by[p];
      }
      if (to <= from) continue;
      const Rates drawn = limited(now, gpu);
      const Seconds length = to_seconds(StepTime{to - from});
      for (std::size_t p = 0; p < kGpuParts; ++p) energy[p] += count * (drawn[p] * length);
      const Watts power = sum(drawn);
      spent += power * length;
      out.peak = std::max(out.peak, power);
      if (power > peak) peak = power;
      if (trough <= Watts{} || power < trough) trough = power;
      totals_.push_back({from, count * (power.base_units() - before)});
      before = power.base_units();
    }
    out.mean = end_ > 0 ? spent / to_seconds(StepTime{end_}) : Watts{};
    spent_[pool] += count * out.mean;
    return out;
  }

  /// Of a pool's GPUs that work, in the mean.
  [[nodiscard]] Watts mean_of(std::size_t pool) const { return spent_[pool]; }

  /// All GPUs together, with those beside them that draw nothing but their `idle` power.
  PowerSeries series(Watts idle) {
    std::ranges::stable_sort(
        totals_, [](const PowerChange& a, const PowerChange& b) { return a.ps < b.ps; });
    PowerSeries out;
    double now = idle.base_units();
    for (std::size_t i = 0; i < totals_.size(); ++i) {
      now += totals_[i].watts;
      const std::uint64_t to = i + 1 < totals_.size() ? totals_[i + 1].ps : end_;
      out.add(to_seconds(StepTime{to - totals_[i].ps}), Watts{now});
    }
    return out;
  }

  Energies energy{};
  Watts peak, trough;

 private:
  [[nodiscard]] Rates limited(Rates rates, const GpuSpec& gpu) const {
    rates[at(GpuPart::fixed)] = gpu.power->active;
    Rates drawn = clipped(rates, gpu.power_limit);
    const Watts power = sum(drawn);
    if (power < floor_) drawn[at(GpuPart::ballast)] += floor_ - power;
    return drawn;
  }

  Watts floor_;
  std::uint64_t end_;
  std::vector<Watts> spent_;  ///< mean, by pool
  std::vector<PowerChange> totals_;
};

/// When the optimiser begins: what comes before it, replicas that begin later do later.
StepTime optimiser_begins(const StepReport& report) {
  for (const TimelineSlice& s : report.timeline) {
    if (slice_kinds()[s.kind].name == "optimiser") return s.start;
  }
  return {UINT64_MAX};
}

/// How much later than in the timeline, which is the first group's, a group that begins `begins`
/// late does something: its own passes and messages so much, the sums of gradients as late as those
/// of the last group, without which they are none, and what weights need before and after not at
/// all.
StepTime stagger_delay(const TimelineSlice& s, StepTime begins, StepTime last, StepTime optimiser) {
  if (s.start >= optimiser) return {};
  const std::string_view name = slice_kinds()[s.kind].name;
  if (s.stream == 3) return name == "gather parameters" ? StepTime{} : last;
  return begins;
}

void collect(const Scenario& scenario, const StepPlan& plan, const StepReport& report,
             Collector& collector, std::vector<StagePower>& stages) {
  std::vector<SliceEnergy> energies;
  for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
    energies.emplace_back(scenario, plan, report.timeline, report.actors.size(), pool);
  }
  std::vector<double> weight(plan.stages.size());
  stages.resize(plan.stages.size());
  const StaggerSpec& stagger = scenario.power->smoothing.stagger;
  const int groups = plan.stagger > StepTime{} ? stagger.groups : 1;
  const StepTime optimiser = optimiser_begins(report);
  std::size_t slice = 0;
  for (std::uint32_t a = 0; a < report.actors.size(); ++a) {
    const ActorReport& actor = report.actors[a];
    const StagePlan& done = plan.place(actor.replica, actor.stage);
    const std::size_t first = slice;
    while (slice < report.timeline.size() && report.timeline[slice].actor == a) ++slice;
    const std::span<const TimelineSlice> slices(report.timeline.data() + first, slice - first);
    const auto stage = static_cast<std::size_t>(actor.stage);
    stages[stage].stage = actor.stage;
    for (int g = 0; g < groups; ++g) {
      const StepTime begins{groups > 1 ? plan.stagger.ps * static_cast<std::uint64_t>(g) /
                                             static_cast<std::uint64_t>(groups - 1)
                                       : 0};
      std::vector<RateChange> changes;
      for (const TimelineSlice& s : slices) {
        if (s.end <= s.start) continue;
        const Energies spent = energies[done.pool].of(s, done);
        Rates rates, back;
        for (std::size_t p = 0; p < kGpuParts; ++p) {
          rates[p] = spent[p] / Seconds{SliceEnergy::length(s)};
          back[p] = Watts{} - rates[p];
        }
        const StepTime late = stagger_delay(s, begins, plan.stagger, optimiser);
        changes.push_back({(s.start + late).ps, rates});
        changes.push_back({(s.end + late).ps, back});
      }
      const double copies = static_cast<double>(actor.copies) / groups;
      const StagePower one = collector.add(changes, copies * plan.placement.tensor, done.pool,
                                           scenario.node_of(done.pool).gpu);
      stages[stage].mean += copies * one.mean;
      stages[stage].peak = std::max(stages[stage].peak, one.peak);
      weight[stage] += copies;
    }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].mean = stages[s].mean / std::max(1.0, weight[s]);
  }
}

using PowerPools = std::vector<PowerPool>;

PowerPools power_pools(const Scenario& s, const StepReport& report) {
  if (s.pools.empty()) {
    return {{s.node, static_cast<double>(s.nodes), static_cast<double>(s.gpus())}};
  }
  PowerPools out;
  for (std::size_t i = 0; i < s.pools.size(); ++i) {
    out.push_back({s.pools[i].node, static_cast<double>(s.pools[i].nodes),
                   static_cast<double>(report.pools[i].gpus)});
  }
  return out;
}

double nodes_of(const PowerPools& pools) {
  double sum = 0;
  for (const PowerPool& pool : pools) sum += pool.nodes;
  return sum;
}
double gpus_of(const PowerPools& pools) {
  double sum = 0;
  for (const PowerPool& pool : pools) sum += pool.gpus;
  return sum;
}

Watts unused_power(const PowerPools& pools) {
  Watts all;
  for (const PowerPool& pool : pools) all += pool.unused();
  return all;
}

NodePower operator*(double share, const NodePower& n) {
  return {share * n.gpus,  share * n.cpus, share * n.memory,          share * n.drives,
          share * n.board, share * n.nics, share * n.nvlink_switches, share * n.fans,
          share * n.supply};
}
NodePower& operator+=(NodePower& sum, const NodePower& n) {
  sum.gpus += n.gpus;
  sum.cpus += n.cpus;
  sum.memory += n.memory;
  sum.drives += n.drives;
  sum.board += n.board;
  sum.nics += n.nics;
  sum.nvlink_switches += n.nvlink_switches;
  sum.fans += n.fans;
  sum.supply += n.supply;
  return sum;
}

/// Everything but the GPUs, with nodes at the mean power of their GPUs.
struct Surroundings {
  NodePower node;            ///< the mean one
  std::vector<Watts> kinds;  ///< of a node (AC), by pool
  FabricPower fabric;
  double pue = 1;
  Watts it;  ///< at the mean
};
/// `gpus`: what those of all nodes of a pool draw together.
Surroundings surroundings(const Scenario& s, const PowerPools& pools, BytesPerSecond ports,
                          const std::vector<Watts>& gpus, bool busy) {
  Surroundings out;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const NodePower node = node_power(pools[i].node, gpus[i] / pools[i].nodes, busy);
    out.node += pools[i].nodes / nodes_of(pools) * node;
    out.kinds.push_back(node.ac());
    out.it += pools[i].nodes * node.ac();
  }
  out.fabric = fabric_power(s.power->facility, ports);
  out.pue = power_usage_effectiveness(s.power->facility, s.power->outside_celsius);
  out.it += out.fabric.total();
  return out;
}

/// While each GPU of the job draws what `gpu` says of its kind.
template <class GpuWatts>
PowerLevel level(const Scenario& s, const PowerPools& pools, BytesPerSecond ports, GpuWatts gpu,
                 bool busy) {
  std::vector<Watts> gpus;
  Watts mean;
  for (const PowerPool& pool : pools) {
    const Watts each = gpu(pool.node.gpu);
    mean += pool.gpus / gpus_of(pools) * each;
    gpus.push_back(pool.gpus * each + pool.unused());
  }
  const Surroundings around = surroundings(s, pools, ports, gpus, busy);
  return {mean, around.node.ac(), around.pue * around.it};
}

void add_shares(double nodes, Watts unused, const Energies& gpus, StepPower& out) {
  const Seconds step{out.step_s};
  constexpr std::array<std::string_view, kGpuParts> kNames{"gpu_fixed", "gpu_tensor", "gpu_hbm",
                                                           "gpu_link", "gpu_ballast"};
  for (std::size_t p = 0; p < kGpuParts; ++p) out.shares.push_back({kNames[p], gpus[p]});
  const NodePower& n = out.node_parts;
  const auto add = [&](std::string_view name, Watts of_all) {
    out.shares.push_back({name, of_all * step});
  };
  add("gpu_unused", unused);
  add("cpus", nodes * n.cpus);
  add("memory", nodes * n.memory);
  add("drives", nodes * n.drives);
  add("boards", nodes * n.board);
  add("nics", nodes * n.nics);
  add("nvlink_switches", nodes * n.nvlink_switches);
  add("fans", nodes * n.fans);
  add("power_supplies", nodes * n.supply);
  add("switches", out.fabric.switches);
  add("optics", out.fabric.optics);
  add("cooling_and_distribution", out.overhead);
}

/// The GPUs' mean, behind the smoothing, by pool; and AC over DC of the power that they draw.
struct SuppliedPools {
  std::vector<Watts> gpus;
  double supply = 0;
};
/// What smoothing takes is shared out as the pools draw.
SuppliedPools supplied(const PowerPools& pools, const std::vector<Watts>& means, Watts all_gpus) {
  SuppliedPools out;
  Watts drawn;
  for (std::size_t i = 0; i < pools.size(); ++i) drawn += means[i] + pools[i].unused();
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const double share = (means[i] + pools[i].unused()) / drawn;
    out.gpus.push_back(share * all_gpus);
    out.supply += share * (1 / pools[i].node.chassis->supply_efficiency);
  }
  return out;
}

PowerLevels levels_of(const Scenario& s, const PowerPools& pools, BytesPerSecond ports,
                      const StepPower& power) {
  const auto at_level = [&](auto gpu, bool busy) { return level(s, pools, ports, gpu, busy); };
  const auto waiting = [&](const GpuSpec& gpu) {
    return std::max(gpu.power->active, s.power->smoothing.floor);
  };
  return {.training = {power.gpu_mean, mean_power(power.node), mean_power(power.facility)},
          .waiting = at_level(waiting, true),
          .starting = at_level([](const GpuSpec& gpu) { return gpu.power->awake; }, true),
          .idle = at_level([](const GpuSpec& gpu) { return gpu.power_idle; }, false)};
}

/// What meters read, and what is held of machines.
void add_readings(const PowerSpec& spec, double gpus, double nodes, BytesPerSecond ports,
                  StepPower& out) {
  out.node_meter = metered(out.node, spec.meter);
  out.facility_meter = metered(out.facility, spec.meter);
  out.site_peak = out.facility_meter.high;
  out.ramp_w_per_s = steepest_ramp(out.facility, spec.ramp_window);
  out.holdings = {.gpus = gpus,
                  .nodes = nodes,
                  .ports_100g = ports / gigabits_per_second(100),
                  .facility_peak = peak_power(out.facility)};
  out.gpu_nameplate = gpus * spec.gpu_nameplate;
  if (out.held_ramp) out.ramp_w_per_s = out.supply * *out.held_ramp;
  if (spec.site_limit) {
    // Held to what the limit is held to, or as many nodes as exceed it would fit under it.
    out.site_nodes = nodes_under(*spec.site_limit, out.facility_meter.high / nodes);
  }
}

/// Of a step that is held to slow ramps.
GpuDraw held_draw(const Scenario& s, const StepPlan& plan, const StepReport& report) {
  StepReport asked = report;
  asked.step_s = report.ramps->asked_s;
  const HeldRamps held = hold_ramps(s, plan, asked, report.ramps->asked);
  GpuDraw out;
  out.step_s = report.step_s;
  out.step_if_hidden = Seconds{report.ramps->asked_s};
  out.pools.resize(s.pool_count());
  out.stages.resize(plan.stages.size());
  std::vector<double> weight(plan.stages.size());
  for (std::size_t a = 0; a < report.actors.size(); ++a) {
    const ActorReport& actor = report.actors[a];
    const HeldCard& card = held.cards[a];
    const double gpus = static_cast<double>(actor.copies) * plan.placement.tensor;
    const Watts mean = card.energy / Seconds{out.step_s};
    for (std::size_t p = 0; p < kGpuParts; ++p) out.energy[p] += gpus * card.parts[p];
    out.pools[plan.place(actor.replica, actor.stage).pool] += gpus * mean;
    const auto at_stage = static_cast<std::size_t>(actor.stage);
    StagePower& stage = out.stages[at_stage];
    stage.stage = actor.stage;
    stage.mean += actor.copies * mean;
    stage.peak = std::max(stage.peak, card.peak);
    weight[at_stage] += actor.copies;
    out.peak = std::max(out.peak, card.peak);
    out.trough = a == 0 ? card.trough : std::min(out.trough, card.trough);
  }
  for (std::size_t i = 0; i < out.stages.size(); ++i) {
    out.stages[i].mean = out.stages[i].mean / std::max(1.0, weight[i]);
  }
  const Seconds window = s.power->ramp_window;
  out.held_ramp = steepest_ramp(held.series, window);
  constexpr double kStairs = 64;  // in a window
  const Watts unused = unused_power(power_pools(s, report));
  out.series = scaled(in_stairs(held.series, Seconds{window / kStairs}), unused, 1);
  return out;
}

GpuDraw draw_of_plan(const Scenario& s, const StepPlan& plan, const StepReport& report) {
  assert(s.power && s.node.gpu.power);
  assert(!report.timeline.empty() && !report.actors.empty());
  if (report.ramps) return held_draw(s, plan, report);
  GpuDraw out;
  out.step_s = report.step_s;
  Collector collector(s, report.step_s);
  collect(s, plan, report, collector, out.stages);
  out.peak = collector.peak;
  out.trough = collector.trough;
  out.energy = collector.energy;
  out.series = collector.series(unused_power(power_pools(s, report)));
  for (std::size_t i = 0; i < s.pool_count(); ++i) out.pools.push_back(collector.mean_of(i));
  return out;
}

/// Of the scenario's own fabric; none of a single node.
BytesPerSecond ports_of_plan(const Scenario& s, const StepPlan& plan) {
  return s.nodes < 2 ? BytesPerSecond{} : switch_ports(own_fabric(s, plan));
}

}  // namespace

GpuDraw gpu_draw(const Scenario& s, const StepReport& report) {
  return draw_of_plan(s, plan_step(s), report);
}

ByGpuPart<Watts> forward_draw(const Scenario& s, Seconds time) {
  assert(s.power && s.node.gpu.power && s.pools.empty() && time > Seconds{});
  const StepPlan plan = plan_step(s);
  const SliceEnergy energies(s, plan, {}, 0, 0);
  const GpuSpec& gpu = s.node.gpu;
  Rates mean{};
  mean[at(GpuPart::fixed)] = gpu.power->active;
  for (const StagePlan& stage : plan.stages) {
    const Seconds pass = to_seconds(stage.forward);
    if (pass <= Seconds{}) continue;
    const Energies spent = energies.forward(stage);
    Rates asked{};
    for (std::size_t p = 0; p < kGpuParts; ++p) asked[p] = spent[p] / pass;
    asked[at(GpuPart::fixed)] = gpu.power->active;
    asked = clipped(asked, gpu.power_limit);
    Bytes gathered;
    for (const DataCollective& c : stage.collectives) {
      const CollectiveCost& cost = stage.channels[c.channel].cost;
      const bool gathers =
          s.job.parallelism.sharding == Sharding::zero3 && c.op == CollectiveOp::all_gather;
      if (gathers) gathered += (cost.nvlink_coefficient + cost.network_coefficient) * c.payload;
    }
    // Gathered again for the backward pass, unless weights are kept.
    const Energies moved = energies.transfer((s.job.parallelism.reshard ? 0.5 : 1.0) * gathered);
    const double busy = plan.micro_batches * pass / time;
    const double share = 1.0 / static_cast<double>(plan.stages.size());
    for (std::size_t p = 1; p < kGpuParts; ++p) {
      mean[p] += share * (busy * asked[p] + moved[p] / time);
    }
  }
  return clipped(mean, gpu.power_limit);
}

StepPower site_power(const Scenario& s, GpuDraw drawn, const PowerPools& pools,
                     BytesPerSecond ports) {
  assert(s.power && s.node.chassis);
  const PowerSpec& spec = *s.power;
  const double gpus = gpus_of(pools), nodes = nodes_of(pools);
  const Watts unused = unused_power(pools);
  StepPower out;
  out.step_s = drawn.step_s;
  out.held_ramp = drawn.held_ramp;
  out.step_if_hidden = drawn.step_if_hidden;
  out.stages = std::move(drawn.stages);
  out.gpu_peak = drawn.peak;
  out.gpu_trough = drawn.trough;
  out.gpus = smoothed(drawn.series, gpus * spec.smoothing.capacitor);
  const Watts all_gpus = mean_power(out.gpus);
  out.gpu_mean = (all_gpus - unused) / gpus;

  const SuppliedPools of = supplied(pools, drawn.pools, all_gpus);
  const Surroundings around = surroundings(s, pools, ports, of.gpus, true);
  out.node_parts = around.node;
  out.fabric = around.fabric;
  out.pue = around.pue;
  out.overhead = (around.pue - 1) * around.it;
  out.node = scaled(out.gpus, around.node.ac() - of.supply * (all_gpus / nodes), of.supply / nodes);
  const Watts rest =
      nodes * around.node.ac() - of.supply * all_gpus + around.fabric.total() + out.overhead;
  out.facility = scaled(out.gpus, rest, of.supply);
  out.supply = of.supply;
  add_shares(nodes, unused, drawn.energy, out);
  for (std::size_t i = 0; !s.pools.empty() && i < pools.size(); ++i) {
    out.pools.push_back(
        {.gpu = (of.gpus[i] - pools[i].unused()) / pools[i].gpus, .node = around.kinds[i]});
  }
  add_readings(spec, gpus, nodes, ports, out);
  out.levels = levels_of(s, pools, ports, out);
  return out;
}

BytesPerSecond own_ports(const Scenario& s) { return ports_of_plan(s, plan_step(s)); }

StepPower step_power(const Scenario& s, const StepReport& report) {
  const StepPlan plan = plan_step(s);
  return site_power(s, draw_of_plan(s, plan, report), power_pools(s, report),
                    ports_of_plan(s, plan));
}

}  // namespace lockstep
