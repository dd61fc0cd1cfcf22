#include "tools/views/run/run_pools.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/step/pool_memory.hpp"
#include "tools/views/run/run_facts.hpp"

namespace lockstep {
namespace {

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

}  // namespace

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
    const int count = s.job.micro_batches();
    return fmt::format("{} micro {} of {}", grouped(count), count == 1 ? "batch" : "batches", size);
  }
  const auto [fewest, most] = std::ranges::minmax(s.micro_batches);
  return fmt::format("{} to {} micro batches of {}", grouped(fewest), grouped(most), size);
}

KindsOfNode kinds_of_node(const RunResult& result) {
  const StepReport& report = result.report;
  const char* const mfu = has_causal_attention(report) ? "MFU causal" : "MFU";
  KindsOfNode out{{"nodes", "GPUs", "stages", "replicas", "layers", "micro", mfu, "waiting",
                   "memory", "usable"}};
  if (report.pools.empty()) return out;
  const std::vector<PoolMemory> memory = pool_memory(result.scenario);
  for (std::size_t i = 0; i < report.pools.size(); ++i) {
    const PoolReport& pool = report.pools[i];
    const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
    out.rows.push_back(
        {result.scenario.pools[i].node.name, grouped(pool.gpus),
         span_text(pool.first_stage, pool.last_stage), grouped(pool.replicas),
         layers_text(report, pool), span_text(pool.fewest_micro_batches, pool.most_micro_batches),
         percent_text(pool_mfu(pool, report.step_s)), percent_text(pool.waiting_s / report.step_s),
         gib(memory[i].peak.needed()), gib(memory[i].usable)});
  }
  out.pace = fmt::format("{} sets the pace: its GPUs wait least.",
                         result.scenario.pools[report.pacing_pool].node.name);
  return out;
}

std::string pools_table(const RunResult& result, const TextStyle& style) {
  const KindsOfNode kinds = kinds_of_node(result);
  if (kinds.rows.empty()) return {};
  std::vector<TextTable::Column> columns{{kinds.titles.front(), TextTable::Align::left}};
  for (std::size_t i = 1; i < kinds.titles.size(); ++i) columns.push_back({kinds.titles[i]});
  TextTable table(std::move(columns));
  for (const std::vector<std::string>& row : kinds.rows) table.add(row);
  return "\n" + style.bold("Kinds of node") +
         " (layers of a stage, micro batches of a replica; shares of the step)\n" +
         table.text(style) + "  " + kinds.pace + "\n";
}

}  // namespace lockstep
