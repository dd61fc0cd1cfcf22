#include "models/layer/frozen_models.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// Whether each of the models can be cut so.
bool divides(const Parallelism& par, std::span<const TransformerShape> models) {
  return std::ranges::all_of(models, [&](const TransformerShape& m) {
    return m.heads % par.tensor == 0 && par.pipeline * par.virtual_stages <= m.layers;
  });
}

/// With weights of `kept` more, which the allocator loses its part of too.
MemoryBreakdown beside(MemoryBreakdown m, Bytes kept, const MemoryPolicy& policy) {
  m.weights += kept;
  m.framework += (policy.fragmentation - 1) * kept;
  return m;
}

/// The peak of a stage: of the job's own step, or of a model's forward pass beside the job's states
/// at rest.
MemoryBreakdown peak_beside(const TrainingJob& job, const StackSpec& stack,
                            std::span<const TransformerShape> models, int stage) {
  Bytes kept;
  for (const TransformerShape& m : models) kept += frozen_weights(job, m, stack, stage);
  const MemoryBreakdown own = peak_memory(job, stack, stage);
  MemoryBreakdown most = beside(own, kept, stack.memory);
  for (const TransformerShape& m : models) {
    MemoryBreakdown pass = peak_memory(frozen_job(job, m), stack, stage);
    pass.weights = own.weights + kept;
    pass.gradients = own.gradients;
    pass.optimiser = own.optimiser;
    pass.host = own.host;
    pass.framework = {};
    pass.framework = (stack.memory.fragmentation - 1) * pass.needed() + stack.memory.workspace;
    if (pass.needed() > most.needed()) most = pass;
  }
  return most;
}

std::pair<int, MemoryBreakdown> fullest(const TrainingJob& job, const StackSpec& stack,
                                        std::span<const TransformerShape> models) {
  std::pair<int, MemoryBreakdown> most{0, peak_beside(job, stack, models, 0)};
  for (int stage = 1; stage < job.parallelism.pipeline; ++stage) {
    const MemoryBreakdown m = peak_beside(job, stack, models, stage);
    if (m.needed() > most.second.needed()) most = {stage, m};
  }
  return most;
}

}  // namespace

TrainingJob frozen_job(const TrainingJob& job, const TransformerShape& model) {
  TrainingJob out = job;
  out.model = model;
  out.adapters = {};
  out.offload = {};
  out.recompute = Recompute::none;
  out.frozen = {.embedding = true, .layers = model.layers, .output = true};
  const std::vector<int>& split = job.parallelism.layers_per_stage;
  if (std::accumulate(split.begin(), split.end(), 0) != model.layers) {
    out.parallelism.layers_per_stage.clear();
  }
  return out;
}

Bytes frozen_weights(const TrainingJob& job, const TransformerShape& model, const StackSpec& stack,
                     int stage) {
  assert(stage >= 0 && stage < job.parallelism.pipeline);
  TransformerShape decoder = model;
  decoder.predicted_tokens = 0;  // nothing asks it for more than the next
  return peak_memory(frozen_job(job, decoder), stack, stage).weights;
}

MemoryVerdict check_memory_beside(const TrainingJob& job, const StackSpec& stack,
                                  const GpuSpec& gpu, std::span<const TransformerShape> models) {
  MemoryVerdict verdict = check_memory(job, stack, gpu);
  if (models.empty()) return verdict;
  std::tie(verdict.fullest_stage, verdict.peak) = fullest(job, stack, models);
  verdict.fits = verdict.peak.needed() <= verdict.usable;
  const Bytes left = std::max(Bytes{}, verdict.usable - verdict.peak.needed());
  verdict.peak.cached = std::min(verdict.peak.cached, left);
  verdict.nearest_fit.clear();
  verdict.band = {.least = verdict.peak.needed(), .most = verdict.peak.needed(), .decides = {}};
  if (verdict.fits) return verdict;
  for (const MemoryRemedy& remedy : memory_remedies(job, stack)) {
    if (!divides(remedy.job.parallelism, models)) continue;
    if (fullest(remedy.job, stack, models).second.needed() > verdict.usable) continue;
    verdict.nearest_fit = remedy.words;
    break;
  }
  return verdict;
}

}  // namespace lockstep
