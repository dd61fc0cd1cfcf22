// TorchTitan's TOML.
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "models/spec/partition.hpp"
#include "sim/launch/export_parts.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

struct Flavor {
  std::string_view preset, name, flavor;
};
constexpr std::array kFlavors{Flavor{"llama3_8b", "llama3", "8B"},
                              Flavor{"llama3_70b", "llama3", "70B"},
                              Flavor{"llama3_405b", "llama3", "405B"},
                              Flavor{"llama4_scout", "llama4", "17bx16e"},
                              Flavor{"llama4_maverick", "llama4", "17bx128e"},
                              Flavor{"deepseek_v2_lite", "deepseek_v3", "16B"},
                              Flavor{"deepseek_v2", "deepseek_v3", "236B"},
                              Flavor{"deepseek_v3", "deepseek_v3", "671B"},
                              Flavor{"qwen3_0_6b", "qwen3", "0.6B"},
                              Flavor{"qwen3_1_7b", "qwen3", "1.7B"},
                              Flavor{"qwen3_4b", "qwen3", "4B"},
                              Flavor{"qwen3_8b", "qwen3", "8B"},
                              Flavor{"qwen3_14b", "qwen3", "14B"},
                              Flavor{"qwen3_32b", "qwen3", "32B"},
                              Flavor{"qwen3_30b_a3b", "qwen3", "30B-A3B"},
                              Flavor{"qwen3_235b_a22b", "qwen3", "235B-A22B"},
                              Flavor{"gpt_oss_20b", "gpt_oss", "20b"},
                              Flavor{"gpt_oss_120b", "gpt_oss", "120b"}};

std::string titan_model(const Scenario& scenario, LeftOut& left) {
  const std::string& name = scenario.job.model.name;
  std::string out = "[model]\n";
  bool known = false;
  for (const Flavor& one : kFlavors) {
    if (one.preset != name) continue;
    out += fmt::format("name = \"{}\"\nflavor = \"{}\"\n", one.name, one.flavor);
    known = true;
  }
  left.when(!known, "model", name, "a flavor in its Python code would have to be written");
  const Precision precision = scenario.job.precision;
  if (precision == Precision::fp8) out += "converters = [\"quantize.linear.float8\"]\n";
  if (precision == Precision::mxfp8) out += "converters = [\"quantize.linear.mx\"]\n";
  left.when(precision == Precision::fp16 || precision == Precision::nvfp4, "precision",
            std::string(name_of(precision)));
  return out;
}

std::string_view titan_schedule(Schedule schedule) {
  switch (schedule) {
    case Schedule::gpipe:
      return "GPipe";
    case Schedule::one_f_one_b:
      return "1F1B";
    case Schedule::interleaved:
      return "Interleaved1F1B";
    case Schedule::breadth_first:
      return "LoopedBFS";
    case Schedule::zb_v:
      return "ZBVZeroBubble";
    case Schedule::dualpipev:
      return "DualPipeV";
    default:
      return "";
  }
}

std::string titan_pipeline(const Scenario& scenario, LeftOut& left) {
  const Parallelism& cut = scenario.job.parallelism;
  std::string out = fmt::format("pipeline_parallel_degree = {}\n", cut.pipeline);
  if (cut.pipeline == 1) return out;
  const std::string_view schedule = titan_schedule(cut.schedule);
  left.when(schedule.empty(), "parallelism.schedule", std::string(name_of(cut.schedule)));
  if (!schedule.empty()) out += fmt::format("pipeline_parallel_schedule = \"{}\"\n", schedule);
  const int stages = cut.pipeline * cut.virtual_stages;
  const int each = (scenario.job.model.layers + stages - 1) / stages;
  const bool says = (scenario.job.model.layers + cut.pipeline * each - 1) / (cut.pipeline * each) ==
                    cut.virtual_stages;
  left.when(!says, "parallelism.virtual_stages", std::to_string(cut.virtual_stages),
            "it has layers a stage, which come to another number");
  left.when(!cut.layers_per_stage.empty(), "parallelism.layers_per_stage", "a list");
  out += fmt::format("pipeline_parallel_layers_per_stage = {}\n", each);
  return out + fmt::format("pipeline_parallel_microbatch_size = {}\n",
                           scenario.job.batch.micro_sequences);
}

