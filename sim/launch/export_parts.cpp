#include "sim/launch/export_parts.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "models/spec/partition.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

std::string safe_word(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    out += plain ? c : '_';
  }
  return out;
}

/// "Ett|tt|ttL": the layers of each stage.
std::string layout_letters(const std::vector<int>& layers) {
  std::string out = "E";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) out += "|";
    out += layers[i] > 0 ? fmt::format("t*{}", layers[i]) : "";
  }
  return out + "L";
}

/// Layers of every virtual stage; empty where each has the same number.
std::vector<int> unequal_stages(const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  if (cut.pipeline == 1) return {};
  std::vector<int> layers = layers_per_virtual_stage(scenario.job.model, cut);
  const bool same = std::ranges::all_of(layers, [&](int n) { return n == layers.front(); });
  if (same) layers.clear();
  return layers;
}

void add_layout(const Scenario& scenario, LeftOut& left, KeyValues& out) {
  const Parallelism& cut = scenario.job.parallelism;
  out.emplace_back("tensor_model_parallel_size", std::to_string(cut.tensor));
  out.emplace_back("pipeline_model_parallel_size", std::to_string(cut.pipeline));
  out.emplace_back("context_parallel_size", std::to_string(cut.context));
  const std::vector<int> stages = unequal_stages(scenario);
  if (!stages.empty()) {
    out.emplace_back("pipeline_model_parallel_layout", layout_letters(stages));
  } else if (cut.pipeline > 1 && cut.virtual_stages > 1) {
    out.emplace_back("virtual_pipeline_model_parallel_size", std::to_string(cut.virtual_stages));
  }
  out.emplace_back("sequence_parallel", on_off(cut.sequence));
  if (cut.context > 1) {
    constexpr std::array<std::string_view, 3> kExchanges{"p2p", "all_gather", "a2a"};
    out.emplace_back("cp_comm_type",
                     std::string(kExchanges.at(static_cast<std::size_t>(cut.context_exchange))));
  }
  const bool usual = cut.schedule == Schedule::one_f_one_b || cut.schedule == Schedule::interleaved;
  left.when(cut.pipeline > 1 && !usual, "parallelism.schedule", std::string(name_of(cut.schedule)),
            "it has 1F1B, and with virtual stages the interleaved schedule");
}

void add_experts(const Scenario& scenario, LeftOut& left, KeyValues& out) {
  const Parallelism& cut = scenario.job.parallelism;
  const ExpertShape& experts = scenario.job.model.experts;
  if (experts.count == 0) return;
  const auto add = [&](const char* key, int value) {
    out.emplace_back(key, std::to_string(value));
  };
  add("expert_model_parallel_size", cut.expert);
  add("expert_tensor_parallel_size", cut.expert_tensor);
  add("num_moe_experts", experts.count);
  add("moe_router_topk", experts.per_token);
  add("moe_ffn_hidden_size", experts.ffn);
  if (experts.shared_ffn > 0) add("moe_shared_expert_intermediate_size", experts.shared_ffn);
  if (experts.latent > 0) add("moe_latent_size", experts.latent);
  const bool two_level = cut.expert > 1 && cut.expert_dispatch == ExpertDispatch::two_level;
  out.emplace_back("moe_token_dispatcher_type", two_level ? "flex" : "alltoall");
  if (cut.expert > 1 && cut.expert_overlap) {
    out.emplace_back("overlap_moe_expert_parallel_comm", "true");
  }
  if (experts.leading_dense > 0 || experts.interval > 1) {
    std::string list;
    for (int layer = 0; layer < scenario.job.model.layers; ++layer) {
      list += scenario.job.model.kind(layer).experts ? ",1" : ",0";
    }
    out.emplace_back("moe_layer_freq", "[" + list.substr(1) + "]");
  }
  const ExpertRouting& routing = scenario.job.routing;
  if (routing.capacity > 0) {
    out.emplace_back("moe_expert_capacity_factor", number_text(routing.capacity));
    out.emplace_back("moe_pad_expert_input_to_capacity", on_off(routing.padded));
  }
  left.when(routing.imbalance > 1 || routing.zipf > 0, "routing", "uneven",
            "what tokens do is no setting");
}

void add_attention(const TransformerShape& model, KeyValues& out) {
  const auto add = [&](const char* key, int value) {
    out.emplace_back(key, std::to_string(value));
  };
  add("num_attention_heads", model.heads);
  if (model.latent.key_value_rank > 0) {
    out.emplace_back("multi_latent_attention", "true");
    if (model.latent.query_rank > 0) add("q_lora_rank", model.latent.query_rank);
    add("kv_lora_rank", model.latent.key_value_rank);
    add("qk_head_dim", model.latent.nope_dim);
    add("qk_pos_emb_head_dim", model.latent.rope_dim);
    add("v_head_dim", model.latent.value_dim);
    return;
  }
  out.emplace_back("group_query_attention", on_off(model.kv_heads != model.heads));
  if (model.kv_heads != model.heads) add("num_query_groups", model.kv_heads);
  add("kv_channels", model.head_dim);
}

