#include "models/memory.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "models/workload/partition.hpp"

namespace lockstep {
namespace {

/// Saved per layer for the backward pass, bytes of one micro batch on one GPU. Counts the tensors
/// that Korthikanti et al. 2022, arXiv:2205.05198, section 4.1 counts, with the widths of this model.
double layer_activation_bytes(const TrainingJob& job, const StackSpec& stack) {
  const TransformerShape& m = job.model;
  const double t = job.parallelism.tensor;
  const double tokens = static_cast<double>(job.batch.micro_sequences) * job.batch.tokens;
  const double h = m.hidden;
  const double shared = job.parallelism.sequence ? t : 1;
  if (job.recompute == Recompute::full) return 2 * tokens * h / shared;
  const double d = m.head_dim;
  // Replicated over the group unless sequence parallel: two norm inputs and their outputs (the inputs
  // of the products), and two dropout masks where the model has dropout.
  const double whole = tokens * h * (8 + (m.gated ? 0 : 2)) / shared;
  // Split over heads and MLP columns: query, key, value, attention output; MLP products and activation.
  const double attention = tokens * (2 * (m.heads + 2.0 * m.kv_heads) * d + 2 * m.heads * d) / t;
  const double mlp = tokens * m.ffn * (m.gated ? 8 : 4) / t;
  double scores = 0;
  if (stack.attention == AttentionKernel::unfused && job.recompute == Recompute::none) {
    scores = 5.0 * m.heads / t * job.batch.tokens * tokens;
  }
  return whole + attention + mlp + scores;
}

/// Micro-batch passes whose activations a stage holds at once, in units of its layers.
double micro_batches_in_flight(const TrainingJob& job, int stage) {
  const Parallelism& par = job.parallelism;
  const double m = job.micro_batches(), p = par.pipeline, v = par.virtual_stages;
  if (par.schedule == Schedule::gpipe) return m;
  if (par.schedule == Schedule::one_f_one_b || p == 1) return std::min(m, p - stage);
  // Warm-up of the interleaved schedule: 2 (p - stage - 1) + (v - 1) p chunks, and the one at work.
  return std::min(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1) / v;
}

std::string describe(const std::string& change, const MemoryBreakdown& peak) {
  const auto tenths = static_cast<long>(peak.total().base_units() / 1073741824.0 * 10 + 0.5);
  return change + " (" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB)";
}

std::pair<int, MemoryBreakdown> fullest(const TrainingJob& job, const StackSpec& stack) {
  std::pair<int, MemoryBreakdown> most{0, peak_memory(job, stack, 0)};
  for (int stage = 1; stage < job.parallelism.pipeline; ++stage) {
    const MemoryBreakdown m = peak_memory(job, stack, stage);
    if (m.total() > most.second.total()) most = {stage, m};
  }
  return most;
}

}  // namespace

MemoryBreakdown peak_memory(const TrainingJob& job, const StackSpec& stack, int stage) {
  const TransformerShape& m = job.model;
  const Parallelism& par = job.parallelism;
  const double t = par.tensor;
  const std::vector<int> split = layers_per_virtual_stage(m, par);
  double layers = 0;
  for (int chunk = 0; chunk < par.virtual_stages; ++chunk) {
    layers += split[static_cast<std::size_t>(chunk * par.pipeline + stage)];
  }
  const bool first = stage == 0, last = stage == par.pipeline - 1;
  double parameters = layers * layer_parameters(m);
  if (first) parameters += embedding_parameters(m);
  if (last && !(m.tied && first)) parameters += static_cast<double>(m.vocabulary) * m.hidden;
  parameters /= t;
  const double shards = par.sharding == Sharding::none ? 1 : par.data;
  const double tokens = static_cast<double>(job.batch.micro_sequences) * job.batch.tokens;

  MemoryBreakdown peak;
  peak.weights = Bytes{2 * parameters};
  peak.gradients = Bytes{stack.main_gradient_bytes * parameters};
  peak.optimiser = Bytes{12 * parameters / shards};
  const double saved = layer_activation_bytes(job, stack);
  peak.activations = Bytes{layers * saved * micro_batches_in_flight(job, stage)};
  if (job.recompute == Recompute::full) {
    TrainingJob one = job;
    one.recompute = Recompute::none;
    peak.activations += Bytes{layer_activation_bytes(one, stack)};
  }
  // Logits in 16 bit, in 32 bit for the loss, and their gradient.
  if (last) peak.logits = Bytes{8 * tokens * m.vocabulary / t};
  if (par.data > 1) peak.communication = Bytes{2 * parameters};
  peak.framework = gibibytes(1.5);
  return peak;
}

Bytes usable_memory(const GpuSpec& gpu) { return 0.94 * gpu.hbm_capacity; }

MemoryVerdict check_memory(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu) {
  MemoryVerdict verdict;
  std::tie(verdict.fullest_stage, verdict.peak) = fullest(job, stack);
  verdict.usable = usable_memory(gpu);
  verdict.fits = verdict.peak.total() <= verdict.usable;
  if (verdict.fits) return verdict;
  const auto attempt = [&](const std::string& change, const TrainingJob& other) {
    if (!verdict.nearest_fit.empty()) return;
    const MemoryBreakdown peak = fullest(other, stack).second;
    if (peak.total() <= verdict.usable) verdict.nearest_fit = describe(change, peak);
  };
  for (int b = job.batch.micro_sequences - 1; b >= 1; --b) {
    if (job.batch.micro_sequences % b != 0) continue;
    TrainingJob other = job;
    other.batch.micro_sequences = b;
    attempt("micro batch " + std::to_string(b), other);
  }
  for (const auto& [recompute, name] : {std::pair{Recompute::selective, "selective recomputation"},
                                        std::pair{Recompute::full, "full recomputation"}}) {
    if (recompute <= job.recompute) continue;
    TrainingJob other = job;
    other.recompute = recompute;
    attempt(name, other);
  }
  if (job.parallelism.sharding == Sharding::none && job.parallelism.data > 1) {
    TrainingJob other = job;
    other.parallelism.sharding = Sharding::zero1;
    attempt("a sharded optimiser (zero1)", other);
  }
  return verdict;
}

}  // namespace lockstep
