#include "sim/step/step.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "sim/step/critical_path.hpp"
#include "sim/step/link_holds.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/power_ramp.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/sample.hpp"
#include "sim/step/site.hpp"
#include "sim/step/timeline.hpp"
#include "sim/step/unseen_traffic.hpp"
#include "sim/step/use_in_step.hpp"

namespace lockstep {
namespace {

double& at(BucketTimes& times, Bucket bucket) { return times[static_cast<std::size_t>(bucket)]; }
double seconds(StepTime t) { return to_seconds(t).base_units(); }

/// Waiting inside layers, by Axis.
constexpr std::array<Bucket, kAxes> kExposed{Bucket::tensor_exposed, Bucket::context_exposed,
                                             Bucket::expert_exposed, Bucket::expert_exposed};

/// An actor's ticks as buckets. Its compute and its exchanges inside layers are split as the
/// plan's; the ticks stay exact.
BucketTimes bucket_times(const StagePlan& stage, const ActorTimes& t) {
  BucketTimes times = stage.compute;
  double planned = 0;
  for (const double s : times) planned += s;
  for (double& s : times) s *= planned > 0 ? seconds(t.compute) / planned : 0;
  double exchanged = 0;
  for (const double s : stage.exchange) exchanged += s;
  for (std::size_t a = 0; a < kAxes && exchanged > 0; ++a) {
    at(times, kExposed[a]) += seconds(t.tensor) * (stage.exchange[a] / exchanged);
  }
  for (std::size_t a = 0; a < kAxes; ++a) at(times, kExposed[a]) += seconds(t.layer[a]);
  at(times, Bucket::pipeline_bubble) += seconds(t.bubble);
  at(times, Bucket::pipeline_exposed) += seconds(t.message);
  at(times, Bucket::data_exposed) += seconds(t.data);
  at(times, Bucket::straggler) += seconds(t.slow + t.straggler);
  at(times, Bucket::optimiser) += seconds(t.optimiser);
  at(times, Bucket::launch) += seconds(t.overhead);
  return times;
}

void add_actors(const StepPlan& plan, const std::vector<ReplicaClass>& classes,
                const ReplayResult& result, bool keep, StepReport& report) {
  const std::size_t stages = plan.stages.size();
  const double gpus = static_cast<double>(plan.placement.data) * static_cast<double>(stages);
  for (std::size_t a = 0; a < result.actors.size(); ++a) {
    const ReplicaClass& c = classes[a / stages];
    const std::size_t stage = a % stages;
    const BucketTimes times = bucket_times(result.plan_of(plan, a), result.actors[a]);
    for (std::size_t b = 0; b < kBuckets; ++b) {
      report.seconds[b] += times[b] * c.copies / gpus;
      report.stages[stage].seconds[b] += times[b] * c.copies / plan.placement.data;
    }
    if (keep) {
      report.actors.push_back({.stage = static_cast<int>(stage),
                               .replica = c.representative,
                               .copies = c.copies,
                               .seconds = times,
                               .finished = result.actors[a].finished});
    }
  }
}

/// Waiting that a step without slow GPUs does not have is the slow GPUs' doing.
void blame_stragglers(const BucketTimes& healthy, BucketTimes& times) {
  for (const Bucket bucket :
       {Bucket::pipeline_bubble, Bucket::pipeline_exposed, Bucket::data_exposed}) {
    const double excess = at(times, bucket) - healthy[static_cast<std::size_t>(bucket)];
    if (excess <= 0) continue;
    at(times, bucket) -= excess;
    at(times, Bucket::straggler) += excess;
  }
}

/// Adds a stage of a replica class to the pool that it runs on; divided by the places later.
void add_place(const StepPlan& plan, const ReplayResult& result, std::size_t actor, int copies,
               bool first_of_replica, PoolReport& pool) {
  const StagePlan& stage = result.plan_of(plan, actor);
  const ActorTimes& t = result.actors[actor];
  const BucketTimes times = bucket_times(stage, t);
  for (std::size_t b = 0; b < kBuckets; ++b) pool.seconds[b] += times[b] * copies;
  pool.waiting_s += copies * seconds(t.bubble + t.message + t.data + t.straggler);
  const bool first = pool.replicas == 0;
  if (first_of_replica) pool.replicas += copies;
  pool.first_stage = first ? stage.stage : std::min(pool.first_stage, stage.stage);
  pool.last_stage = std::max(pool.last_stage, stage.stage);
  const int micro_batches = stage.micro_batches;
  pool.fewest_micro_batches =
      first ? micro_batches : std::min(pool.fewest_micro_batches, micro_batches);
  pool.most_micro_batches = std::max(pool.most_micro_batches, micro_batches);
}

/// FLOP/s of a GPU of the job, at the mean.
double mean_peak(const Scenario& s) {
  const auto peak = [&](std::size_t pool) {
    return s.node_of(pool).gpu.peak(s.job.precision).base_units();
  };
  if (s.pools.empty()) return peak(0);
  double sum = 0;
  for (std::size_t i = 0; i < s.pools.size(); ++i) {
    sum += static_cast<double>(s.pools[i].nodes) * s.pools[i].node.gpus * peak(i);
  }
  return sum / s.gpus();
}

void add_rates(const Scenario& s, StepReport& report) {
  const StepFlops flops = step_flops(s.job, s.stack.attention);
  const double gpus = s.gpus();
  report.model_flops_causal = flops.causal.base_units();
  report.model_flops_full = flops.full.base_units();
  report.hardware_flops = flops.hardware.base_units();
  report.peak_flops_per_gpu = mean_peak(s);
  const double capacity = report.step_s * gpus * report.peak_flops_per_gpu;
  report.mfu_causal = report.model_flops_causal / capacity;
  report.mfu_full = report.model_flops_full / capacity;
  report.hfu = report.hardware_flops / capacity;
  report.tflops_per_gpu_causal = report.model_flops_causal / report.step_s / gpus * 1e-12;
  report.tflops_per_gpu_full = report.model_flops_full / report.step_s / gpus * 1e-12;
  report.tokens_per_step = static_cast<double>(s.job.batch.sequences) * s.job.batch.tokens;
  report.tokens_per_s = report.tokens_per_step / report.step_s;
  report.tokens_per_s_per_gpu = report.tokens_per_s / gpus;
}

void add_stages(const Scenario& s, const StepPlan& plan, StepReport& report) {
  const std::vector<MemoryBreakdown> memory = stage_memories(s);
  for (const StagePlan& stage : plan.stages) {
    StageReport r{.stage = stage.stage,
                  .forward_s = seconds(stage.forward),
                  .backward_s = seconds(stage.backward),
                  .memory = memory[static_cast<std::size_t>(stage.stage)]};
    for (const std::vector<StagePlan>& variant : plan.further_variants) {
      const StagePlan& other = variant[static_cast<std::size_t>(stage.stage)];
      r.forward_s = std::max(r.forward_s, seconds(other.forward));
      r.backward_s = std::max(r.backward_s, seconds(other.backward));
    }
    for (const int layers : stage.layers) r.layers += layers;
    if (report.stages.empty() || r.memory.total() > report.peak_memory.total()) {
      report.peak_memory = r.memory;
      report.peak_memory_stage = stage.stage;
    }
    report.stages.push_back(r);
  }
}

void add_pools(const Scenario& s, const StepPlan& plan, const std::vector<ReplicaClass>& classes,
               const ReplayResult& result, StepReport& report) {
  if (s.pools.empty()) return;
  const std::size_t stages = plan.stages.size();
  const int lanes = s.job.parallelism.tensor * s.job.parallelism.context;
  report.pools.resize(s.pools.size());
  for (std::size_t c = 0; c < classes.size(); ++c) {
    std::set<std::uint32_t> here;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      const std::size_t actor = c * stages + stage;
      const std::uint32_t number = result.plan_of(plan, actor).pool;
      PoolReport& pool = report.pools[number];
      add_place(plan, result, actor, classes[c].copies, here.insert(number).second, pool);
      pool.gpus += classes[c].copies * lanes;
    }
  }
  for (std::size_t i = 0; i < report.pools.size(); ++i) {
    PoolReport& pool = report.pools[i];
    const double places = static_cast<double>(pool.gpus) / lanes;
    for (double& time : pool.seconds) time /= places;
    pool.waiting_s /= places;
    pool.peak_flops_per_gpu = s.pools[i].node.gpu.peak(s.job.precision).base_units();
    if (pool.waiting_s < report.pools[report.pacing_pool].waiting_s) report.pacing_pool = i;
  }
}

/// Above so many passes nobody asks for the critical path of each.
constexpr std::uint64_t kMostRecorded = 4'000'000;

/// What one replay of these replicas runs.
std::uint64_t passes_of(const StepPlan& plan, const std::vector<ReplicaClass>& classes) {
  std::uint64_t passes = 0;
  for (const ReplicaClass& c : classes) {
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      passes += plan.stage_of(c.variant, s).items.size();
    }
  }
  return passes;
}

