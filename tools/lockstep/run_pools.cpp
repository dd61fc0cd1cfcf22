#include "tools/lockstep/run_pools.hpp"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/step/pool_memory.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// "3", "3-7".
std::string span_text(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// Layers of a stage of the pool, from the fewest to the most.
std::string layers_text(const StepReport& report, const PoolReport& pool) {
  int fewest = report.stages[static_cast<std::size_t>(pool.first_stage)].layers, most = fewest;
  for (int stage = pool.first_stage; stage <= pool.last_stage; ++stage) {
    const int layers = report.stages[static_cast<std::size_t>(stage)].layers;
    fewest = std::min(fewest, layers);
    most = std::max(most, layers);
  }
  return span_text(fewest, most);
}

/// Useful work at the pool's own peak.
double pool_mfu(const PoolReport& pool, double step_s) {
  return pool.seconds[static_cast<std::size_t>(Bucket::model_flops)] / step_s;
}

}  // namespace

const NodeSpec& tightest_node(const Scenario& scenario) {
  if (scenario.pools.empty()) return scenario.node;
  return scenario.node_of(tightest_pool(pool_memory(scenario)));
}

std::string nodes_text(const Scenario& s) {
  if (s.pools.empty()) {
    return fmt::format("({} x {}, {})", grouped(s.nodes), s.node.name, s.node.gpu.name);
  }
  std::string out;
  for (const NodePool& pool : s.pools) {
    out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", grouped(pool.nodes), pool.node.name);
  }
  return "(" + out + ")";
}

std::string micro_batches_text(const Scenario& s) {
  const int size = s.job.batch.micro_sequences;
  if (s.micro_batches.empty()) {
    return fmt::format("{} micro batches of {}", grouped(s.job.micro_batches()), size);
  }
  const auto [fewest, most] = std::ranges::minmax(s.micro_batches);
  return fmt::format("{} to {} micro batches of {}", grouped(fewest), grouped(most), size);
}

std::string pools_table(const RunResult& result, const TextStyle& style) {
  const StepReport& report = result.report;
  if (report.pools.empty()) return {};
  std::vector<TextTable::Column> columns{{"nodes", TextTable::Align::left}};
  for (const char* title :
       {"GPUs", "stages", "replicas", "layers", "micro", "MFU", "waiting", "memory", "usable"}) {
    columns.push_back({title});
  }
  TextTable table(std::move(columns));
  const std::vector<PoolMemory> memory = pool_memory(result.scenario);
  for (std::size_t i = 0; i < report.pools.size(); ++i) {
    const PoolReport& pool = report.pools[i];
    const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
    table.add(
        {result.scenario.pools[i].node.name, grouped(pool.gpus),
         span_text(pool.first_stage, pool.last_stage), grouped(pool.replicas),
         layers_text(report, pool), span_text(pool.fewest_micro_batches, pool.most_micro_batches),
         percent_text(pool_mfu(pool, report.step_s)), percent_text(pool.waiting_s / report.step_s),
         gib(memory[i].peak.needed()), gib(memory[i].usable)});
  }
  const NodePool& pacing = result.scenario.pools[report.pacing_pool];
  return "\n" + style.bold("Kinds of node") +
         " (layers of a stage, micro batches of a replica; shares of the step)\n" +
         table.text(style) +
         fmt::format("  {} sets the pace: its GPUs wait least.\n", pacing.node.name);
}

Json pools_json(const RunResult& result) {
  const StepReport& report = result.report;
  const std::vector<PoolMemory> memory = pool_memory(result.scenario);
  Json out = Json::array();
  for (std::size_t i = 0; i < report.pools.size(); ++i) {
    const PoolReport& pool = report.pools[i];
    const NodePool& of = result.scenario.pools[i];
    const auto gib = [](Bytes bytes) { return twelve_digits(bytes / gibibytes(1)); };
    Json buckets_s;
    for (const BucketInfo& info : buckets()) {
      buckets_s[std::string(info.name)] =
          twelve_digits(pool.seconds[static_cast<std::size_t>(info.bucket)]);
    }
    out.push_back({{"node", of.node.name},
                   {"gpu", of.node.gpu.name},
                   {"nodes", of.nodes},
                   {"gpus", pool.gpus},
                   {"sets_the_pace", i == report.pacing_pool},
                   {"first_stage", pool.first_stage},
                   {"last_stage", pool.last_stage},
                   {"replicas", pool.replicas},
                   {"micro_batches_min", pool.fewest_micro_batches},
                   {"micro_batches_max", pool.most_micro_batches},
                   {"peak_tflops_per_gpu", twelve_digits(pool.peak_flops_per_gpu / 1e12)},
                   {"mfu_causal", twelve_digits(pool_mfu(pool, report.step_s))},
                   {"waiting_share", twelve_digits(pool.waiting_s / report.step_s)},
                   {"buckets_s", std::move(buckets_s)},
                   {"peak_memory_stage", memory[i].stage},
                   {"peak_memory_gib", gib(memory[i].peak.total())},
                   {"needed_memory_gib", gib(memory[i].peak.needed())},
                   {"usable_memory_gib", gib(memory[i].usable)},
                   {"memory_capacity_gib", gib(of.node.gpu.hbm_capacity)}});
  }
  return out;
}

}  // namespace lockstep
