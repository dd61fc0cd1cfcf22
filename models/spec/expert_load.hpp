/// How tokens fall on experts, and what a limit to the tokens of an expert leaves of them.
///
/// All loads are those of the mean step: tokens scatter around them, and a limit drops some of what
/// scatters above it even where the mean is even.
#pragma once

namespace lockstep {

struct ExpertShape;
struct TrainingJob;

/// As somebody gave it.
struct ExpertRouting {
  /// Tokens of the fullest expert-parallel rank over the mean, before the limit; the experts of the
  /// rank share them evenly, and so do all others the rest. No rank gets more than all.
  double imbalance = 1;
  double zipf = 0;      ///< in place of it: expert i gets a share in proportion to i^-zipf
  double capacity = 0;  ///< most copies that an expert takes over the mean; 0: no limit (dropless)
  bool padded = false;  ///< every expert computes as many rows as it takes at most

  [[nodiscard]] bool is_even() const { return imbalance == 1 && zipf == 0; }
};

/// Of the copies of all tokens, one for each expert that a token is sent to.
struct ExpertLoad {
  double kept = 1;     ///< share of the copies that an expert takes; the others are dropped
  double rows = 1;     ///< that experts compute and ranks exchange, padding too, over all copies
  double fullest = 1;  ///< rows of the fullest rank over those of the mean
  double hottest = 1;  ///< copies for the hottest expert over the mean, before the limit

  [[nodiscard]] double dropped() const { return 1 - kept; }
  /// Share of the rows that are tokens.
  [[nodiscard]] double useful() const { return kept / rows; }
};

/// Of experts that `ranks` ranks hold.
///
/// An expert takes at most capacity x copies / E of the copies, as with Megatron-Core's
/// --moe-expert-capacity-factor, whatever its drop policy; with --moe-pad-expert-input-to-capacity
/// always as many (get_capacity() and topk_softmax_with_capacity() in
/// github:NVIDIA/Megatron-LM:megatron/core/transformer/moe/moe_utils.py), but that it rounds up to
/// whole tokens. By Zipf's law no expert gets more than one copy of a token, and the fullest rank
/// has the hottest expert and, of the others, as many as every rank.
///
/// Requires 0 <= zipf, 1 <= imbalance, 0 <= capacity <= E / k, padded only where there is a limit.
ExpertLoad expert_load(const ExpertShape& x, int ranks, const ExpertRouting& routing);
/// Of the job's experts; no load where it has none.
ExpertLoad expert_load(const TrainingJob& job);

}  // namespace lockstep