Recording recording_of(const StepPlan& plan, std::size_t replicas, const StepOptions& options) {
  std::uint64_t passes = 0;
  for (const StagePlan& stage : plan.stages) passes += stage.items.size();
  if (options.record_timeline) return Recording::all;
  if (options.only_time || options.folding == Folding::unfolded) return Recording::none;
  return passes * replicas <= kMostRecorded ? Recording::passes : Recording::none;
}

/// A step that was replayed, and for whom.
struct Replayed {
  ReplicaClasses replicas;
  ReplayResult result;
  bool exact = true;
  bool recorded = false;
  std::vector<TrafficHold> holds;     ///< where asked for
  std::vector<TrafficBytes> traffic;  ///< with `use`
  std::vector<LinkRates> link_rates;  ///< where asked for
  std::optional<FabricUse> use;       ///< where asked for
};

/// A job's plan and fabric, for one replay or several.
class JobReplay {
 public:
  JobReplay(const Scenario& scenario, const StepOptions& options)
      : scenario_(scenario),
        options_(options),
        plan_(plan_step(scenario)),
        fabric_(own_fabric(scenario, plan_)),
        data_routes_(plan_, fabric_) {}

  [[nodiscard]] const StepPlan& plan() const { return plan_; }
  [[nodiscard]] DataRoutes& data_routes() const { return data_routes_; }

