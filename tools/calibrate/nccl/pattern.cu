#include "tools/calibrate/cuda/check.hpp"
#include "tools/calibrate/nccl/pattern.hpp"

namespace lockstep {
namespace {

constexpr int kPatternThreads = 256;
constexpr int kPatternBlocks = 1024;

/// Bits of a product by the golden ratio: neighbours and blocks differ.
__device__ int place_part(std::int64_t place) {
  const auto mixed = static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15ULL;
  return static_cast<int>((mixed >> 32) % kPatternParts);
}

__global__ void fill_pattern_kernel(float* out, std::int64_t count, int offset) {
  const std::int64_t step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = static_cast<float>(offset + place_part(i));
  }
}

__global__ void count_wrong_kernel(const float* out, ExpectedPattern expected,
                                   unsigned long long* wrong) {
  const std::int64_t step = std::int64_t{blockDim.x} * gridDim.x;
  unsigned long long mine = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < expected.count;
       i += step) {
    double due = expected.offset;
    if (expected.block > 0) {
      due = static_cast<int>(i / expected.block % kPatternParts) +
            place_part(expected.first + i % expected.block);
    } else {
      due += expected.scale * place_part(expected.first + i);
    }
    // What was there before is no number, and unequal to everything.
    if (!(out[i] == static_cast<float>(due))) ++mine;
  }
  if (mine > 0) atomicAdd(wrong, mine);
}

}  // namespace

void fill_pattern(float* out, std::int64_t count, int rank, cudaStream_t stream) {
  fill_pattern_kernel<<<kPatternBlocks, kPatternThreads, 0, stream>>>(out, count, rank_part(rank));
  check(cudaGetLastError(), "fill_pattern_kernel");
}

void count_wrong(const float* out, const ExpectedPattern& expected, unsigned long long* wrong,
                 cudaStream_t stream) {
  count_wrong_kernel<<<kPatternBlocks, kPatternThreads, 0, stream>>>(out, expected, wrong);
  check(cudaGetLastError(), "count_wrong_kernel");
}

}  // namespace lockstep
