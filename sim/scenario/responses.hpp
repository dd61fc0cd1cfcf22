/// How long the responses of a rollout get: the long tail keeps a batch waiting.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Log-normal lengths, cut at `most` as an engine cuts them, or a list.
struct ResponseLengths {
  double mean = 0;            ///< tokens, after what is longer was cut
  int most = 0;               ///< max_tokens of the engine
  double sigma = 0;           ///< of the logarithm of a length; 0: all are of mean length
  std::vector<int> listed{};  ///< measured lengths, given out in turn; then all else is unused
};

/// `count` lengths: the quantiles (i + 1/2) / count of the distribution, whose mean they have
/// within rounding, in an order drawn by `seed`. Requires mean <= most and count >= 1.
std::vector<int> response_lengths(const ResponseLengths& responses, int count, std::uint64_t seed);

}  // namespace lockstep