  /// So many replays of these replicas are all that is left to do, as it now seems.
  void expect(std::uint64_t replays, const std::vector<ReplicaClass>& classes) const {
    if (!options_.progress) return;
    passes_expected_ = passes_done_ + replays * passes_of(plan_, classes);
    options_.progress(passes_done_, passes_expected_);
  }

  [[nodiscard]] Replayed replay(ReplicaClasses replicas, Recording recording,
                                std::vector<double> crowd = {}) const {
    FlowNetwork network;
    FabricLinks links{fabric_, network, scenario_.transport.efficiency,
                      nic_shares(scenario_, fabric_)};
    const Site site{.links = &links, .nodes = {}, .data_routes = &data_routes_};
    const Wiring wiring{scenario_, plan_, replicas.classes, site, replicas.links, std::move(crowd)};
    std::optional<LinkHolds> holds;
    const bool records = recording != Recording::none;
    const bool rates = records && options_.link_rates;
    if (options_.explain_links || options_.draw_fabric || rates)
      network.observe(&holds.emplace(wiring, fabric_, rates));
    ReplayResult result = lockstep::replay(plan_, replicas.classes, wiring, recording,
                                           options_.jitter, passes_done());
    passes_done_ += result.items_run;
    std::optional<FabricUse> use;
    if (options_.draw_fabric) {
      use = use_in_step(scenario_, plan_, links, wiring, to_seconds(result.end));
    }
    return {std::move(replicas),
            std::move(result),
            wiring.exact(),
            records,
            options_.explain_links ? holds->report() : std::vector<TrafficHold>{},
            options_.draw_fabric ? holds->bytes() : std::vector<TrafficBytes>{},
            rates ? holds->rates() : std::vector<LinkRates>{},
            std::move(use)};
  }
  [[nodiscard]] Replayed replay(ReplicaClasses replicas) const {
    const Recording recording = recording_of(plan_, replicas.classes.size(), options_);
    return replay(std::move(replicas), recording);
  }

 private:
  /// What a replay tells, as part of all that there are; nothing where nobody asks.
  [[nodiscard]] PassesDone passes_done() const {
    if (!options_.progress) return {};
    return [this](std::uint64_t passes) {
      options_.progress(passes_done_ + passes, passes_expected_);
    };
  }

  const Scenario& scenario_;
  const StepOptions& options_;
  StepPlan plan_;
  Fabric fabric_;
  mutable DataRoutes data_routes_;  ///< finds each route when it is first asked for
  mutable std::uint64_t passes_done_ = 0, passes_expected_ = 0;  ///< of all its replays
};

Scenario without_stragglers(const Scenario& scenario) {
  Scenario healthy = scenario;
  healthy.stragglers.clear();
  if (healthy.power) healthy.power->smoothing.ramp_w_per_s = 0;
  return healthy;
}