/// Groups of replicas that share weights, and copies of them.
std::string titan_groups(const Scenario& scenario, LeftOut& left) {
  const Parallelism& cut = scenario.job.parallelism;
  int copies = 1;
  int shard = cut.data;
  if (cut.sharding == Sharding::zero3) {
    const bool grouped = cut.shard_group > 0 && cut.shard_group < cut.replicas();
    const bool fits = !grouped || (cut.shard_group % cut.context == 0);
    if (grouped && fits) shard = cut.shard_group / cut.context;
    copies = cut.data / shard;
    left.when(!fits, "parallelism.shard_group", std::to_string(cut.shard_group),
              "its groups hold whole context-parallel groups");
  } else if (cut.sharding == Sharding::none) {
    copies = cut.data;
    shard = 1;
    left.when(cut.context > 1, "parallelism.sharding", "none",
              "context-parallel ranks share weights");
  }
  const bool other = cut.sharding == Sharding::zero1 || cut.sharding == Sharding::zero2;
  left.when(other, "parallelism.sharding", std::string(name_of(cut.sharding)),
            "it shards weights too, or nothing");
  std::string out = fmt::format(
      "data_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n", copies, shard);
  if (cut.sharding == Sharding::zero3) {
    out += fmt::format("fsdp_reshard_after_forward = \"{}\"\n", cut.reshard ? "always" : "never");
    left.when(cut.prefetch != 1, "parallelism.prefetch", std::to_string(cut.prefetch));
  }
  return out;
}

std::string titan_parallelism(const Scenario& scenario, LeftOut& left) {
  const Parallelism& cut = scenario.job.parallelism;
  std::string out = "[parallelism]\n" + titan_groups(scenario, left);
  out += fmt::format("tensor_parallel_degree = {}\n", cut.tensor);
  if (cut.tensor_overlap && cut.sequence) {
    out += fmt::format("enable_async_tensor_parallel = {}\n", on_off(cut.tensor_pieces() > 1));
  }
  left.when(cut.tensor > 1 && !cut.sequence, "parallelism.sequence", "false",
            "tensor parallelism implies it");
  out += titan_pipeline(scenario, left);
  out += fmt::format("context_parallel_degree = {}\n", cut.context);
  if (cut.context > 1) {
    const bool ring = cut.context_exchange == ContextExchange::ring;
    out +=
        fmt::format("context_parallel_rotate_method = \"{}\"\n", ring ? "alltoall" : "allgather");
    left.when(cut.context_exchange == ContextExchange::all_to_all, "parallelism.context_exchange",
              "all_to_all");
  }
  if (scenario.job.model.experts.count > 0) {
    out += fmt::format("expert_parallel_degree = {}\nexpert_tensor_parallel_degree = {}\n",
                       cut.expert, cut.expert_tensor);
    const bool two_level = cut.expert > 1 && cut.expert_dispatch == ExpertDispatch::two_level;
    out +=
        fmt::format("expert_parallel_comm_backend = \"{}\"\n", two_level ? "deepep" : "standard");
    left.when(cut.expert_overlap, "parallelism.expert_overlap", "true");
  }
  return out;
}

std::string titan_recompute(const TrainingJob& job, LeftOut& left) {
  std::string out = fmt::format("[activation_checkpoint]\nmode = \"{}\"\n", name_of(job.recompute));
  if (job.recompute != Recompute::selective) return out;
  const RecomputeModules& m = job.modules;
  const bool by_operation = m.layer_norm && m.activation && !m.core_attention && !m.latent_up &&
                            !m.mlp && !m.mlp_up && !m.projection && !m.fused_attention;
  const double every = m.products > 0 ? 1 / m.products : 0;
  const bool known =
      by_operation && (m.products == 0.5 || every == std::round(every)) && m.products > 0;
  left.when(!known, "recompute", "modules", "it is by operation, or every n-th layer");
  out += m.products == 0.5 || !known ? "selective_ac_option = \"op\"\n"
                                     : fmt::format("selective_ac_option = \"{:g}\"\n", every);
  return out;
}

}  // namespace

ExportedJob export_torchtitan(const Scenario& scenario) {
  LeftOut left("TorchTitan's TOML");
  const TrainingJob& job = scenario.job;
  const Batch& batch = job.batch;
  std::string text = "# " + machine_words(scenario) + "\n\n" + titan_model(scenario, left) + "\n";
  const bool pipelined = job.parallelism.pipeline > 1;
  const int local = pipelined ? batch.sequences / job.parallelism.data : batch.micro_sequences;
  text += fmt::format("[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                      local, batch.sequences, batch.tokens);
  text += fmt::format("enable_cpu_offload = {}\n\n",
                      on_off(job.offload.parameters && job.offload.optimiser >= 1));
  const bool half = job.offload.optimiser > 0 && !job.offload.parameters;
  left.when(half, "offload.optimiser", number_text(job.offload.optimiser));
  left.when(job.offload.activation_layers > 0, "offload.activation_layers",
            std::to_string(job.offload.activation_layers));
  text += titan_parallelism(scenario, left) + "\n" + titan_recompute(job, left);
  text += fmt::format("\n[compile]\nenable = {}\ncomponents = [\"model\", \"loss\"]\n",
                      on_off(scenario.stack.name != "torchtitan_eager"));
  left.when(true, "cluster.nodes", std::to_string(scenario.nodes), "who launches it says that");
  left.when(job.routing.capacity > 0 || job.routing.imbalance > 1 || job.routing.zipf > 0,
            "routing", "uneven");
  leave_out_machine(scenario, left);
  leave_out_training(scenario, left);
  return {std::move(text), left.take()};
}

}  // namespace lockstep
