// Megatron-LM's arguments, NeMo's and Megatron-Bridge's YAML: the same words in three forms.
#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "models/base/number_text.hpp"
#include "sim/launch/export_parts.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

std::string dashed(std::string text) {
  std::ranges::replace(text, '_', '-');
  return "--" + text;
}

/// Words that Megatron-LM's command line has under another name.
std::string argument_name(const std::string& key) {
  static const std::map<std::string, std::string> kNames{
      {"num_moe_experts", "num_experts"},
      {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"}};
  const auto found = kNames.find(key);
  return dashed(found == kNames.end() ? key : found->second);
}

/// Lines of a bash array; a flag is there or not.
std::string array_of(const std::string& name, const KeyValues& words) {
  std::string out = name + "=(\n";
  for (const auto& [key, value] : words) {
    if (value == "false") continue;
    out += "  " + argument_name(key) +
           (value == "true"
                ? ""
                : " " + (value.find_first_of("|[*") == std::string::npos ? value
                                                                         : "'" + value + "'")) +
           "\n";
  }
  return out + ")\n";
}

std::string yaml_lines(const KeyValues& words, int indent) {
  std::string out;
  for (const auto& [key, value] : words) {
    const bool quoted = value.find_first_of("|[*:-") != std::string::npos;
    out += std::string(static_cast<std::size_t>(indent), ' ') + key + ": " +
           (quoted ? "\"" + value + "\"" : value) + "\n";
  }
  return out;
}

void add_number_formats(Precision precision, KeyValues& out) {
  out.emplace_back(precision == Precision::fp16 ? "fp16" : "bf16", "true");
  if (precision == Precision::fp8 || precision == Precision::mxfp8) {
    out.emplace_back("fp8_format", precision == Precision::fp8 ? "hybrid" : "e4m3");
    out.emplace_back("fp8_recipe", precision == Precision::fp8 ? "delayed" : "mxfp8");
  }
  if (precision == Precision::nvfp4) out.emplace_back("fp4_format", "e2m1");
}

/// How the replicas share states, and what runs beside what.
void add_sharding(const Scenario& scenario, LeftOut& left, KeyValues& out) {
  const Parallelism& cut = scenario.job.parallelism;
  const CommunicationPolicy& does = scenario.stack.communication;
  out.emplace_back("use_distributed_optimizer", on_off(cut.sharding != Sharding::none));
  if (cut.sharding == Sharding::zero2 || cut.sharding == Sharding::zero3) {
    out.emplace_back("use_megatron_fsdp", "true");
    out.emplace_back("data_parallel_sharding_strategy",
                     cut.sharding == Sharding::zero2 ? "optim_grads" : "optim_grads_params");
  }
  if (cut.shard_group > 0 && cut.shard_group < cut.replicas()) {
    out.emplace_back("num_distributed_optimizer_instances",
                     std::to_string(cut.replicas() / cut.shard_group));
  }
  out.emplace_back("overlap_grad_reduce", on_off(does.overlap_gradients));
  out.emplace_back("overlap_param_gather", on_off(does.overlap_parameters));
  leave_out_gathering(scenario, left);
}

void add_offload(const Scenario& scenario, LeftOut& left, KeyValues& out) {
  const HostOffload& host = scenario.job.offload;
  if (host.optimiser > 0) {
    out.emplace_back("optimizer_cpu_offload", "true");
    out.emplace_back("optimizer_offload_fraction", number_text(host.optimiser));
  }
  if (host.activation_layers > 0) {
    out.emplace_back("cpu_offloading_num_layers", std::to_string(host.activation_layers));
  }
  left.when(host.parameters, "offload.parameters", "true");
}

/// Adds the overlap of tensor-parallel communication, unless the scenario leaves it to the
/// software.
void add_tensor_overlap(const Scenario& scenario, const char* key, KeyValues& out) {
  const Parallelism& cut = scenario.job.parallelism;
  if (!cut.tensor_overlap || !cut.sequence) return;
  out.emplace_back(key, on_off(*cut.tensor_overlap == TensorOverlap::pieces));
}

void append(KeyValues& to, const KeyValues& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Options of the model, without the parallel widths.
KeyValues shape_words(const MegatronWords& words, bool yaml) {
  KeyValues out;
  for (const auto& [key, value] : words.model) {
    if (yaml && key == "disable_bias_linear") {
      out.emplace_back("add_bias_linear", on_off(value == "false"));
    } else if (yaml && key == "untie_embeddings_and_output_weights") {
      out.emplace_back("share_embeddings_and_output_weights", on_off(value == "false"));
    } else if (yaml && key == "swiglu") {
      out.emplace_back("gated_linear_unit", value);
    } else if (!yaml || key != "group_query_attention") {
      out.emplace_back(key, value);
    }
  }
  return out;
}

}  // namespace

ExportedJob export_megatron(const Scenario& scenario) {
  LeftOut left("Megatron-LM's arguments");
  const MegatronWords words = megatron_words(scenario, left);
  KeyValues training = words.batch, layout = words.layout;
  add_number_formats(scenario.job.precision, training);
  append(training, words.recompute);
  append(layout, words.experts);
  add_sharding(scenario, left, layout);
  add_offload(scenario, left, layout);
  add_tensor_overlap(scenario, "tp_comm_overlap", layout);
  std::string text = "#!/bin/bash\n# " + machine_words(scenario) + "\n\n";
  text += fmt::format("GPUS_PER_NODE={}\nNUM_NODES={}\n\n",
                      std::min(scenario.node.gpus, scenario.gpus()), scenario.nodes);
  text += array_of("MODEL_ARGS", shape_words(words, false)) + "\n";
  text += array_of("TRAINING_ARGS", training) + "\n";
  text += array_of("PARALLEL_ARGS", layout) + "\n";
  text +=
      "torchrun --nnodes $NUM_NODES --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py \\\n"
      "  ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} ${PARALLEL_ARGS[@]}\n";
  return {std::move(text), left.take()};
}

ExportedJob export_nemo(const Scenario& scenario) {
  LeftOut left("NeMo's YAML");
  const MegatronWords words = megatron_words(scenario, left);
  const Parallelism& cut = scenario.job.parallelism;
  KeyValues model;
  for (const auto& [key, value] : words.batch) {
    model.emplace_back(key == "seq_length" ? "encoder_seq_length" : key, value);
  }
  append(model, words.layout);
  append(model, words.experts);
  append(model, shape_words(words, true));
  append(model, words.recompute);
  if (scenario.job.precision == Precision::fp8) model.emplace_back("fp8", "true");
  if (scenario.job.precision == Precision::mxfp8) {
    model.emplace_back("fp8", "true");
    model.emplace_back("fp8_recipe", "mxfp8");
  }
  if (scenario.job.precision == Precision::nvfp4) model.emplace_back("fp4", "true");
  add_offload(scenario, left, model);
  left.when(cut.sharding == Sharding::zero2, "parallelism.sharding", "zero2");
  if (cut.sharding == Sharding::zero3) {
    model.emplace_back("fsdp", "true");
    model.emplace_back("fsdp_sharding_strategy", cut.reshard ? "full" : "grad");
    left.when(cut.reshard && cut.pipeline > 1, "parallelism.reshard", "true");
    left.when(cut.prefetch != 1, "parallelism.prefetch", std::to_string(cut.prefetch));
  }
  left.when(cut.shard_group > 0 && cut.shard_group < cut.replicas(), "parallelism.shard_group",
            std::to_string(cut.shard_group));
  add_tensor_overlap(scenario, "ub_tp_comm_overlap", model);
  const CommunicationPolicy& does = scenario.stack.communication;
  std::string text = "# " + machine_words(scenario) + "\n";
  text += fmt::format("trainer:\n  num_nodes: {}\n  devices: {}\n  precision: {}\n\nmodel:\n",
                      scenario.nodes, std::min(scenario.node.gpus, scenario.gpus()),
                      scenario.job.precision == Precision::fp16 ? "16" : "bf16");
  text += yaml_lines(model, 2);
  text +=
      fmt::format("  optim:\n    name: {}\n    overlap_grad_sync: {}\n    overlap_param_sync: {}\n",
                  cut.sharding == Sharding::none ? "fused_adam" : "mcore_distributed_optim",
                  on_off(does.overlap_gradients), on_off(does.overlap_parameters));
  return {std::move(text), left.take()};
}

ExportedJob export_bridge(const Scenario& scenario) {
  LeftOut left("Megatron-Bridge's YAML");
  const MegatronWords words = megatron_words(scenario, left);
  KeyValues model = words.layout, sharding, overlap;
  add_tensor_overlap(scenario, "tp_comm_overlap", overlap);
  append(model, words.experts);
  append(model, shape_words(words, true));
  append(model, words.recompute);
  add_offload(scenario, left, model);
  add_sharding(scenario, left, sharding);
  left.when(true, "cluster.nodes", std::to_string(scenario.nodes), "who launches it says that");
  std::string text = "# " + machine_words(scenario) + "\nmodel:\n";
  text += yaml_lines(model, 2) + "  seq_length: " + std::to_string(scenario.job.batch.tokens);
  text += fmt::format("\n\ntrain:\n  micro_batch_size: {}\n  global_batch_size: {}\n",
                      scenario.job.batch.micro_sequences, scenario.job.batch.sequences);
  text += "\nddp:\n" + yaml_lines(sharding, 2);
  if (!overlap.empty()) text += "\ncomm_overlap:\n" + yaml_lines(overlap, 2);
  const std::string_view precision = name_of(scenario.job.precision);
  text +=
      fmt::format("\nmixed_precision: {}\n", precision == "bf16" || precision == "fp16"
                                                 ? std::string(precision) + "_mixed"
                                                 : fmt::format("bf16_with_{}_mixed", precision));
  return {std::move(text), left.take()};
}

}  // namespace lockstep
