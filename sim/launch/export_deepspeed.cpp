// DeepSpeed's JSON, and Accelerate's YAML.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/launch/export_parts.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// What a file says beside what all of them do.
struct Told {
  bool pipeline = false, sequence = false, selective = false;
};

/// What neither of them says: experts, and what the Trainer's arguments have.
void leave_out_of_trainer(const Scenario& scenario, const Told& told, LeftOut& left) {
  const TrainingJob& job = scenario.job;
  const Parallelism& cut = job.parallelism;
  const std::string script = "an argument of the training script";
  left.when(true, "model", job.model.name, script);
  left.when(true, "batch.tokens", std::to_string(job.batch.tokens), script);
  left.when(cut.pipeline > 1 && !told.pipeline, "parallelism.pipeline",
            std::to_string(cut.pipeline));
  left.when(cut.virtual_stages > 1, "parallelism.virtual_stages",
            std::to_string(cut.virtual_stages));
  left.when(cut.pipeline > 1 && (!told.pipeline || name_of(cut.schedule) != "1f1b"),
            "parallelism.schedule", std::string(name_of(cut.schedule)));
  const bool experts = job.model.experts.count > 0;
  left.when(experts && cut.expert > 1, "parallelism.expert", std::to_string(cut.expert));
  left.when(experts && (cut.expert_tensor > 1 || cut.tensor > 1), "parallelism.expert_tensor",
            std::to_string(cut.expert_tensor));
  left.when(cut.tensor > 1 && cut.sequence && !told.sequence, "parallelism.sequence", "true");
  left.when(job.recompute == Recompute::selective && !told.selective, "recompute", "selective",
            "it is whole layers or nothing");
  left.when(job.offload.activation_layers > 0, "offload.activation_layers",
            std::to_string(job.offload.activation_layers));
  left.when(job.routing.capacity > 0 || job.routing.imbalance > 1 || job.routing.zipf > 0,
            "routing", "uneven");
  leave_out_machine(scenario, left);
  leave_out_training(scenario, left);
}

Json zero_json(const Scenario& scenario, LeftOut& left) {
  const Parallelism& cut = scenario.job.parallelism;
  const HostOffload& host = scenario.job.offload;
  Json zero{{"stage", static_cast<int>(cut.sharding)},
            {"overlap_comm", scenario.stack.communication.overlap_gradients}};
  if (host.optimiser > 0) {
    zero["offload_optimizer"] = {{"device", "cpu"}, {"ratio", host.optimiser}};
  }
  if (host.parameters) zero["offload_param"] = {{"device", "cpu"}};
  const bool grouped = cut.shard_group > 0 && cut.shard_group < cut.replicas();
  if (grouped) zero["mics_shard_size"] = cut.shard_group;
  leave_out_gathering(scenario, left);
  return zero;
}

}  // namespace

ExportedJob export_deepspeed(const Scenario& scenario) {
  LeftOut left("DeepSpeed's JSON");
  const TrainingJob& job = scenario.job;
  const Parallelism& cut = job.parallelism;
  Json out{{"train_batch_size", job.batch.sequences},
           {"train_micro_batch_size_per_gpu", job.batch.micro_sequences},
           {"gradient_accumulation_steps", accumulation(scenario)},
           {"zero_optimization", zero_json(scenario, left)}};
  out[job.precision == Precision::fp16 ? "fp16" : "bf16"] = {{"enabled", true}};
  left.when(job.precision != Precision::fp16 && job.precision != Precision::bf16, "precision",
            std::string(name_of(job.precision)));
  if (cut.pipeline > 1) out["pipeline"] = {{"stages", cut.pipeline}};
  left.when(cut.pipeline > 1 && cut.sharding == Sharding::none && job.precision != Precision::fp16,
            "parallelism.sharding", "none",
            "beside pipelines its BF16_Optimizer shares the optimiser's states");
  if (cut.tensor > 1) out["tensor_parallel"] = {{"autotp_size", cut.tensor}};
  if (cut.context > 1) {
    out["sequence_parallel_size"] = cut.context;
    left.when(cut.context_exchange != ContextExchange::all_to_all, "parallelism.context_exchange",
              std::string(name_of(cut.context_exchange)), "heads are swapped for tokens (Ulysses)");
  }
  if (job.recompute == Recompute::full) {
    out["activation_checkpointing"] = {{"partition_activations", true}};
  }
  left.when(true, "cluster.nodes", std::to_string(scenario.nodes), "who launches it says that");
  leave_out_of_trainer(scenario, {.pipeline = true}, left);
  return {write_json(out, 2) + "\n", left.take()};
}

