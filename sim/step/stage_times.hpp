/// How long the stages of a pipeline take for a micro batch on each kind of node.
#pragma once

#include <cstddef>
#include <vector>

#include "models/pipeline/layout.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/pieces.hpp"

namespace lockstep {

/// Forward and backward passes with the collectives inside layers, in seconds, of a GPU of nominal
/// speed with nothing beside it.
class StageTimes {
 public:
  explicit StageTimes(const Scenario& scenario);

  /// Layers first to end, and what is at the ends of the model where a stage has them.
  [[nodiscard]] double seconds(std::size_t pool, int first, int end, bool is_first,
                               bool is_last) const;
  /// All chunks of a stage, with the layers that it has.
  [[nodiscard]] double seconds(std::size_t pool, int stage) const;

 private:
  struct OfPool {
    std::vector<double> layers;  ///< sums up to each
    double embedding = 0, head = 0;
  };

  PipelineShape shape_;
  std::vector<int> layers_, first_layers_;  ///< of each virtual stage
  std::vector<OfPool> pools_;
};

}  // namespace lockstep
