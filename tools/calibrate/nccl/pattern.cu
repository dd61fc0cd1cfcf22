#include <cuda_bf16.h>

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

__device__ float number(float x) { return x; }
__device__ float number(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class Element>
__global__ void fill_pattern_kernel(Element* out, std::int64_t count, int offset) {
  const std::int64_t step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = static_cast<Element>(static_cast<float>(offset + place_part(i)));
  }
}

template <class Element>
__global__ void count_wrong_kernel(const Element* out, ExpectedPattern expected, double slack,
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
    if (!(fabs(number(out[i]) - due) <= slack * due)) ++mine;
  }
  if (mine > 0) atomicAdd(wrong, mine);
}

}  // namespace

void fill_pattern(void* out, PatternFormat format, std::int64_t count, int rank,
                  cudaStream_t stream) {
  if (format == PatternFormat::bf16) {
    fill_pattern_kernel<<<kPatternBlocks, kPatternThreads, 0, stream>>>(
        static_cast<__nv_bfloat16*>(out), count, rank_part(rank));
  } else {
    fill_pattern_kernel<<<kPatternBlocks, kPatternThreads, 0, stream>>>(static_cast<float*>(out),
                                                                        count, rank_part(rank));
  }
  check(cudaGetLastError(), "fill_pattern_kernel");
}

void count_wrong(const void* out, PatternFormat format, const ExpectedPattern& expected,
                 unsigned long long* wrong, cudaStream_t stream) {
  if (format == PatternFormat::bf16) {
    const double slack = expected.scale > 1 ? fmin(expected.scale / 512, 0.25) : 0;
    count_wrong_kernel<<<kPatternBlocks, kPatternThreads, 0, stream>>>(
        static_cast<const __nv_bfloat16*>(out), expected, slack, wrong);
  } else {
    count_wrong_kernel<<<kPatternBlocks, kPatternThreads, 0, stream>>>(
        static_cast<const float*>(out), expected, 0, wrong);
  }
  check(cudaGetLastError(), "count_wrong_kernel");
}

}  // namespace lockstep
