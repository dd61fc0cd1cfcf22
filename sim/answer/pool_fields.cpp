#include "sim/answer/pool_fields.hpp"

#include <string>

namespace lockstep {

std::vector<PoolAnswer> pool_answers(const RunResult& result) {
  const StepReport& report = result.report;
  if (report.pools.empty()) return {};
  const std::vector<PoolMemory> memory = pool_memory(result.scenario);
  std::vector<PoolAnswer> out;
  for (std::size_t i = 0; i < report.pools.size(); ++i) {
    out.push_back({&result.scenario.pools[i], &report.pools[i], memory[i], report.step_s,
                   i == report.pacing_pool,
                   result.power ? std::optional(result.power->pools[i]) : std::nullopt});
  }
  return out;
}

double pool_mfu(const PoolReport& pool, double step_s) {
  return pool.seconds[static_cast<std::size_t>(Bucket::model_flops)] / step_s;
}

namespace {

using Pool = PoolAnswer;

double gib_of(Bytes bytes) { return bytes / gibibytes(1); }

void add_pool_memory(FieldTable<Pool>& fields) {
  fields
      .add("peak_memory_stage", "Its fullest stage.", [](const Pool& p) { return p.memory.stage; })
      .add("peak_memory_gib", Better::less, "Peak memory there, as the framework reserves it.",
           [](const Pool& p) { return gib_of(p.memory.peak.total()); })
      .add("needed_memory_gib", Better::less,
           "The same without what the framework's allocator would give back.",
           [](const Pool& p) { return gib_of(p.memory.peak.needed()); })
      .add("usable_memory_gib", "What a job can have of the card's memory.",
           [](const Pool& p) { return gib_of(p.memory.usable); })
      .add("memory_capacity_gib", "All memory of the card.",
           [](const Pool& p) { return gib_of(p.of->node.gpu.hbm_capacity); });
}

}  // namespace

const FieldTable<PoolAnswer>& pool_fields() {
  static const FieldTable<Pool> fields = [] {
    FieldTable<Pool> out;
    out.add("node", "Kind of node.", [](const Pool& p) { return p.of->node.name; })
        .add("gpu", "Its GPU.", [](const Pool& p) { return p.of->node.gpu.name; })
        .add("nodes", "How many.", [](const Pool& p) { return p.of->nodes; })
        .add("gpus", "Their GPUs.", [](const Pool& p) { return p.report->gpus; })
        .add("sets_the_pace", "Whether its GPUs wait least.",
             [](const Pool& p) { return p.pacing; })
        .add("first_stage", "First pipeline stage on it.",
             [](const Pool& p) { return p.report->first_stage; })
        .add("last_stage", "Last pipeline stage on it.",
             [](const Pool& p) { return p.report->last_stage; })
        .add("replicas", "Replicas that have a stage there.",
             [](const Pool& p) { return p.report->replicas; })
        .add("micro_batches_min", "Fewest micro batches of these replicas.",
             [](const Pool& p) { return p.report->fewest_micro_batches; })
        .add("micro_batches_max", "Most micro batches of these replicas.",
             [](const Pool& p) { return p.report->most_micro_batches; })
        .add("peak_tflops_per_gpu", "Datasheet peak of a GPU.",
             [](const Pool& p) { return p.report->peak_flops_per_gpu / 1e12; })
        .add("mfu_causal", Better::more, "MFU at its own peak, attention causal.",
             [](const Pool& p) { return pool_mfu(*p.report, p.step_s); })
        .add("waiting_share", Better::less, "Share of the step that its GPUs wait.",
             [](const Pool& p) { return p.report->waiting_s / p.step_s; })
        .add("buckets_s", Better::less, "Seconds of the step by bucket.",
             [](const Pool& p) { return bucket_seconds(p.report->seconds); });
    add_pool_memory(out);
    out.add("gpu_mean_w", Better::less, "Power of one of its GPUs, mean over the step.",
            [](const Pool& p) -> std::optional<double> {
              if (!p.power) return std::nullopt;
              return p.power->gpu.base_units();
            })
        .add("node_mean_w", Better::less,
             "Power of one of its nodes at the supply's input, mean over the step.",
             [](const Pool& p) -> std::optional<double> {
               if (!p.power) return std::nullopt;
               return p.power->node.base_units();
             });
    return out;
  }();
  return fields;
}

}  // namespace lockstep
