/// Lower bounds of a step's time. Both leave out what makes the replay wait longer, and nothing
/// else: each is at most the time that simulate_step() gives.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/pieces.hpp"

namespace lockstep {

/// The first: every rank computes all its passes without a pause, after the first micro batch has
/// come through the stages before it, and what the last one leaves goes back through them. Counts
/// kernels, exchanges inside layers, launches and the host's time per step; no messages, no
/// exchange between replicas, no optimiser. Takes microseconds, as layouts share the costs of
/// passes.
class ComputeBound {
 public:
  /// `base` outlives this; candidates differ from it in their layout alone.
  explicit ComputeBound(const Scenario& base) : base_(base) {}

  Seconds operator()(const Scenario& candidate);

 private:
  /// Seconds of a pass over a piece, and of the passes backward in all.
  struct PieceTimes {
    double forward = 0, backward = 0;
  };
  struct Times {
    std::vector<PieceTimes> layers;
    PieceTimes embedding, head, prediction;
  };
  using Key = std::array<int, 8>;

  const Times& times_of(const Scenario& candidate);

  const Scenario& base_;
  std::map<Key, Times> known_;
};

/// The second: the step as it is replayed, passes, messages, collectives and all, as if every
/// transfer had its links for itself and no GPU were slower than its like. Takes a tenth of a
/// replay.
Seconds uncontended_step(const Scenario& scenario);

}  // namespace lockstep
