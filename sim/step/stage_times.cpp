#include "sim/step/stage_times.hpp"

#include "models/pipeline/schedule.hpp"
#include "models/spec/partition.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

double passes(const Piece& piece, bool split) {
  Seconds time = piece.cost(Pass::forward).total();
  if (split) {
    time += piece.cost(Pass::backward_input).total() + piece.cost(Pass::backward_weight).total();
  } else {
    time += piece.cost(Pass::backward).total();
  }
  return time.base_units();
}

}  // namespace

StageTimes::StageTimes(const Scenario& s)
    : shape_(pipeline_shape(s.job.parallelism)),
      layers_(layers_per_virtual_stage(s.job.model, s.job.parallelism)) {
  int first = 0;
  for (const int layers : layers_) {
    first_layers_.push_back(first);
    first += layers;
  }
  const Placement placement{placement_spec(s)};
  const TransformerShape& model = s.job.model;
  const bool split = splits_backward(s.job.parallelism);
  for (std::size_t pool = 0; pool < s.pool_count(); ++pool) {
    const Pieces pieces = make_pieces(workload_context(s, placement, pool));
    OfPool& out = pools_.emplace_back();
    out.layers.assign(1, 0.0);
    for (int i = 0; i < model.layers; ++i) {
      const Piece& layer = pieces.layers[Pieces::piece_of(s.job.kind(i))];
      out.layers.push_back(out.layers.back() + passes(layer, split));
    }
    out.embedding = passes(pieces.embedding, split);
    out.head =
        passes(pieces.head, split) + model.predicted_tokens * passes(pieces.prediction, split);
  }
}

double StageTimes::seconds(std::size_t pool, int first, int end, bool is_first,
                           bool is_last) const {
  const OfPool& of = pools_[pool];
  return of.layers[static_cast<std::size_t>(end)] - of.layers[static_cast<std::size_t>(first)] +
         (is_first ? of.embedding : 0) + (is_last ? of.head : 0);
}

double StageTimes::seconds(std::size_t pool, int stage) const {
  double sum = 0;
  for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
    const ChunkPlace at{stage, chunk};
    const auto number = static_cast<std::size_t>(shape_.stage_of(at));
    const int first = first_layers_[number];
    sum += seconds(pool, first, first + layers_[number], shape_.is_first(at), shape_.is_last(at));
  }
  // Of two copies of a model, half of the micro batches run through each.
  return sum * shape_.micro_batches(2) / 2;
}

}  // namespace lockstep
