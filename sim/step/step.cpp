#include "sim/step/step.hpp"

#include <algorithm>
#include <array>

#include "models/workload/flops.hpp"
#include "sim/step/critical_path.hpp"
#include "sim/step/replay.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/timeline.hpp"

namespace lockstep {
namespace {

double& at(BucketTimes& times, Bucket bucket) { return times[static_cast<std::size_t>(bucket)]; }
double seconds(StepTime t) { return to_seconds(t).base_units(); }

/// Waiting inside layers, by Axis.
constexpr std::array<Bucket, kAxes> kExposed{Bucket::tensor_exposed, Bucket::context_exposed,
                                             Bucket::expert_exposed};

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
    const BucketTimes times = bucket_times(plan.stages[stage], result.actors[a]);
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

void add_rates(const Scenario& s, StepReport& report) {
  const StepFlops flops = step_flops(s.job);
  const double gpus = s.gpus();
  report.model_flops_causal = flops.causal.base_units();
  report.model_flops_full = flops.full.base_units();
  report.hardware_flops = flops.hardware.base_units();
  report.peak_flops_per_gpu = s.node.gpu.peak(s.job.precision).base_units();
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
  for (const StagePlan& stage : plan.stages) {
    StageReport r{.stage = stage.stage,
                  .forward_s = seconds(stage.forward),
                  .backward_s = seconds(stage.backward),
                  .memory = peak_memory(s.job, s.stack, stage.stage)};
    for (const int layers : stage.layers) r.layers += layers;
    if (report.stages.empty() || r.memory.total() > report.peak_memory.total()) {
      report.peak_memory = r.memory;
      report.peak_memory_stage = stage.stage;
    }
    report.stages.push_back(r);
  }
}

Scenario without_stragglers(const Scenario& scenario) {
  Scenario healthy = scenario;
  healthy.stragglers.clear();
  return healthy;
}

}  // namespace

StepReport simulate_step(const Scenario& scenario, const StepOptions& options) {
  const StepPlan plan = plan_step(scenario);
  const Fabric fabric = own_fabric(scenario, plan);
  const Folding folding = fold_replicas(scenario, plan, fabric, options.unfold);
  const std::vector<ReplicaClass>& classes = folding.classes;
  FlowNetwork network;
  FabricLinks links{fabric, network};
  const Wiring wiring{scenario, plan, classes, {.links = &links, .nodes = {}}, folding.links};
  const bool record = options.record_timeline || !options.unfold;
  const ReplayResult result = replay(plan, classes, wiring, record);

  StepReport report;
  report.folded = !options.unfold;
  report.folded_exactly = wiring.exact();
  report.step_s = seconds(result.end);
  report.actors_simulated = result.actors.size();
  report.items = result.items_run;
  report.flows = result.flows;
  report.events = result.events;
  add_stages(scenario, plan, report);
  add_actors(plan, classes, result, options.keep_actors || !options.unfold, report);
  if (!scenario.stragglers.empty()) {
    blame_stragglers(simulate_step(without_stragglers(scenario)).seconds, report.seconds);
  }
  add_rates(scenario, report);
  if (record) report.critical_path = critical_path(plan, result);
  if (options.record_timeline) report.timeline = timeline(plan, result);
  if (!report.folded_exactly) {
    report.notes.emplace_back(
        "folded approximately: under hashed routing the paths of replicas differ; --unfold is "
        "exact");
  }
  return report;
}

}  // namespace lockstep
