/// What the collectives of a recorded training step say of its software: the format in which
/// gradients are reduced, and how much of the exchanges computing hides.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

/// Calls of one purpose, of all ranks.
struct RecordedExchange {
  std::size_t calls = 0;
  double total_s = 0;   ///< in kernels of NCCL, waits for other ranks too
  double hidden_s = 0;  ///< of it, beside computing kernels
  [[nodiscard]] double hidden() const { return total_s > 0 ? hidden_s / total_s : 0; }
};

/// A process group whose reductions all begin behind the first kernel of a backward pass reduces
/// gradients; one that reduces before it is tensor-parallel. Calls of fewer than a million
/// elements (norms, losses, counts) are passed over.
struct RecordedExchanges {
  RecordedExchange gradients;      ///< all-reduces and reduce-scatters of them
  RecordedExchange parameters;     ///< all-gathers among the same ranks
  RecordedExchange tensor;         ///< of groups that reduce in forward passes
  std::size_t fp32 = 0, half = 0;  ///< of the gradients' calls, by the width of their elements
  std::size_t untold = 0;          ///< kernels of NCCL that do not say what they call
};

/// Of recordings with the host's part.
RecordedExchanges recorded_exchanges(std::span<const KinetoRecording> recordings);

}  // namespace lockstep
