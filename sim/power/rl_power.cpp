#include "sim/power/rl_power.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/power/switch_ports.hpp"
#include "sim/rl/rl_account.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// Changes of power in all updates of an iteration that are looked at one by one.
constexpr double kMostChanges = 1e6;

constexpr auto index_of(RlBucket phase) { return static_cast<std::size_t>(phase); }
constexpr auto index_of(GpuPart part) { return static_cast<std::size_t>(part); }

/// A change of what all GPUs of a pool together draw.
struct PoolChange {
  double at_s, watts;
};

/// Of changes in any order, until `end`.
PowerSeries series_of(std::vector<PoolChange>& changes, Seconds end) {
  std::ranges::stable_sort(changes, {}, &PoolChange::at_s);
  PowerSeries out;
  double now = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now += changes[i].watts;
    const double until = i + 1 < changes.size() ? changes[i + 1].at_s : end.base_units();
    out.add(Seconds{std::max(0.0, until - changes[i].at_s)}, Watts{now});
  }
  return out;
}

/// Both pools' fabric as it is described, or where that does not join them all, as many ports a
/// node as the trainers' has.
BytesPerSecond ports_of_pools(const Scenario& s, int nodes) {
  if (nodes == s.nodes) return own_ports(s);
  FabricSpec whole = s.fabric;
  whole.faults.clear();
  const NicPorts nics = nic_ports(s.node);
  if (!check(whole, nodes, nics.count, nics.bandwidth)) {
    return switch_ports(Fabric(whole, nodes, nics.count, nics.bandwidth));
  }
  return static_cast<double>(nodes) / s.nodes * own_ports(s);
}

/// Books what GPUs do, phase by phase; decoding's parts are one phase.
class IterationPower {
 public:
  IterationPower(const RlScenario& scenario, const RlReport& report)
      : rl_(scenario.rl),
        scenario_(scenario),
        training_(scenario.training),
        report_(report),
        gpu_(scenario.training.node.gpu),
        constants_(*scenario.training.node.gpu.power),
        unused_(PowerPool{training_.node, static_cast<double>(training_.nodes),
                          static_cast<double>(report.training_gpus)}
                    .unused()) {}

  RlPower run() {
    const bool own = report_.generation_gpus > 0;
    const bool in_turn = rl_.schedule == RlSchedule::synchronous;
    if (own) {
      engine_ = generation();
      wait(RlBucket::generation_idle, report_.generation_gpus, engine_);
      if (in_turn) wait(RlBucket::training_idle, report_.training_gpus, trainers_);
    } else {
      for_each_stretch(generation(),
                       [&](Seconds time, Watts level) { trainers_.add(time, level + unused_); });
    }
    offload();
    scores();
    updates(RlBucket::training, training_, report_.update);
    if (rl_.critic) updates(RlBucket::critic_training, *rl_.critic, *report_.critic_update);
    offload();
    if (own && !in_turn) wait(RlBucket::training_idle, report_.training_gpus, trainers_);
    weights();
    return settled(own ? sum_of(trainers_, engine_) : trainers_);
  }

 private:
  using Rates = ByGpuPart<Watts>;

  struct Phase {
    double gpu_seconds = 0;
    Joules gpus;
  };

  template <class Each>
  static void for_each_stretch(const PowerSeries& series, Each each) {
    for (std::size_t i = 0; i < series.size(); ++i) {
      each(series.until(i) - series.start[i], series.power[i]);
    }
  }

  [[nodiscard]] Seconds time_of(RlBucket phase, int gpus) const {
    return Seconds{report_.gpu_seconds[index_of(phase)] / gpus};
  }
  [[nodiscard]] Rates fixed(Watts level) const {
    Rates out{};
    out[index_of(GpuPart::fixed)] = level;
    return out;
  }

