/// What the passes over a layer, the embedding and the output projection cost on one GPU.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "models/layer/operations.hpp"
#include "models/pipeline/schedule.hpp"

namespace lockstep {

/// Weights of one rank: those that all its replicas have, and those of routed experts.
struct Weights {
  double all = 0, experts = 0;

  [[nodiscard]] double sum() const { return all + experts; }
  Weights& operator+=(const Weights& o) {
    all += o.all;
    experts += o.experts;
    return *this;
  }
};

/// A layer, the embedding or the output projection: the smallest thing that a pass consists of.
struct Piece {
  std::array<PhaseCost, 4> passes;  ///< by Pass
  std::array<Seconds, 4> copies;    ///< to and from the host, beside each of them
  Weights weights;
  Weights trained;        ///< of them, or the adapters beside them: what has a gradient
  double stored = 1;      ///< bytes of a weight as it is kept over those of a 16-bit one
  bool root = false;      ///< not a layer
  bool goes_back = true;  ///< its backward pass makes gradients

  [[nodiscard]] const PhaseCost& cost(Pass pass) const {
    return passes[static_cast<std::size_t>(pass)];
  }
  [[nodiscard]] PhaseCost& cost(Pass pass) { return passes[static_cast<std::size_t>(pass)]; }
};
struct Pieces {
  std::vector<Piece> layers;  ///< by piece_of(kind); only those of the model are filled
  Piece embedding, head;
  Piece prediction;  ///< of a further token: its layer, the projection again, and what joins them

  static std::size_t piece_of(LayerKind kind) {
    constexpr std::size_t kGradients = 3;
    const auto gradients = static_cast<std::size_t>(kind.gradients);
    if (kind.declared > 0) {
      return 8 * kNamedMixers * kGradients + kGradients * (kind.declared - 1U) + gradients;
    }
    return (kind.experts ? 1U : 0U) + (kind.windowed ? 2U : 0U) + (kind.feed_forward ? 0U : 4U) +
           8 * (static_cast<std::size_t>(kind.mixer) + kNamedMixers * gradients);
  }
};

/// Times depend on the job's model, micro batch, precision and recomputation, on its tensor,
/// context and expert ranks and on whether its schedule splits the backward pass; not on its
/// pipeline, replicas and sharding, but that these say which weights are there twice.
Pieces make_pieces(const WorkloadContext& context);

/// Whether a rank that holds the output projection holds the embedding too.
bool ends_meet(const PipelineShape& shape);

/// What a GPU takes for its kernels beyond those of one of nominal speed, as a share: the slowest
/// GPU of the job sets the pace, and beside it every kernel waits for its group's slowest.
double kernel_variation(const TrainingJob& job, const GpuSpec& gpu);

}  // namespace lockstep
