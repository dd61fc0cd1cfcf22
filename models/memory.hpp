/// Peak memory of a GPU, per pipeline stage, with its parts.
#pragma once

#include <optional>
#include <string>

#include "models/software.hpp"
#include "models/transformer.hpp"
#include "models/units.hpp"

namespace lockstep {

struct MemoryBreakdown {
  Bytes weights, gradients, optimiser, activations, logits, communication, framework;
  [[nodiscard]] Bytes total() const {
    return weights + gradients + optimiser + activations + logits + communication + framework;
  }
};

/// Peak within a step of one GPU of pipeline stage `stage` (0-based).
MemoryBreakdown peak_memory(const TrainingJob& job, const StackSpec& stack, int stage);

/// What a job may use of the card: the capacity less what driver and fragmentation keep.
Bytes usable_memory(const GpuSpec& gpu);

struct MemoryVerdict {
  int fullest_stage = 0;
  MemoryBreakdown peak;
  Bytes usable;
  bool fits = true;
  /// The smallest change that would fit: "micro batch 1 instead of 2 (61.3 GiB)"; empty if it fits
  /// or nothing that was tried does.
  std::string nearest_fit;
};
MemoryVerdict check_memory(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu);

}  // namespace lockstep
