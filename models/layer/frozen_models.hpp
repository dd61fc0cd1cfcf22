/// Memory of a job that has other models beside its own, whose weights nothing trains: the
/// reference of preference optimisation, the teacher of distillation.
#pragma once

#include <span>

#include "models/layer/memory.hpp"

namespace lockstep {

/// Its forward pass in the layout of `job`: all of it frozen, no adapters, nothing saved for a
/// backward pass that never comes. Layers written out for each stage are those of the job's own
/// model, so another number of layers is split evenly.
TrainingJob frozen_job(const TrainingJob& job, const TransformerShape& model);

/// Weights of `model` on one GPU of pipeline stage `stage`, in 16 bit: cut by tensor, expert and
/// pipeline parallelism as the job's own, and over the shards where zero3 splits those too.
Bytes frozen_weights(const TrainingJob& job, const TransformerShape& model, const StackSpec& stack,
                     int stage);

/// As check_memory(), with the weights of `models` resident through the step. They are among
/// MemoryBreakdown::weights. What their own forward passes gather and give comes and goes before
/// the job's pass, so the peak is the larger of the two. The remedies keep the models.
MemoryVerdict check_memory_beside(const TrainingJob& job, const StackSpec& stack,
                                  const GpuSpec& gpu, std::span<const TransformerShape> models);

}  // namespace lockstep