/// Everything but how sure it is.
StepReport report_of(const Scenario& scenario, const StepOptions& options, const StepPlan& plan,
                     const Replayed& step) {
  const std::vector<ReplicaClass>& classes = step.replicas.classes;
  const ReplayResult& result = step.result;
  StepReport report;
  report.replicas = static_cast<std::uint64_t>(plan.placement.data);
  report.replicas_simulated = classes.size();
  report.folded = report.replicas_simulated < report.replicas || report.replicas == 1;
  report.step_s = seconds(result.end);
  report.actors_simulated = result.actors.size();
  report.items = result.items_run;
  report.flows = result.flows;
  report.events = result.events;
  add_stages(scenario, plan, report);
  add_actors(plan, classes, result, options.keep_actors || report.folded, report);
  if (!scenario.stragglers.empty() && !options.only_time) {
    StepOptions healthy = options;
    healthy.record_timeline = healthy.keep_actors = healthy.draw_fabric = healthy.link_rates =
        false;
    blame_stragglers(simulate_step(without_stragglers(scenario), healthy).seconds, report.seconds);
  }
  add_pools(scenario, plan, classes, result, report);
  add_rates(scenario, report);
  if (step.recorded) {
    CriticalPath path = critical_path(plan, result);
    if (options.record_timeline) report.timeline = timeline(plan, result, path);
    report.critical_path = std::move(path.parts);
  }
  report.holds = step.holds;
  report.traffic = step.traffic;
  report.link_rates = step.link_rates;
  report.use = step.use;
  report.notes = unseen_traffic(scenario, plan);
  return report;
}

void add_method_note(StepReport& report) {
  const std::string words = method_words(report.method, report.band);
  if (!words.empty()) report.notes.push_back(words);
}

/// Half of a band's width over the step, above which the sample doubles.
constexpr double kWideBand = 0.03;
/// The most that narrowing a band may cost, in budgets.
constexpr double kNarrowing = 8;

/// A sample, replayed as if the others sent nothing and as if they always sent.
struct Bracket {
  ReplicaSample sample;
  StepBand band;
  [[nodiscard]] bool wide() const {
    return band.high_s - band.low_s > kWideBand * (band.high_s + band.low_s);
  }
};

Bracket bracket(const Scenario& scenario, const JobReplay& job, std::size_t size) {
  Bracket out{sample_of_replicas(scenario, job.data_routes(), size), {}};
  const auto end = [&](double share) {
    const std::vector<double> crowd = out.sample.crowded(share);
    return seconds(job.replay({out.sample.classes, {}}, Recording::none, crowd).result.end);
  };
  job.expect(static_cast<std::uint64_t>(kSampleReplays), out.sample.classes);
  const double alone = end(0), crowded = end(1);
  out.band = {.low_s = std::min(alone, crowded) * (1 - kBandMargin),
              .high_s = std::max(alone, crowded) * (1 + kBandMargin)};
  return out;
}

/// The answer is that of the sample with the others sending half of the time.
StepReport report_of_sample(const Scenario& scenario, const StepOptions& options,
                            const JobReplay& job, const Bracket& bracket) {
  constexpr double kHalf = 0.5;
  const ReplicaSample& sample = bracket.sample;
  Replayed middle =
      job.replay({sample.classes, {}}, recording_of(job.plan(), sample.classes.size(), options),
                 sample.crowded(kHalf));
  for (std::size_t c = 0; c < sample.classes.size(); ++c) {
    middle.replicas.classes[c].copies = sample.stands_for[c];
  }
  StepReport report = report_of(scenario, options, job.plan(), middle);
  report.method = StepMethod::sampled;
  report.band = {.low_s = std::min(bracket.band.low_s, report.step_s),
                 .high_s = std::max(bracket.band.high_s, report.step_s)};
  add_method_note(report);
  return report;
}

StepReport report_of_all(const Scenario& scenario, const StepOptions& options, const JobReplay& job,
                         ReplicaClasses replicas) {
  job.expect(1, replicas.classes);
  const Replayed step = job.replay(std::move(replicas));
  StepReport report = report_of(scenario, options, job.plan(), step);
  report.method = step.exact ? StepMethod::exact : StepMethod::folded;
  if (step.exact) report.band = {.low_s = report.step_s, .high_s = report.step_s};
  add_method_note(report);
  return report;
}

