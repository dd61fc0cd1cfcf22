/// What ranks send, and what they then have to hold: numbers that add up exactly in any order.
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

namespace lockstep {

/// Element i of what rank r sends is rank_part(r) + place_part(i): whole numbers, below 61 each, so
/// that sums over up to kMostSummedRanks ranks are exact in single precision.
constexpr int kPatternParts = 61;
constexpr int kMostSummedRanks = (1 << 24) / (2 * kPatternParts);
constexpr int rank_part(std::int64_t rank) { return static_cast<int>(rank % kPatternParts); }

/// What a rank holds after a collective.
struct ExpectedPattern {
  std::int64_t count;  ///< elements in all
  /// From whom they come: 0: all from the same, the parts of whose ranks add up to `offset`, and
  /// `scale` ranks are summed; else blocks of so many elements of rank 0, 1, 2 and so on.
  std::int64_t block;
  std::int64_t first;  ///< place of the first element in what was sent, of each block
  double offset, scale;
};

void fill_pattern(float* out, std::int64_t count, int rank, cudaStream_t stream);
/// Adds to `wrong` how many elements are not as expected.
void count_wrong(const float* out, const ExpectedPattern& expected, unsigned long long* wrong,
                 cudaStream_t stream);

}  // namespace lockstep
