/// Peak memory of a GPU, per pipeline stage, with its parts; whether a job fits, and what would.
///
/// What is saved per layer for the backward pass is counted tensor by tensor as in Korthikanti et
/// al. 2022, arXiv:2205.05198, section 4.1, with the widths of the model; for a GPT layer that is
/// their 34 s b h bytes. Which tensors a software keeps beside is in MemoryPolicy
/// (models/spec/software.hpp).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

struct MemoryBreakdown {
  Bytes weights;
  Bytes gradients;      ///< accumulated over the micro batches
  Bytes optimiser;      ///< states, sharded or not
  Bytes activations;    ///< saved for backward passes to come, and what one layer recomputes
  Bytes logits;         ///< of one micro batch, last stage
  Bytes communication;  ///< gathered tensors, received activations, gradient buckets
  Bytes framework;      ///< workspaces, and what the allocator loses to fragmentation
  Bytes cached;         ///< waits for other streams; the allocator frees it before it fails
  Bytes host;           ///< not on the GPU: what its part of the job takes of the node's memory

  /// What must be there for the step to run.
  [[nodiscard]] Bytes needed() const {
    return weights + gradients + optimiser + activations + logits + communication + framework;
  }
  /// What the framework reports as reserved.
  [[nodiscard]] Bytes total() const { return needed() + cached; }
};

/// Peak within a step of one GPU of pipeline stage `stage` (0-based, below Parallelism::pipeline),
/// `cached` as large as it gets on a card without limit.
MemoryBreakdown peak_memory(const TrainingJob& job, const StackSpec& stack, int stage);
/// Of every stage, in order: what layers are like is found once for all.
std::vector<MemoryBreakdown> peak_memories(const TrainingJob& job, const StackSpec& stack);

/// Whether what peak_memory() says is needed has room in `usable` on every stage.
bool fits(const TrainingJob& job, const StackSpec& stack, Bytes usable);

/// peak_memory().needed() of the stage that needs most, with each of these policies in place of the
/// stack's. They keep the same of a layer's activations as that does, which are counted once:
/// requires its `rotary_copies` and `gated_mlp_bytes`.
std::vector<Bytes> needed_memory(const TrainingJob& job, const StackSpec& stack,
                                 std::span<const MemoryPolicy> policies);

/// Bytes that one micro batch leaves on a GPU for the backward pass of one layer.
Bytes saved_per_layer(const TrainingJob& job, const StackSpec& stack, LayerKind kind = {});

/// Micro batches of which a stage holds all layers' activations at once; not whole where it has
/// several chunks: the chunks that its schedule holds at most (models/pipeline/schedule.hpp), over
/// the chunks that it has. 1F1B: min(m, p - stage); GPipe: m; interleaved: the chunks of the
/// warm-up, 2 (p - stage - 1) + (v - 1) p, and the one at work, over v: on the first stage
/// 1 + (p - 1) / (p v) times p (arXiv:2205.05198, section 4.2.3).
double micro_batches_in_flight(const TrainingJob& job, int stage);

/// What a job may use of the card: its capacity less what the stack keeps outside of the allocator.
Bytes usable_memory(const GpuSpec& gpu, const MemoryPolicy& policy);
Bytes usable_memory(const GpuSpec& gpu, const StackSpec& stack);

/// Within this share of the card the verdict hangs on what is assumed: nine in ten of the peaks in
/// tests/reference/training.json are predicted within 12 %.
constexpr double kCloseMargin = 0.12;

/// What assumptions could make of the verdict.
struct MemoryBand {
  Bytes least, most;  ///< needed of the fullest stage, all assumptions one way and the other
  /// The assumption that alone turns the verdict round, or else the widest one: "optimiser
  /// precision (16-bit moments)". Empty unless `usable` is in the band and within kCloseMargin of
  /// what is needed.
  std::string decides;

  [[nodiscard]] bool close() const { return !decides.empty(); }
};
MemoryBand memory_band(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu);

struct MemoryVerdict {
  int fullest_stage = 0;
  MemoryBreakdown peak;  ///< of that stage; `cached` at most what is left of the card
  Bytes usable;
  bool fits = true;  ///< needed() of the fullest stage is at most `usable`
  /// The smallest change that would fit: "micro batch 1 instead of 2 (61.3 GiB)"; empty if it fits
  /// or nothing that was tried does. Tried in order: smaller micro batches, selective and full
  /// recomputation, a sharded optimiser, it with full recomputation, then wider tensor and pipeline
  /// parallelism at the cost of replicas.
  std::string nearest_fit;
  MemoryBand band{};
};
MemoryVerdict check_memory(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu);

/// A change of a job, in words.
struct MemoryRemedy {
  std::string words;
  TrainingJob job;
};
/// The changes that check_memory() tries, in its order. Each leaves a job that divides.
std::vector<MemoryRemedy> memory_remedies(const TrainingJob& job, const StackSpec& stack);

}  // namespace lockstep