/// Within the budget all replicas. Above it a sample, which doubles while its band is wide and
/// that is worth its cost; all of them where that comes to the same.
StepReport simulate(const Scenario& scenario, const StepOptions& options) {
  const JobReplay job(scenario, options);
  const Folding folding =
      options.folding == Folding::automatic ? scenario.folding : options.folding;
  const bool differ = options.jitter > Seconds{} && folding == Folding::automatic;
  ReplicaClasses replicas =
      classes_of_replicas(scenario, job.data_routes(), differ ? Folding::unfolded : folding);
  const double events = step_events(job.plan(), replicas.classes);
  const std::size_t classes = replicas.classes.size();
  const double each = events / static_cast<double>(classes);
  if (folding == Folding::automatic && events > options.budget) {
    std::size_t size = first_sample(options.budget, each);
    while (size < classes) {
      const Bracket found = bracket(scenario, job, size);
      const double next = std::min(2 * kSampleReplays * static_cast<double>(size) * each, events);
      if (!found.wide() || next > kNarrowing * options.budget) {
        return report_of_sample(scenario, options, job, found);
      }
      size *= 2;
    }
  }
  return report_of_all(scenario, options, job, std::move(replicas));
}

/// A step that is late by that, its cards' clocks behind their power.
void add_late(const Scenario& scenario, const HeldRamps& held, StepReport& report) {
  const double asked = report.step_s;
  const auto when = [&](StepTime& t) { t = held.when(t); };
  StepTime end = to_step_time(Seconds{asked});
  when(end);
  report.step_s = seconds(end);
  const double late = report.step_s - asked;
  for (TimelineSlice& s : report.timeline) {
    when(s.start);
    when(s.end);
  }
  for (LinkRates& rates : report.link_rates) std::ranges::for_each(rates.at, when);
  const auto slow = [&](BucketTimes& times) { at(times, Bucket::kernel_inefficiency) += late; };
  slow(report.seconds);
  for (StageReport& stage : report.stages) slow(stage.seconds);
  for (PoolReport& pool : report.pools) slow(pool.seconds);
  for (ActorReport& actor : report.actors) {
    slow(actor.seconds);
    when(actor.finished);
  }
  for (CriticalPathPart& part : report.critical_path) part.share *= asked / report.step_s;
  if (!report.critical_path.empty()) {
    report.critical_path.push_back({"clocks behind slow power", late, late / report.step_s});
    std::ranges::stable_sort(report.critical_path, std::ranges::greater{},
                             &CriticalPathPart::seconds);
  }
  if (report.band) report.band = StepBand{report.band->low_s, report.band->high_s + late};
  add_rates(scenario, report);
}

/// A step with bounded ramps of power: simulated without, and then held to them.
StepReport with_ramps(const Scenario& scenario, const StepOptions& options) {
  StepOptions recorded = options;
  recorded.record_timeline = recorded.keep_actors = true;
  recorded.only_time = false;
  StepReport report = simulate(scenario, recorded);
  const StepPlan plan = plan_step(scenario);
  const HeldRamps held = hold_ramps(scenario, plan, report, report.timeline);
  // Below a tick nothing has changed.
  if (to_step_time(Seconds{held.late_s}) > StepTime{}) {
    report.ramps = RampReport{report.step_s, {}};
    if (options.record_timeline) report.ramps->asked = report.timeline;
    add_late(scenario, held, report);
    report.notes.push_back(
        fmt::format("power.smoothing.ramp_w_per_s: a step takes from {:.4g} s, if all of the wait "
                    "is hidden, to {:.4g} s, if none is, which is reckoned with",
                    report.ramps->asked_s, report.step_s));
  }
  if (!options.record_timeline) report.timeline.clear();
  if (!options.keep_actors && !report.folded) report.actors.clear();
  return report;
}

bool bounds_ramps(const Scenario& scenario) {
  return scenario.power && scenario.power->smoothing.ramp_w_per_s > 0;
}

}  // namespace

StepReport simulate_step(const Scenario& scenario, const StepOptions& options) {
  try {
    return bounds_ramps(scenario) ? with_ramps(scenario, options) : simulate(scenario, options);
  } catch (const ClockOverflow& overflow) {
    throw InputError({.file = scenario.file,
                      .pointer = "/batch",
                      .found = overflow.what(),
                      .allowed = "a smaller batch, or faster GPUs and links",
                      .nearest = {}});
  }
}

}  // namespace lockstep
