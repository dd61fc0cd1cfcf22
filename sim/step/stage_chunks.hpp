/// What the chunks of one stage of a plan consist of, and what passes over them cost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

class StageChunks {
 public:
  /// A chunk's pieces in the order of a pass, and what they cost together: the same for every
  /// micro batch.
  struct ChunkPass {
    std::vector<const Piece*> pieces;
    PhaseCost cost;
    StepTime copies{};  ///< to and from the host
  };

  /// `layers`: of each virtual stage of the pipeline. Notes those of the stage in `out`. All but
  /// `layers` outlive this.
  StageChunks(const TrainingJob& job, const PipelineShape& shape, const Pieces& pieces,
              const std::vector<int>& layers, StagePlan& out)
      : job_(job),
        shape_(shape),
        pieces_(pieces),
        out_(out),
        passes_(static_cast<std::size_t>(shape.chunks)) {
    for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
      const int number = shape_.stage_of(place(chunk));
      out_.layers.push_back(layers[static_cast<std::size_t>(number)]);
      first_layers_.push_back(std::accumulate(layers.begin(), layers.begin() + number, 0));
    }
  }

  /// Pieces of a chunk in forward order.
  [[nodiscard]] std::vector<const Piece*> pieces(int chunk) const {
    std::vector<const Piece*> list;
    if (shape_.is_first(place(chunk))) list.push_back(&pieces_.embedding);
    const TransformerShape& model = job_.model;
    const int first = first_layers_[static_cast<std::size_t>(chunk)];
    for (int i = first; i < first + out_.layers[static_cast<std::size_t>(chunk)]; ++i) {
      list.push_back(&pieces_.layers[Pieces::piece_of(job_.kind(i))]);
    }
    if (shape_.is_last(place(chunk))) {
      list.push_back(&pieces_.head);
      for (int i = 0; i < model.predicted_tokens; ++i) list.push_back(&pieces_.prediction);
    }
    return list;
  }

  const ChunkPass& pass_over(const WorkItem& work) {
    const auto pass = static_cast<std::size_t>(work.pass);
    ChunkPass& out = passes_[static_cast<std::size_t>(work.chunk)][pass];
    if (!out.pieces.empty()) return out;
    out.pieces = pieces(work.chunk);
    if (!is_forward(work.pass)) std::ranges::reverse(out.pieces);
    for (const Piece* piece : out.pieces) {
      out.cost += piece->cost(work.pass);
      out.copies += to_step_time(piece->copies[pass]);
    }
    return out;
  }

 private:
  [[nodiscard]] ChunkPlace place(int chunk) const { return {out_.stage, chunk}; }

  const TrainingJob& job_;
  const PipelineShape& shape_;
  const Pieces& pieces_;
  StagePlan& out_;
  std::vector<int> first_layers_;                 ///< of each chunk, in the model
  std::vector<std::array<ChunkPass, 4>> passes_;  ///< by chunk, then Pass
};

}  // namespace lockstep