namespace {

/// Accelerate has pipelines and sequence parallelism by its Megatron-LM plugin, which has neither
/// ZeRO-2 and 3 nor context parallelism.
bool by_megatron_plugin(const TrainingJob& job) {
  const Parallelism& cut = job.parallelism;
  const bool needs = cut.pipeline > 1 || (cut.tensor > 1 && cut.sequence);
  const bool shards = cut.sharding == Sharding::none || cut.sharding == Sharding::zero1;
  return needs && shards && cut.context == 1 && !job.offload.parameters &&
         job.offload.optimiser == 0;
}

ExportedJob export_megatron_plugin(const Scenario& scenario) {
  LeftOut left("Accelerate's YAML");
  const TrainingJob& job = scenario.job;
  const Parallelism& cut = job.parallelism;
  const RecomputeModules& m = job.modules;
  const bool others = m.layer_norm || m.activation || m.latent_up || m.mlp || m.mlp_up ||
                      m.projection || m.products > 0;
  const bool selective = job.recompute == Recompute::selective && !others;
  std::string text = fmt::format(
      "# {}\ncompute_environment: LOCAL_MACHINE\ndistributed_type: MEGATRON_LM\n"
      "num_machines: {}\nnum_processes: {}\nmixed_precision: {}\n",
      machine_words(scenario), scenario.nodes, scenario.gpus(), name_of(job.precision));
  text += fmt::format(
      "megatron_lm_config:\n  megatron_lm_tp_degree: {}\n  megatron_lm_pp_degree: {}\n"
      "  megatron_lm_num_micro_batches: {}\n  megatron_lm_sequence_parallelism: {}\n"
      "  megatron_lm_use_distributed_optimizer: {}\n  megatron_lm_recompute_activations: {}\n",
      cut.tensor, cut.pipeline, accumulation(scenario), on_off(cut.sequence),
      on_off(cut.sharding == Sharding::zero1), on_off(selective));
  left.when(job.recompute == Recompute::full, "recompute", "full",
            "an argument of the training script");
  left.when(job.batch.micro_sequences > 1, "batch.micro", std::to_string(job.batch.micro_sequences),
            "an argument of the training script");
  leave_out_of_trainer(scenario, {.pipeline = true, .sequence = true, .selective = selective},
                       left);
  return {std::move(text), left.take()};
}

}  // namespace

ExportedJob export_accelerate(const Scenario& scenario) {
  if (by_megatron_plugin(scenario.job)) return export_megatron_plugin(scenario);
  LeftOut left("Accelerate's YAML");
  const TrainingJob& job = scenario.job;
  const Parallelism& cut = job.parallelism;
  const bool zero = cut.sharding == Sharding::zero1 || cut.sharding == Sharding::zero2 ||
                    (cut.sharding == Sharding::zero3 &&
                     scenario.stack.name.find("deepspeed") != std::string::npos);
  const bool fsdp = cut.sharding == Sharding::zero3 && !zero;
  std::string text = "# " + machine_words(scenario) + "\ncompute_environment: LOCAL_MACHINE\n";
  text += fmt::format("distributed_type: {}\n", zero ? "DEEPSPEED" : fsdp ? "FSDP" : "MULTI_GPU");
  text += fmt::format("num_machines: {}\nnum_processes: {}\nmixed_precision: {}\n", scenario.nodes,
                      scenario.gpus(), name_of(job.precision));
  text += fmt::format("gradient_accumulation_steps: {}\n", accumulation(scenario));
  const bool full = job.recompute == Recompute::full;
  if (zero) {
    text += fmt::format("deepspeed_config:\n  zero_stage: {}\n", static_cast<int>(cut.sharding));
    text += fmt::format("  gradient_accumulation_steps: {}\n", accumulation(scenario));
    text +=
        fmt::format("  offload_optimizer_device: {}\n", job.offload.optimiser > 0 ? "cpu" : "none");
    text += fmt::format("  offload_param_device: {}\n", job.offload.parameters ? "cpu" : "none");
    const bool part = job.offload.optimiser > 0 && job.offload.optimiser < 1;
    left.when(part, "offload.optimiser", number_text(job.offload.optimiser), "all or nothing");
    left.when(cut.sharding == Sharding::zero3 && !cut.reshard, "parallelism.reshard", "false");
  } else if (fsdp) {
    text += fmt::format(
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: {}\n"
        "  fsdp_offload_params: {}\n  fsdp_activation_checkpointing: {}\n",
        on_off(cut.reshard), on_off(job.offload.parameters), on_off(full));
    left.when(job.offload.optimiser > 0 && !job.offload.parameters, "offload.optimiser",
              number_text(job.offload.optimiser), "with the weights or not at all");
  } else {
    left.when(job.offload.optimiser > 0, "offload.optimiser", number_text(job.offload.optimiser));
  }
  const bool grouped =
      cut.sharding == Sharding::zero3 && cut.shard_group > 0 && cut.shard_group < cut.replicas();
  const bool fits = !grouped || (!zero && cut.shard_group % cut.context == 0);
  const int shard = grouped && fits ? cut.shard_group / cut.context : cut.data;
  left.when(!fits, "parallelism.shard_group", std::to_string(cut.shard_group));
  if (cut.tensor > 1 || cut.context > 1 || grouped) {
    text += fmt::format(
        "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n"
        "  parallelism_config_dp_shard_size: {}\n  parallelism_config_tp_size: {}\n"
        "  parallelism_config_cp_size: {}\n",
        cut.data / shard, shard, cut.tensor, cut.context);
  }
  left.when(cut.context > 1, "parallelism.context_exchange",
            std::string(name_of(cut.context_exchange)));
  left.when(full && !fsdp, "recompute", "full", "an argument of the training script");
  left.when(job.batch.micro_sequences > 1, "batch.micro", std::to_string(job.batch.micro_sequences),
            "an argument of the training script");
  left.when(cut.sharding == Sharding::zero3 && cut.prefetch != 1, "parallelism.prefetch",
            std::to_string(cut.prefetch));
  leave_out_of_trainer(scenario, {}, left);
  return {std::move(text), left.take()};
}

}  // namespace lockstep