  /// So many GPUs draw that for so long, within their limit and above the floor. Returns one's.
  Watts book(RlBucket phase, double gpus, Seconds time, Rates rates) {
    rates = clipped(rates, gpu_.power_limit);
    const Watts floor = training_.power->smoothing.floor;
    if (sum(rates) < floor) rates[index_of(GpuPart::ballast)] += floor - sum(rates);
    const Watts level = sum(rates);
    if (gpus <= 0 || time <= Seconds{}) return level;
    for (std::size_t p = 0; p < kGpuParts; ++p) energy_[p] += gpus * (rates[p] * time);
    Phase& of = phases_[index_of(phase)];
    of.gpu_seconds += gpus * time.base_units();
    of.gpus += gpus * (level * time);
    reach(level, level);
    return level;
  }
  void reach(Watts low, Watts high) {
    peak_ = std::max(peak_, high);
    trough_ = trough_ > Watts{} ? std::min(trough_, low) : low;
  }

  /// All trainers do the same.
  void train(RlBucket phase, Seconds time, const Rates& rates) {
    const Watts level = book(phase, report_.training_gpus, time, rates);
    trainers_.add(time, report_.training_gpus * level + unused_);
  }
  /// A pool waits for the other one.
  void wait(RlBucket phase, int gpus, PowerSeries& track) {
    const Seconds time = time_of(phase, gpus);
    const Watts level = book(phase, gpus, time, fixed(constants_.awake));
    track.add(time, gpus * level + (&track == &trainers_ ? unused_ : Watts{}));
  }

  /// One stretch of a replica; what all of its GPUs draw.
  Watts stretch(const RolloutStretch& of, double gpus) {
    const Seconds time = of.prefill + of.decode;
    Watts level;
    const auto part = [&](RlBucket phase, Seconds takes, const ByGpuPart<Joules>& drawn) {
      if (takes <= Seconds{}) return;
      Rates rates{};
      for (std::size_t p = 0; p < kGpuParts; ++p) rates[p] = drawn[p] / takes;
      level += takes / time * (gpus * book(phase, gpus, takes, rates));
    };
    part(RlBucket::prefill, of.prefill, of.prefill_drawn);
    part(RlBucket::decode_products, of.decode, of.decode_drawn);
    return level;
  }

  /// The GPUs that generate, until the last response.
  PowerSeries generation() {
    const Seconds all = report_.generation;
    const double gpus =
        report_.generation_gpus > 0 ? report_.generation_gpus : report_.training_gpus;
    const double tensor = rl_.generation.tensor;
    std::vector<PoolChange> changes;
    const auto idle_from = [&](Seconds from, double count, Watts before) {
      const Seconds rest = std::max(Seconds{}, all - from);
      const Watts level = book(RlBucket::drain, count, rest, fixed(constants_.awake));
      changes.push_back({from.base_units(), (count * level - before).base_units()});
    };
    for (const std::vector<RolloutStretch>& replica : report_.rollouts) {
      Seconds now;
      Watts before;
      for (const RolloutStretch& of : replica) {
        const Watts level = stretch(of, tensor);
        changes.push_back({now.base_units(), (level - before).base_units()});
        before = level;
        now += of.prefill + of.decode;
      }
      idle_from(now, tensor, before);
    }
    idle_from({}, gpus - tensor * static_cast<double>(report_.rollouts.size()), {});
    return series_of(changes, all);
  }

  /// Half of it goes before training and half after it.
  void offload() {
    const Seconds time = 0.5 * time_of(RlBucket::offload, report_.training_gpus);
    if (time <= Seconds{}) return;
    Rates rates = fixed(constants_.awake);
    rates[index_of(GpuPart::hbm)] = constants_.hbm * training_state(scenario_) / time;
    train(RlBucket::offload, time, rates);
  }

  [[nodiscard]] Scenario with_batch(const Scenario& of) const {
    Scenario out = of;
    out.job.batch = report_.training_batch;
    return out;
  }
  /// Forward passes over every update's part of the batch, so many of each.
  void score(RlBucket phase, const Scenario& model, double passes = 1) {
    const Seconds time = time_of(phase, report_.training_gpus);
    if (time <= Seconds{}) return;
    train(phase, time, forward_draw(with_batch(model), time / (passes * rl_.updates)));
  }
  void scores() {
    train(RlBucket::reward_function, rl_.reward, fixed(constants_.awake));
    if (rl_.reward_model) score(RlBucket::reward_model, *rl_.reward_model);
    score(RlBucket::reference, training_, rl_.reference_passes());
    if (rl_.teacher) score(RlBucket::teacher, *rl_.teacher);
    score(RlBucket::log_probabilities, training_);
    if (rl_.critic) score(RlBucket::values, *rl_.critic);
  }

