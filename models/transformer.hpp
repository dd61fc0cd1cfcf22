/// The shape of a decoder-only transformer, how it is cut over GPUs, and what it is fed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/precision.hpp"
#include "models/units.hpp"

namespace lockstep {

/// A dense decoder. Counts; a (heads) times d (head_dim) is the width of the attention.
struct TransformerShape {
  std::string name;
  int layers = 0;      ///< l
  int hidden = 0;      ///< h, width of the residual stream
  int heads = 0;       ///< a, query heads
  int kv_heads = 0;    ///< g, key and value heads; g = a without grouping
  int head_dim = 0;    ///< d
  int ffn = 0;         ///< f
  int vocabulary = 0;  ///< V
  bool gated = false;  ///< SwiGLU or GeGLU: three MLP matrices instead of two
  bool tied = false;   ///< input embedding and output projection share weights
  bool learned_positions = false;
  int max_positions = 0;  ///< rows of the learned position table
  bool biases = false;
  bool rotary = false;
};

/// Weights of the matrix products of one layer: attention and MLP, no norms and biases.
double layer_matrix_parameters(const TransformerShape& shape);
/// All weights of one layer: matrices, norms and biases.
double layer_parameters(const TransformerShape& shape);
/// Input embedding and learned positions.
double embedding_parameters(const TransformerShape& shape);
/// Weights of the whole model; a tied embedding counts once.
double total_parameters(const TransformerShape& shape);

enum class Sharding : std::uint8_t { none, zero1, zero2 };
enum class Recompute : std::uint8_t { none, selective, full };
enum class Schedule : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  breadth_first,
  zb_h1,
  zb_h2,
  zb_v,
  dualpipe,
  dualpipev,
  fixed,  ///< Parallelism::order, which a person wrote
};
struct FixedOrder;  // models/pipeline/schedule.hpp
/// Where embedding or output projection count when layers are split over stages.
enum class EndPlace : std::uint8_t {
  automatic,  ///< in the place of a layer where that makes the split even, else beside
  beside,     ///< with the layers of the first or last stage, not counted
  layer,      ///< in the place of a layer
  stage,      ///< a stage of its own
};
/// How layers are split over pipeline stages when nobody writes them out
/// (models/workload/partition.hpp).
enum class LayerSplit : std::uint8_t { even, by_cost };

struct Parallelism {
  int tensor = 1;          ///< t
  int pipeline = 1;        ///< p
  int data = 1;            ///< d
  int virtual_stages = 1;  ///< v, model chunks per pipeline rank
  bool sequence = false;   ///< norms, dropout and residuals split over the tensor-parallel group
  Sharding sharding = Sharding::none;
  Schedule schedule = Schedule::one_f_one_b;
  /// Layers of every virtual stage in pipeline order (p * v entries, chunk-major: all ranks of
  /// chunk 0, then of chunk 1); empty: split as `split` says.
  std::vector<int> layers_per_stage;
  LayerSplit split = LayerSplit::even;
  EndPlace embedding = EndPlace::automatic, output = EndPlace::automatic;
  std::shared_ptr<const FixedOrder> order{};  ///< set where `schedule` is fixed
};

struct Batch {
  int sequences = 1;        ///< over all replicas, per step
  int micro_sequences = 1;  ///< b, per micro batch and replica
  int tokens = 1;           ///< s, per sequence
};

/// A training job as the models see it.
struct TrainingJob {
  TransformerShape model;
  Parallelism parallelism;
  Batch batch;
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  /// Micro batches per replica and step.
  [[nodiscard]] int micro_batches() const {
    return batch.sequences / (batch.micro_sequences * parallelism.data);
  }
};

}  // namespace lockstep
