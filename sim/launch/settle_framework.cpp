// What several keys of one framework say together, and what it has where they say nothing.
#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/launch/settle_job.hpp"

namespace lockstep {
namespace {

/// The width of the MLP: LLaMA's own class takes it as it is, or 8 / 3 h up to a multiple of 256
/// (megatron/model/transformer.py, LLaMAParallelMLP); ParallelMLP cuts that of a gated one to a
/// third, so that "intermediate_size" is three times the width of its output.
void neox_mlp(JobSketch& job) {
  ModelSketch& model = job.model;
  constexpr std::array<std::string_view, 4> kGated{"geglu", "reglu", "bilinear", "swiglu"};
  const std::int64_t hidden = model.hidden.value_or(0);
  const auto up_to = [](std::int64_t value, std::int64_t multiple) {
    return static_cast<int>((value + multiple - 1) / multiple * multiple);
  };
  if (job.neox_mlp == "llama") {
    constexpr std::int64_t kMultiple = 256;
    model.gated = true;
    if (!model.ffn && hidden > 0) model.ffn = up_to(hidden * 8 / 3, kMultiple);
    return;
  }
  model.gated = std::ranges::find(kGated, job.neox_activation) != kGated.end();
  const double factor = job.neox_expansion.value_or(4);
  const std::int64_t whole =
      model.ffn ? *model.ffn : static_cast<std::int64_t>(factor * static_cast<double>(hidden));
  if (whole == 0) return;
  const std::int64_t multiple = job.neox_mlp_multiple.value_or(1);
  model.ffn = up_to(*model.gated ? whole * 2 / 3 / 2 : whole, multiple);
  if (*model.gated) {
    job.remarks.push_back(fmt::format("GPT-NeoX cuts the width of a gated MLP, {}, to a third: {}",
                                      whole, *model.ffn));
  }
}

/// What GPT-NeoX has where its keys say nothing, and what several of them say together
/// (EleutherAI/gpt-neox, megatron/neox_arguments/neox_args.py).
void settle_neox(JobSketch& job) {
  ModelSketch& model = job.model;
  if (model.position_kind.empty()) model.position_kind = "learned_absolute";
  if (!job.neox_precision.empty()) job.precision = job.neox_precision;
  neox_mlp(job);
  if (model.parallel == true) {
    if (!model.separate_norms) model.separate_norms = true;
    if (model.experts) {
      model.parallel = false;
      job.remarks.emplace_back("gpt_j_residual beside experts: taken as one after the other");
    }
  }
}

/// Its configurations are LLaMA's unless they say otherwise
/// (huggingface/nanotron, src/nanotron/config/models_config.py); a job is all of its replicas.
void settle_nanotron(JobSketch& job) {
  ModelSketch& model = job.model;
  model.gated = model.gated.value_or(true);
  model.biases = model.biases.value_or(false);
  model.tied = model.tied.value_or(false);
  model.vocabulary_multiple = model.vocabulary_multiple.value_or(1);
  model.position_kind = "rope";
  if (job.schedule.empty()) job.schedule = "gpipe";
  if (!job.sequence) job.sequence = false;
  if (!job.data) return;
  constexpr std::int64_t kMostWidths = 16'000'000;
  std::int64_t all = 1;
  for (const std::optional<int>& width : {job.data, job.tensor, job.pipeline, job.context}) {
    all = std::min(kMostWidths, all * std::int64_t{width.value_or(1)});
  }
  job.gpus = static_cast<int>(all);
}

/// Builders of torchtune that take sizes are those of LLaMA-like decoders.
void settle_torchtune(JobSketch& job) {
  ModelSketch& model = job.model;
  model.gated = model.gated.value_or(true);
  model.biases = model.biases.value_or(false);
  model.tied = model.tied.value_or(false);
  model.vocabulary_is_padded = true;
  model.position_kind = "rope";
  if (model.layers) model.hint = std::exchange(model.name, {});
}

/// MPT, where a file says its sizes: an MLP without a gate, learned positions unless it has ALiBi
/// or RoPE, biases, tied embeddings (llmfoundry/models/mpt/configuration_mpt.py). Weights are
/// sharded by FSDP where the file has its section.
void settle_foundry(SketchedJob& sketched) {
  JobSketch& job = sketched.job;
  ModelSketch& model = job.model;
  if (model.hidden) {
    model.gated = model.gated.value_or(false);
    model.biases = model.biases.value_or(true);
    model.tied = model.tied.value_or(true);
    if (model.position_kind.empty()) model.position_kind = "learned_absolute";
    if (!model.positions) model.positions = job.tokens;
    const double factor = job.neox_expansion.value_or(4);
    if (!model.ffn) model.ffn = static_cast<int>(factor * static_cast<double>(*model.hidden));
  }
  model.vocabulary_is_padded = true;
  const bool fsdp = std::ranges::any_of(sketched.keys, [](const KeyFinding& key) {
    return plain_key(key.setting.key).starts_with("fsdp_config.");
  });
  if (job.sharding.empty()) job.sharding = fsdp ? "zero3" : "none";
  job.fsdp_version = 1;
}

/// Its models have LLaMA's form unless their type says otherwise; weights are sharded over all
/// replicas and layers recomputed unless a key says otherwise.
void settle_levanter(JobSketch& job) {
  ModelSketch& model = job.model;
  model.gated = model.gated.value_or(true);
  model.biases = model.biases.value_or(false);
  model.tied = model.tied.value_or(false);
  model.vocabulary_is_padded = true;
  if (model.position_kind.empty()) model.position_kind = "rope";
  job.sharding = "zero3";
  if (job.recompute.empty()) job.recompute = "full";
  job.remarks.emplace_back("Levanter's software is taken as MaxText's: both run JAX");
}

/// "batch_size" is a replica's; a pipeline takes it in micro batches.
void settle_colossal(JobSketch& job) {
  if (!job.local) return;
  const int micro = job.micro.value_or(*job.local);
  job.micro = std::min(micro, *job.local);
  if (*job.local % *job.micro == 0) {
    constexpr std::int64_t kMostTogether = 100'000'000;
    const std::int64_t steps = std::int64_t{*job.local / *job.micro} * job.accumulation.value_or(1);
    job.accumulation = static_cast<int>(std::min(kMostTogether, steps));
  }
  job.local.reset();
}

}  // namespace

void settle_framework(const LaunchFiles& files, SketchedJob& sketched) {
  if (has_part(files, LaunchKind::neox)) settle_neox(sketched.job);
  if (has_part(files, LaunchKind::nanotron)) settle_nanotron(sketched.job);
  if (has_part(files, LaunchKind::torchtune)) settle_torchtune(sketched.job);
  if (has_part(files, LaunchKind::foundry)) settle_foundry(sketched);
  if (has_part(files, LaunchKind::levanter)) settle_levanter(sketched.job);
  if (has_part(files, LaunchKind::colossal)) settle_colossal(sketched.job);
}

}  // namespace lockstep