void add_model(const Scenario& scenario, LeftOut& left, KeyValues& out) {
  const TransformerShape& model = scenario.job.model;
  const auto add = [&](const char* key, int value) {
    out.emplace_back(key, std::to_string(value));
  };
  add("num_layers", model.layers);
  add("hidden_size", model.hidden);
  add("ffn_hidden_size", model.ffn);
  add_attention(model, out);
  out.emplace_back("swiglu", on_off(model.gated));
  out.emplace_back("disable_bias_linear", on_off(!model.biases));
  out.emplace_back("untie_embeddings_and_output_weights", on_off(!model.tied));
  out.emplace_back("position_embedding_type", model.rotary              ? "rope"
                                              : model.learned_positions ? "learned_absolute"
                                                                        : "none");
  if (model.learned_positions) add("max_position_embeddings", model.max_positions);
  add("vocab_size", model.vocabulary);
  add("make_vocab_size_divisible_by", 1);
  if (model.predicted_tokens > 0) add("mtp_num_layers", model.predicted_tokens);
  if (!model.pattern.empty() && model.kinds.empty()) {
    out.emplace_back("hybrid_layer_pattern", model.pattern);
    if (model.mamba.heads > 0) {
      add("mamba_num_heads", model.mamba.heads);
      add("mamba_head_dim", model.mamba.head_dim);
      add("mamba_num_groups", model.mamba.groups);
      add("mamba_state_dim", model.mamba.state);
    }
  }
  const bool other =
      !model.kinds.empty() || model.window > 0 || model.parallel || model.bidirectional ||
      model.residual_streams > 1 || model.low_rank.query_rank > 0 || model.vision_parameters > 0 ||
      model.table_width > 0 || !model.last_norm || (model.rotary && model.learned_positions);
  left.when(other, "model", model.name,
            "layers of other kinds than attention, MLP, experts, Mamba");
}

void add_recompute(const Scenario& scenario, LeftOut& left, KeyValues& out) {
  const TrainingJob& job = scenario.job;
  if (job.recompute == Recompute::none) return;
  out.emplace_back("recompute_granularity",
                   job.recompute == Recompute::full ? "full" : "selective");
  if (job.recompute == Recompute::full) {
    out.emplace_back("recompute_method", "uniform");
    out.emplace_back("recompute_num_layers", "1");
    return;
  }
  const RecomputeModules& m = job.modules;
  std::string names;
  const auto add = [&](bool there, std::string_view name) {
    if (there) names += (names.empty() ? "" : " ") + std::string(name);
  };
  add(m.core_attention || m.fused_attention, "core_attn");
  add(m.layer_norm, "layernorm");
  add(m.activation, "moe_act");
  add(m.latent_up, "mla_up_proj");
  add(m.mlp, "mlp");
  out.emplace_back("recompute_modules", names);
  left.when(m.mlp_up || m.projection || m.products > 0, "recompute", "modules",
            "it repeats core_attn, layernorm, moe_act, mla_up_proj, mlp");
}

}  // namespace

void LeftOut::when(bool is_lost, const std::string& path, const std::string& value,
                   const std::string& why) {
  if (is_lost) out_.push_back({path, value, why.empty() ? "no word in " + format_ : why});
}

std::string on_off(bool value) { return value ? "true" : "false"; }

int accumulation(const Scenario& scenario) { return scenario.job.micro_batches(); }

std::string machine_words(const Scenario& scenario) {
  return fmt::format("{} of {}, {} GPUs in all", counted(scenario.nodes, "node"),
                     safe_word(scenario.node.name), scenario.gpus());
}

void leave_out_machine(const Scenario& scenario, LeftOut& left) {
  left.when(!scenario.pools.empty(), "cluster.pools", "several kinds of node");
  left.when(!scenario.micro_batches.empty(), "batch.micro_batches", "unequal");
  left.when(!scenario.stragglers.empty(), "stragglers", "slow GPUs");
  left.when(scenario.job.batch.sample_tokens > 0, "batch.sample_tokens",
            number_text(scenario.job.batch.sample_tokens), "the data say it");
  left.when(scenario.job.parallelism.order != nullptr, "parallelism.schedule_file", "a file");
}

void leave_out_training(const Scenario& scenario, LeftOut& left) {
  left.when(scenario.job.adapters.any(), "lora", "adapters");
  left.when(scenario.job.frozen.any(), "frozen", "parts that are not trained");
}

void leave_out_gathering(const Scenario& scenario, LeftOut& left) {
  const Parallelism& cut = scenario.job.parallelism;
  if (cut.sharding != Sharding::zero3) return;
  left.when(cut.reshard != (cut.pipeline == 1), "parallelism.reshard", on_off(cut.reshard));
  left.when(cut.prefetch != 1, "parallelism.prefetch", std::to_string(cut.prefetch));
}

MegatronWords megatron_words(const Scenario& scenario, LeftOut& left) {
  MegatronWords out;
  add_layout(scenario, left, out.layout);
  add_experts(scenario, left, out.experts);
  add_model(scenario, left, out.model);
  add_recompute(scenario, left, out.recompute);
  const Batch& batch = scenario.job.batch;
  out.batch.emplace_back("micro_batch_size", std::to_string(batch.micro_sequences));
  out.batch.emplace_back("global_batch_size", std::to_string(batch.sequences));
  out.batch.emplace_back("seq_length", std::to_string(batch.tokens));
  leave_out_machine(scenario, left);
  leave_out_training(scenario, left);
  return out;
}

}  // namespace lockstep
