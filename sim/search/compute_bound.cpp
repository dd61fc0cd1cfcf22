#include <algorithm>
#include <vector>

#include "models/spec/partition.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/search/bounds.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// Of all that is rounded to ticks on the way of a step.
constexpr double kRounding = 1e-6;

double pass_seconds(const PhaseCost& cost, double variation) {
  const Seconds kernels = cost.compute() - cost.launch;
  return ((1 + variation) * kernels + cost.launch + cost.exchange().total()).base_units();
}

}  // namespace

const ComputeBound::Times& ComputeBound::times_of(const Scenario& candidate) {
  const TrainingJob& job = candidate.job;
  const Parallelism& cut = job.parallelism;
  const Key key{cut.tensor,
                cut.context,
                cut.expert,
                cut.expert_tensor,
                cut.sequence,
                job.batch.micro_sequences,
                static_cast<int>(job.recompute),
                splits_backward(cut)};
  const auto [at, added] = known_.try_emplace(key);
  if (!added) return at->second;

  const Placement placement{placement_spec(candidate)};
  const Pieces pieces = make_pieces(workload_context(candidate, placement));
  const double variation = base_.stack.level * (1 + kernel_variation(job, base_.node.gpu)) - 1;
  const auto times = [&](const Piece& piece) {
    const auto pass = [&](Pass p) { return pass_seconds(piece.cost(p), variation); };
    PieceTimes out{pass(Pass::forward), pass(Pass::backward)};
    if (splits_backward(cut)) {
      out.backward =
          std::min(out.backward, pass(Pass::backward_input) + pass(Pass::backward_weight));
    }
    return out;
  };
  at->second.layers.resize(pieces.layers.size());
  for (std::size_t i = 0; i < pieces.layers.size(); ++i) {
    at->second.layers[i] = times(pieces.layers[i]);
  }
  at->second.embedding = times(pieces.embedding);
  at->second.head = times(pieces.head);
  at->second.prediction = times(pieces.prediction);
  return at->second;
}

Seconds ComputeBound::operator()(const Scenario& candidate) {
  const TrainingJob& job = candidate.job;
  const Parallelism& cut = job.parallelism;
  const Times& times = times_of(candidate);
  const PipelineShape shape = pipeline_shape(cut);
  const std::vector<int> layers = layers_per_virtual_stage(job.model, cut);
  const auto stages = static_cast<std::size_t>(shape.stages());

  std::vector<PieceTimes> passes(stages);  // of one micro batch, by stage
  const auto add = [&](std::size_t stage, const PieceTimes& piece) {
    passes[stage].forward += piece.forward;
    passes[stage].backward += piece.backward;
  };
  int layer = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    for (int i = 0; i < layers[s]; ++i) {
      add(s, times.layers[Pieces::piece_of(job.kind(layer++))]);
    }
  }
  add(0, times.embedding);
  add(stages - 1, times.head);
  for (int i = 0; i < job.model.predicted_tokens; ++i) add(stages - 1, times.prediction);

  // Of the passes before a stage.
  std::vector<PieceTimes> before(stages);
  for (std::size_t s = 1; s < stages; ++s) {
    before[s] = before[s - 1];
    before[s].forward += passes[s - 1].forward;
    before[s].backward += passes[s - 1].backward;
  }
  const int micro_batches = shape.micro_batches(job.micro_batches());
  double longest = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    double work = 0, fill = 1e300, drain = 1e300;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const auto stage = static_cast<std::size_t>(shape.stage_of({rank, chunk}));
      work += micro_batches * (passes[stage].forward + passes[stage].backward);
      fill = std::min(fill, before[stage].forward);
      drain = std::min(drain, before[stage].backward);
    }
    // Gradients of weights may be made last, and nobody waits for those.
    if (splits_backward(cut)) drain = 0;
    longest = std::max(longest, fill + work + drain);
  }
  return (1 - kRounding) * (Seconds{longest} + candidate.stack.step_overhead);
}

}  // namespace lockstep
