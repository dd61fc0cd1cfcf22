#include "models/memory.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <tuple>
#include <utility>

#include "models/pipeline/schedule.hpp"
#include "models/workload/partition.hpp"

namespace lockstep {
namespace {

constexpr double kHalf = 2;       ///< bytes of a 16-bit element
constexpr double kQuantised = 1;  ///< of an 8-bit one; assumed of 4-bit ones, kept in two layouts

double tokens_of(const TrainingJob& job) {
  return static_cast<double>(job.batch.micro_sequences) * job.batch.tokens;
}

/// The replicated part of a layer is cut too where norms and residuals are split over the group.
double sequence_ways(const Parallelism& par) { return par.sequence ? par.tensor : 1; }

/// Bytes per token, all ranks of the group together, of tensors of width h: inputs of both norms,
/// inputs of the products behind them, and the dropout masks of models that have dropout.
double residual_bytes(const TrainingJob& job) {
  const bool has_dropout = job.model.biases && !job.model.gated;
  const double operand = is_quantised(job.precision) ? kQuantised : kHalf;
  return job.model.hidden * (2 * kHalf + 2 * operand + (has_dropout ? 2 : 0));
}

/// Bytes per token of Q, K, V and the output of attention, and of what unfused attention keeps of
/// its scores (softmax, its dropout mask and the dropped-out softmax; arXiv:2205.05198).
double attention_bytes(const TrainingJob& job, const StackSpec& stack) {
  const TransformerShape& m = job.model;
  const double qkv = kHalf * (m.heads + 2.0 * m.kv_heads) * m.head_dim;
  const double copies = m.rotary && stack.memory.rotary_copies ? qkv : 0;
  // Quantised output projections keep their own operand beside the output that attention keeps.
  const double operand = is_quantised(job.precision) ? kQuantised : 0;
  const double output = (kHalf + operand) * m.heads * m.head_dim;
  const bool keeps_scores =
      stack.attention == AttentionKernel::unfused && job.recompute == Recompute::none;
  return qkv + copies + output + (keeps_scores ? 5.0 * m.heads * job.batch.tokens : 0);
}

/// Bytes per token of the MLP: input and output of the activation.
double mlp_bytes(const TrainingJob& job, const StackSpec& stack) {
  const double saved = job.model.gated ? stack.memory.gated_mlp_bytes : 2 * kHalf;
  const double quantised = is_quantised(job.precision) ? kHalf - kQuantised : 0;
  return job.model.ffn * (saved - quantised);
}

/// As saved_per_layer() when nothing is recomputed.
double whole_layer_bytes(const TrainingJob& job, const StackSpec& stack) {
  const Parallelism& par = job.parallelism;
  const double split = (attention_bytes(job, stack) + mlp_bytes(job, stack)) / par.tensor;
  return tokens_of(job) * (residual_bytes(job) / sequence_ways(par) + split);
}

struct StageShape {
  double layers = 0;
  double parameters = 0;  ///< on one GPU, before sharding
  bool has_head = false;
};

StageShape stage_shape(const TrainingJob& job, int stage) {
  const TransformerShape& m = job.model;
  const Parallelism& par = job.parallelism;
  const std::vector<int> split = layers_per_virtual_stage(m, par);
  StageShape out;
  const PipelineShape shape = pipeline_shape(par);
  bool has_embedding = false;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    out.layers += split[static_cast<std::size_t>(shape.stage_of({stage, chunk}))];
    has_embedding = has_embedding || shape.is_first({stage, chunk});
    out.has_head = out.has_head || shape.is_last({stage, chunk});
  }
  out.parameters = out.layers * layer_parameters(m);
  if (has_embedding) out.parameters += embedding_parameters(m);
  // A tied output projection is a copy unless the embedding is on the same stage.
  if (out.has_head && !(m.tied && has_embedding)) {
    out.parameters += static_cast<double>(m.vocabulary) * m.hidden;
  }
  out.parameters /= par.tensor;
  return out;
}

/// Bytes per parameter of the accumulated gradient. Accumulation in fp32 came with bf16: fp16
/// training scales the loss and accumulates in fp16 (github:NVIDIA/Megatron-LM: arguments.py).
double gradient_bytes(const TrainingJob& job, const StackSpec& stack) {
  return job.precision == Precision::fp16 ? std::min(kHalf, stack.main_gradient_bytes)
                                          : stack.main_gradient_bytes;
}

/// Weights, gradients and optimiser states.
MemoryBreakdown model_states(const TrainingJob& job, const StackSpec& stack, double parameters) {
  const Parallelism& par = job.parallelism;
  const double shards = par.sharding == Sharding::none ? 1 : par.data;
  MemoryBreakdown out;
  out.weights = Bytes{kHalf * parameters};
  out.gradients = Bytes{gradient_bytes(job, stack) * parameters};
  if (par.sharding == Sharding::zero2 && par.data > 1) {
    // Of each model chunk, gradients are whole only until its micro batches are through.
    out.gradients = std::min(1.0, 1.0 / par.data + 1.0 / par.virtual_stages) * out.gradients;
  }
  out.optimiser = Bytes{stack.memory.optimiser_state_bytes * parameters / shards};
  return out;
}

/// Gathered input and unscattered output of a product of a tensor-parallel layer, and the tensors
/// that come from and go to the neighbouring stages.
double exchange_bytes(const TrainingJob& job) {
  const Parallelism& par = job.parallelism;
  const double tensor = kHalf * tokens_of(job) * job.model.hidden;
  return (par.tensor > 1 ? 2 * tensor : 0) +
         (par.pipeline > 1 ? 2 * tensor / sequence_ways(par) : 0);
}

/// Adds workspaces and fragmentation.
MemoryBreakdown in_allocator(MemoryBreakdown m, const MemoryPolicy& policy) {
  m.framework = (policy.fragmentation - 1) * m.needed() + policy.workspace;
  return m;
}

/// A pipelined stage waits for its neighbours and does not run ahead of them. Four gathered or
/// unscattered tensors a layer.
Bytes run_ahead_bytes(const TrainingJob& job, const StackSpec& stack) {
  const Parallelism& par = job.parallelism;
  if (par.tensor == 1 || par.pipeline > 1) return {};
  const double layers = std::min<double>(stack.memory.run_ahead_layers, job.model.layers);
  return Bytes{4 * layers * kHalf * tokens_of(job) * job.model.hidden};
}

/// The stage that needs most.
std::pair<int, MemoryBreakdown> fullest(const TrainingJob& job, const StackSpec& stack) {
  std::pair<int, MemoryBreakdown> most{0, peak_memory(job, stack, 0)};
  for (int stage = 1; stage < job.parallelism.pipeline; ++stage) {
    const MemoryBreakdown m = peak_memory(job, stack, stage);
    if (m.needed() > most.second.needed()) most = {stage, m};
  }
  return most;
}

std::string gib_text(Bytes bytes) {
  const auto tenths = static_cast<long>(10 * double{bytes / gibibytes(1)} + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::string instead(const char* what, int now, int before) {
  return std::string(what) + " " + std::to_string(now) + " instead of " + std::to_string(before);
}

void add_smaller_micro_batches(const TrainingJob& job, std::vector<MemoryRemedy>& out) {
  const int before = job.batch.micro_sequences;
  for (int b = before - 1; b >= 1; --b) {
    if (before % b != 0) continue;
    out.push_back({instead("micro batch", b, before), job});
    out.back().job.batch.micro_sequences = b;
  }
}

void add_recompute(const TrainingJob& job, const std::string& before,
                   std::vector<MemoryRemedy>& out) {
  for (const auto& [recompute, name] : {std::pair{Recompute::selective, "selective recomputation"},
                                        std::pair{Recompute::full, "full recomputation"}}) {
    if (recompute <= job.recompute) continue;
    out.push_back({before + name, job});
    out.back().job.recompute = recompute;
  }
}

/// With `ways` times as many GPUs to a replica, and as many fewer replicas where they divide.
TrainingJob with_fewer_replicas(const TrainingJob& job, int ways, std::string& words) {
  TrainingJob out = job;
  if (job.parallelism.data % ways == 0) {
    out.parallelism.data /= ways;
    words += " and data " + std::to_string(out.parallelism.data);
  } else {
    words += " on " + std::to_string(ways) + " times the GPUs";
  }
  return out;
}

void add_wider_tensor(const TrainingJob& job, const StackSpec& stack, int ways,
                      std::vector<MemoryRemedy>& out) {
  const int tensor = job.parallelism.tensor * ways;
  const TransformerShape& m = job.model;
  if (m.heads % tensor != 0 || (m.kv_heads % tensor != 0 && tensor % m.kv_heads != 0)) return;
  std::string words = instead("tensor", tensor, job.parallelism.tensor);
  TrainingJob wider = with_fewer_replicas(job, ways, words);
  if (job.parallelism.tensor == 1) {
    wider.parallelism.sequence = stack.communication.sequence_parallel_default;
  }
  wider.parallelism.tensor = tensor;
  out.push_back({std::move(words), std::move(wider)});
}

void add_longer_pipeline(const TrainingJob& job, int ways, std::vector<MemoryRemedy>& out) {
  const Parallelism& par = job.parallelism;
  const int pipeline = par.pipeline * ways;
  if (!par.layers_per_stage.empty() || pipeline * par.virtual_stages > job.model.layers) return;
  std::string words = instead("pipeline", pipeline, par.pipeline);
  TrainingJob longer = with_fewer_replicas(job, ways, words);
  longer.parallelism.pipeline = pipeline;
  out.push_back({std::move(words), std::move(longer)});
}

}  // namespace

Bytes saved_per_layer(const TrainingJob& job, const StackSpec& stack) {
  if (job.recompute != Recompute::full) return Bytes{whole_layer_bytes(job, stack)};
  return Bytes{kHalf * tokens_of(job) * job.model.hidden / sequence_ways(job.parallelism)};
}

double micro_batches_in_flight(const TrainingJob& job, int stage) {
  const Parallelism& par = job.parallelism;
  return chunks_in_flight(par, job.micro_batches(), stage) / pipeline_shape(par).chunks;
}

MemoryBreakdown peak_memory(const TrainingJob& job, const StackSpec& stack, int stage) {
  assert(stage >= 0 && stage < job.parallelism.pipeline);
  const Parallelism& par = job.parallelism;
  const MemoryPolicy& policy = stack.memory;
  const StageShape shape = stage_shape(job, stage);
  const double replicated = par.data > 1 ? policy.replica_bytes * shape.parameters : 0;

  MemoryBreakdown backward = model_states(job, stack, shape.parameters);
  backward.activations =
      shape.layers * micro_batches_in_flight(job, stage) * saved_per_layer(job, stack);
  if (job.recompute == Recompute::full && shape.layers > 0) {
    backward.activations += Bytes{whole_layer_bytes(job, stack)};
  }
  if (shape.has_head) {
    backward.logits =
        Bytes{policy.logit_bytes * tokens_of(job) * job.model.vocabulary / par.tensor};
  }
  backward.communication = Bytes{replicated + exchange_bytes(job)};

  MemoryBreakdown update = model_states(job, stack, shape.parameters);
  const bool gathers = par.sharding != Sharding::none && par.data > 1;
  update.communication = Bytes{replicated + (gathers ? policy.gather_bytes * shape.parameters : 0)};

  backward = in_allocator(backward, policy);
  update = in_allocator(update, policy);
  backward.cached = run_ahead_bytes(job, stack);
  return update.needed() > backward.total() ? update : backward;
}

Bytes usable_memory(const GpuSpec& gpu, const StackSpec& stack) {
  return std::max(Bytes{}, gpu.hbm_capacity - stack.memory.outside);
}

std::vector<MemoryRemedy> memory_remedies(const TrainingJob& job, const StackSpec& stack) {
  std::vector<MemoryRemedy> out;
  add_smaller_micro_batches(job, out);
  add_recompute(job, "", out);
  if (job.parallelism.sharding == Sharding::none && job.parallelism.data > 1) {
    TrainingJob sharded = job;
    sharded.parallelism.sharding = Sharding::zero1;
    out.push_back({"a sharded optimiser (zero1)", sharded});
    add_recompute(sharded, "a sharded optimiser (zero1) and ", out);
  }
  for (const int ways : {2, 4, 8}) {
    add_wider_tensor(job, stack, ways, out);
    add_longer_pipeline(job, ways, out);
  }
  std::erase_if(out, [](const MemoryRemedy& remedy) {
    return !schedule_takes(remedy.job.parallelism, remedy.job.micro_batches());
  });
  return out;
}

MemoryVerdict check_memory(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu) {
  MemoryVerdict verdict;
  std::tie(verdict.fullest_stage, verdict.peak) = fullest(job, stack);
  verdict.usable = usable_memory(gpu, stack);
  verdict.fits = verdict.peak.needed() <= verdict.usable;
  const Bytes left = std::max(Bytes{}, verdict.usable - verdict.peak.needed());
  verdict.peak.cached = std::min(verdict.peak.cached, left);
  if (verdict.fits) return verdict;
  for (const MemoryRemedy& remedy : memory_remedies(job, stack)) {
    const Bytes needed = fullest(remedy.job, stack).second.needed();
    if (needed > verdict.usable) continue;
    verdict.nearest_fit = remedy.words + " (" + gib_text(needed) + ")";
    break;
  }
  return verdict;
}

}  // namespace lockstep
