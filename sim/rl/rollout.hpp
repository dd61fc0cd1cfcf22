/// The rollout of one replica: prompts in, responses out, by continuous batching. Sequences join as
/// soon as others end and the cache has room; where it overflows, the sequence that joined last has
/// to leave and is computed again later, as in vLLM (Kwon et al. 2023, arXiv:2309.06180, section
/// 4.5). Between two such moments the batch is constant, so time passes in one stride.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/generation/serving_replica.hpp"

namespace lockstep {

struct RolloutLoad {
  int prompt_tokens = 1;
  int pass_tokens = 8192;          ///< of prompts that one pass takes
  std::span<const int> responses;  ///< tokens of each, in the order of their start
  double prefills = 1;             ///< of its prompt for each response; below 1 where they share it
  double cache_tokens = 0;         ///< that the cache holds
  int most_sequences = 1;          ///< at once
  bool keep_stretches = false;
};

/// A stretch of a rollout on a GPU of the replica: prefill or decoding, or both in their shares.
struct RolloutStretch {
  Seconds prefill, decode;
  ByGpuPart<Joules> prefill_drawn{}, decode_drawn{};
};

/// Passes one after the other: where their time goes, and what a GPU draws in them.
struct RolloutWork {
  ServingPass time;
  ByGpuPart<Joules> drawn{};

  [[nodiscard]] Seconds total() const { return time.total(); }
  RolloutWork& operator+=(const RolloutWork& o);
  friend RolloutWork operator*(double k, const RolloutWork& work);
};

struct Rollout {
  Seconds time;  ///< until the last response ends
  RolloutWork prefill, decode;
  double tokens = 0;                      ///< of responses
  double steps = 0;                       ///< of decoding
  int most_sequences = 0;                 ///< that were there at once
  std::uint64_t preempted = 0;            ///< times that a sequence had to leave
  std::vector<RolloutStretch> stretches;  ///< one after the other; where asked for
};

/// Requires a cache that holds the longest sequence, and at least one response.
Rollout roll_out(ServingReplica& replica, const RolloutLoad& load);

}  // namespace lockstep
