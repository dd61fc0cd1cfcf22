#include "sim/scenario/scenario_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>

#include "models/input/json_override.hpp"
#include "models/kernels/attention.hpp"
#include "sim/scenario/names.hpp"
#include "topologies/placement.hpp"

namespace lockstep {
namespace {

std::string text(std::int64_t count) { return std::to_string(count); }

std::string rounded(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

/// "heads of gpt3_175b"; models given inline may have no name.
std::string of_model(const char* what, const TransformerShape& model) {
  return std::string(what) + (model.name.empty() ? " of the model" : " of " + model.name);
}

void check_heads(const ScenarioDraft& draft, int tensor) {
  const TransformerShape& model = draft.model;
  if (model.heads % tensor != 0) {
    refuse(draft, "/parallelism/tensor", text(tensor),
           "a divisor of " + text(model.heads) + " (" + of_model("attention heads", model) + ")");
  }
  if (model.kv_heads % tensor != 0 && tensor % model.kv_heads != 0) {
    refuse(draft, "/parallelism/tensor", text(tensor),
           "a divisor or a multiple of " + text(model.kv_heads) + " (" +
               of_model("key-value heads", model) + ")");
  }
}

/// Embedding and output projection may take a layer's place each, so two stages may have no layer.
std::int64_t slots(const ScenarioDraft& draft) { return std::int64_t{draft.model.layers} + 2; }
std::string slots_rule(const ScenarioDraft& draft) {
  return " (" + of_model("layers", draft.model) + ", plus embedding and output)";
}

void check_layers_per_stage(const ScenarioDraft& draft, const Parallelism& cut) {
  const std::vector<int>& layers = cut.layers_per_stage;
  const std::int64_t stages = std::int64_t{cut.pipeline} * cut.virtual_stages;
  if (static_cast<std::int64_t>(layers.size()) != stages) {
    refuse(draft, "/parallelism/layers_per_stage",
           "an array of " + text(static_cast<std::int64_t>(layers.size())) + " elements",
           text(stages) + " elements (pipeline " + text(cut.pipeline) + " x virtual_stages " +
               text(cut.virtual_stages) + ")");
  }
  const std::int64_t sum = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (sum != draft.model.layers) {
    refuse(draft, "/parallelism/layers_per_stage", text(sum) + " layers",
           text(draft.model.layers) + " (" + of_model("layers", draft.model) + ")");
  }
}

/// Formats that the GPU has, as messages list them.
std::string supported_precisions(const GpuSpec& gpu) {
  std::vector<std::string> names;
  for (const PrecisionInfo& row : precisions()) {
    if (gpu.peak(row.precision) > FlopsPerSecond{}) names.emplace_back(row.name);
  }
  return listed(names) + " (" + gpu.name + " has no other)";
}

void check_fabric(const ScenarioDraft& draft, const Scenario& scenario) {
  const NicPorts ports = nic_ports(scenario.node);
  const std::optional<FabricProblem> problem =
      check(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth);
  if (!problem) return;
  std::string pointer = "/cluster/fabric/" + problem->field;
  if (problem->field == "nodes") pointer = "/cluster/nodes";
  if (problem->field == "nic_bandwidth") pointer = "/cluster/node/nic_bandwidth";
  refuse(draft, pointer, problem->found, problem->allowed);
}

/// Seconds that a step takes at the least: products at peak on all GPUs.
double compute_seconds(const Scenario& scenario) {
  const TransformerShape& m = scenario.job.model;
  const double tokens =
      static_cast<double>(scenario.job.batch.sequences) * scenario.job.batch.tokens;
  const double attention = 12.0 * m.layers * m.heads * m.head_dim * scenario.job.batch.tokens;
  const double flops = tokens * (6 * total_parameters(m) + attention);
  const double peak = scenario.node.gpu.peak(scenario.job.precision).base_units();
  return flops / (peak * scenario.gpus());
}

/// Seconds that all transfers of a GPU would take one after another over its slowest link.
double transfer_seconds(const Scenario& scenario) {
  const TransformerShape& m = scenario.job.model;
  const Parallelism& cut = scenario.job.parallelism;
  const double replica_tokens = static_cast<double>(scenario.job.micro_batches()) *
                                scenario.job.batch.micro_sequences * scenario.job.batch.tokens;
  constexpr double kBytes = 2;            // of an activation
  constexpr double kPassesPerLayer = 8;   // tensor-parallel collectives of a layer, both directions
  constexpr double kBytesPerWeight = 16;  // gradients and parameters, reduced and gathered
  double bytes = kBytesPerWeight * total_parameters(m) / (cut.tensor * cut.pipeline);
  if (cut.pipeline > 1) bytes += 2 * kBytes * replica_tokens * m.hidden * cut.virtual_stages;
  if (cut.tensor > 1) {
    bytes += kPassesPerLayer * kBytes * replica_tokens * m.hidden * m.layers / cut.pipeline;
  }
  const double oversubscription = std::max(1.0, scenario.fabric.leaf_oversubscription) *
                                  std::max(1.0, scenario.fabric.spine_oversubscription);
  BytesPerSecond link = nic_ports(scenario.node).bandwidth;
  if (scenario.fabric.link_bandwidth > BytesPerSecond{}) {
    link = std::min(link, scenario.fabric.link_bandwidth);
  }
  return bytes / (link.base_units() / oversubscription);
}

}  // namespace

void refuse(const ScenarioDraft& draft, std::string_view pointer, std::string found,
            std::string allowed) {
  const JsonOverride* change = last_override(draft.overrides, pointer);
  if (change != nullptr) found += " (" + change->option + ")";
  throw InputError({draft.file, std::string(pointer), std::move(found), std::move(allowed), ""});
}

void check_widths(const ScenarioDraft& draft) {
  check_heads(draft, draft.tensor);
  if (draft.pipeline <= slots(draft)) return;
  refuse(draft, "/parallelism/pipeline", text(draft.pipeline),
         "at most " + text(slots(draft)) + slots_rule(draft));
}

void check_virtual_stages(const ScenarioDraft& draft, const Parallelism& cut) {
  if (std::int64_t{cut.pipeline} * cut.virtual_stages > slots(draft)) {
    refuse(draft, "/parallelism/virtual_stages", text(cut.virtual_stages),
           "at most " + text(slots(draft) / cut.pipeline) + ", so that pipeline " +
               text(cut.pipeline) + " x virtual_stages is at most " + text(slots(draft)) +
               slots_rule(draft));
  }
  if (!cut.layers_per_stage.empty()) check_layers_per_stage(draft, cut);
}

void check_batch(const ScenarioDraft& draft, const TrainingJob& job) {
  const Batch& batch = job.batch;
  const Parallelism& cut = job.parallelism;
  const std::int64_t together = std::int64_t{batch.micro_sequences} * cut.data;
  if (batch.sequences % together != 0) {
    refuse(draft, "/batch/sequences", text(batch.sequences),
           "a multiple of " + text(together) + " (micro " + text(batch.micro_sequences) +
               " x data " + text(cut.data) + ")");
  }
  if (cut.schedule == Schedule::interleaved && job.micro_batches() % cut.pipeline != 0) {
    refuse(draft, "/batch/sequences", text(batch.sequences),
           "a multiple of " + text(together * cut.pipeline) + " (micro " +
               text(batch.micro_sequences) + " x data " + text(cut.data) + " x pipeline " +
               text(cut.pipeline) + "), which the interleaved schedule needs");
  }
  if (cut.sequence && batch.tokens % cut.tensor != 0) {
    refuse(draft, "/batch/tokens", text(batch.tokens),
           "a multiple of " + text(cut.tensor) + " (tensor), which sequence parallelism needs");
  }
}

void check_machine(const ScenarioDraft& draft, const Scenario& scenario) {
  const GpuSpec& gpu = scenario.node.gpu;
  if (!(gpu.peak(scenario.job.precision) > FlopsPerSecond{})) {
    refuse(draft, "/precision", in_quotes(name_of(scenario.job.precision)),
           supported_precisions(gpu));
  }
  if (scenario.stack.attention != AttentionKernel::unfused &&
      attention_constants(scenario.stack.attention, gpu) == nullptr) {
    refuse(draft, "/stack/attention", in_quotes(name_of(scenario.stack.attention)),
           "unfused (" + gpu.name + " has no constants for fused kernels)");
  }
  const int gpus = scenario.node.gpus;
  const int domain = scenario.node.nvlink_domain;
  if (gpus % domain != 0 && domain % gpus != 0) {
    refuse(draft, "/cluster/node/nvlink_domain", text(domain),
           "a divisor or a multiple of " + text(gpus) + " (GPUs of a node)");
  }
  for (std::size_t i = 0; i < scenario.stragglers.size(); ++i) {
    if (scenario.stragglers[i].gpu < scenario.gpus()) continue;
    refuse(draft, "/stragglers/" + std::to_string(i) + "/gpu", text(scenario.stragglers[i].gpu),
           "a GPU of the job, 0 to " + text(scenario.gpus() - 1));
  }
  check_fabric(draft, scenario);
}

void check_size(const ScenarioDraft& draft, const Scenario& scenario) {
  constexpr std::int64_t kMaxMicroBatches = 1 << 16;
  constexpr std::int64_t kMaxPasses = 8'000'000;  // of all stages: half a GiB of programs
  const Parallelism& cut = scenario.job.parallelism;
  const std::int64_t micro_batches = scenario.job.micro_batches();
  if (micro_batches > kMaxMicroBatches) {
    refuse(draft, "/batch/sequences", text(micro_batches) + " micro batches a replica",
           "at most " + text(kMaxMicroBatches));
  }
  const std::int64_t passes = micro_batches * cut.pipeline * cut.virtual_stages;
  if (passes > kMaxPasses) {
    refuse(draft, "/batch/sequences", text(passes) + " micro batches x pipeline x virtual_stages",
           "at most " + text(kMaxPasses));
  }
  // The clock of a step ends after 213 days; this leaves room for every inefficiency.
  constexpr double kLongestStep = 1e5;  // seconds
  const double compute = compute_seconds(scenario);
  if (compute > kLongestStep) {
    refuse(draft, "/batch", "a step of " + rounded(compute) + " s at the peak of all GPUs",
           "at most " + rounded(kLongestStep) + " s");
  }
  const double transfer = transfer_seconds(scenario);
  if (transfer > kLongestStep) {
    refuse(draft, "/cluster", "transfers of " + rounded(transfer) + " s over the slowest link",
           "at most " + rounded(kLongestStep) + " s a step");
  }
}

}  // namespace lockstep
