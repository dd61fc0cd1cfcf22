/// What ranks send, and what they then have to hold: numbers that add up exactly in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

namespace lockstep {

/// Element i of what rank r sends is rank_part(r) + place_part(i): whole numbers, below 61 each, so
/// that sums over up to kMostSummedRanks ranks are exact in single precision.
constexpr int kPatternParts = 61;
constexpr int kMostSummedRanks = (1 << 24) / (2 * kPatternParts);
constexpr int rank_part(std::int64_t rank) { return static_cast<int>(rank % kPatternParts); }

/// What numbers lie in memory as. In 16 bit sums are rounded at every step, by 2^-9 at most, so
/// that results may be off by as much for each rank, and by a quarter at most.
enum class PatternFormat : std::uint8_t { fp32, bf16 };
constexpr std::size_t bytes_of(PatternFormat format) {
  return format == PatternFormat::bf16 ? 2 : 4;
}

/// What a rank holds after a collective.
struct ExpectedPattern {
  std::int64_t count;  ///< elements in all
  /// From whom they come: 0: all from the same, the parts of whose ranks add up to `offset`, and
  /// `scale` ranks are summed; else blocks of so many elements of rank 0, 1, 2 and so on.
  std::int64_t block;
  std::int64_t first;  ///< place of the first element in what was sent, of each block
  double offset, scale;
};

void fill_pattern(void* out, PatternFormat format, std::int64_t count, int rank,
                  cudaStream_t stream);
/// Adds to `wrong` how many elements are not as expected.
void count_wrong(const void* out, PatternFormat format, const ExpectedPattern& expected,
                 unsigned long long* wrong, cudaStream_t stream);

}  // namespace lockstep