  void updates(RlBucket phase, const Scenario& model, const StepReport& report) {
    const GpuDraw drawn = gpu_draw(with_batch(model), report);
    const double times = static_cast<double>(rl_.updates) * rl_.epochs;
    Phase& of = phases_[index_of(phase)];
    of.gpu_seconds += times * report.step_s * report_.training_gpus;
    for (std::size_t p = 0; p < kGpuParts; ++p) energy_[p] += times * drawn.energy[p];
    of.gpus += times * sum(drawn.energy);
    reach(drawn.trough, drawn.peak);
    const auto changes = static_cast<double>(drawn.series.size());
    const double shown = std::min(times, std::max(1.0, std::floor(kMostChanges / changes)));
    for (int k = 0; k < static_cast<int>(shown); ++k) {
      for_each_stretch(drawn.series,
                       [&](Seconds time, Watts level) { trainers_.add(time, level); });
    }
    trainers_.add((times - shown) * drawn.series.end, mean_power(drawn.series));
  }

  /// Every GPU that generates gets its part of the model, all wait for it.
  void weights() {
    const Seconds time = report_.weight_sync;
    if (time <= Seconds{}) return;
    const double to = report_.generation_gpus > 0 ? report_.generation_gpus : report_.training_gpus;
    const Bytes sent = to / report_.gpus() * report_.engine_weights;  // by a GPU, on average
    Rates rates = fixed(constants_.active);
    rates[index_of(GpuPart::link)] = constants_.link * sent / time;
    rates[index_of(GpuPart::hbm)] = constants_.hbm * (2 * sent) / time;
    train(RlBucket::weight_sync, time, rates);
    if (report_.generation_gpus == 0) return;
    const Watts level = book(RlBucket::weight_sync, report_.generation_gpus, time, rates);
    engine_.add(time, report_.generation_gpus * level);
  }

  [[nodiscard]] RlPower settled(PowerSeries all) const {
    const int nodes = training_.nodes + rl_.generation.nodes;
    GpuDraw drawn;
    drawn.step_s = report_.step.base_units();
    drawn.series = std::move(all);
    drawn.energy = energy_;
    drawn.peak = peak_;
    drawn.trough = trough_;
    drawn.pools = {sum(energy_) / report_.step};
    RlPower out;
    out.site = site_power(training_, std::move(drawn),
                          {PowerPool{training_.node, static_cast<double>(nodes),
                                     static_cast<double>(report_.gpus())}},
                          ports_of_pools(training_, nodes));
    add_phases(out);
    return out;
  }
  void add_phases(RlPower& out) const {
    double gpu_seconds = 0;
    for (const Phase& of : phases_) gpu_seconds += of.gpu_seconds;
    const Joules rest = out.site.energy() - out.site.supply * sum(energy_);
    for (std::size_t i = 0; i < kRlBuckets; ++i) {
      const Phase& of = phases_[i];
      if (of.gpu_seconds <= 0) continue;
      const bool decodes = i == index_of(RlBucket::decode_products);
      out.phases.push_back(
          {.name = decodes ? "decode" : rl_buckets()[i].name,
           .title = decodes ? "Decode" : rl_buckets()[i].title,
           .gpu_seconds = of.gpu_seconds,
           .gpus = of.gpus,
           .site = out.site.supply * of.gpus + of.gpu_seconds / gpu_seconds * rest});
    }
  }

  const RlSpec& rl_;
  const RlScenario& scenario_;
  const Scenario& training_;
  const RlReport& report_;
  const GpuSpec& gpu_;
  const GpuPowerConstants& constants_;
  Watts unused_;  ///< of GPUs of the trainers' nodes that the job leaves alone
  std::array<Phase, kRlBuckets> phases_{};
  ByGpuPart<Joules> energy_{};
  Watts peak_, trough_;
  PowerSeries trainers_, engine_;  ///< the latter where the engine has nodes of its own
};

}  // namespace

RlPower rl_power(const RlScenario& scenario, const RlReport& report) {
  assert(scenario.training.power && scenario.training.node.gpu.power);
  return IterationPower{scenario, report}.run();
}

}  // namespace lockstep
