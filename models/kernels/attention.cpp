#include "models/kernels/attention.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "models/kernels/gemm.hpp"
#include "models/kernels/memory_bound.hpp"

namespace lockstep {
namespace {

/// Queries of one head that a thread block works on.
constexpr double kQueryBlock = 128;
/// Waves from which uneven last waves average out over causal blocks of unequal length.
constexpr double kManyWaves = 4;
/// Attention draws less power than a large product, so only part of the loss of clock applies:
/// clock^(1/3). Assumed; training runs identify it weakly.
constexpr double kPowerShare = 1.0 / 3;

/// Share of the speed of head size 128 that other sizes reach.
double head_size_efficiency(double head_dim) {
  const double padded = std::ceil(head_dim / 32) * 32;
  const double reach = std::min(padded, 128.0) / 128;
  return head_dim / padded * (0.4 + 0.6 * reach);
}

double wave_quantisation(const AttentionShape& shape, const GpuSpec& gpu) {
  const double waves = shape.sequences * shape.heads * std::ceil(shape.tokens / kQueryBlock) /
                       gpu.sm_count;
  return waves < kManyWaves ? std::ceil(waves) / waves : 1 + 1 / (2 * waves);
}

Seconds unfused_time(const AttentionShape& shape, AttentionKernel, const GpuSpec& gpu,
                     const ElementwiseTraffic& traffic, Load load) {
  const double count = shape.sequences * shape.heads;
  const double s = shape.tokens;
  const Seconds scores =
      gemm_time({.m = s, .n = s, .k = shape.head_dim, .count = count}, Precision::fp16, gpu, load);
  const Seconds values =
      gemm_time({.m = s, .n = shape.head_dim, .k = s, .count = count}, Precision::fp16, gpu, load);
  const Seconds softmax = memory_bound_time(Bytes{traffic.score_bytes * count * s * s}, gpu) *
                          traffic.slowdown;
  if (shape.direction == Direction::forward) return scores + values + softmax;
  return (scores + values) * 2 + softmax * traffic.score_backward_ratio;
}

Seconds fused_time(const AttentionShape& shape, AttentionKernel kernel, const GpuSpec& gpu,
                   const ElementwiseTraffic& traffic, Load load) {
  const AttentionConstants* constants = attention_constants(kernel, gpu);
  if (constants == nullptr) return unfused_time(shape, kernel, gpu, traffic, load);
  const double s = shape.tokens;
  const double keys = (shape.causal ? s / 2 : s) + constants->ramp_tokens;
  const Flops work{4 * shape.sequences * shape.heads * s * keys * shape.head_dim *
                   wave_quantisation(shape, gpu)};
  const double clock = load == Load::sustained ? std::pow(gpu.gemm.sustained, kPowerShare) : 1.0;
  const FlopsPerSecond rate =
      gpu.peak_fp16 * (constants->efficiency * head_size_efficiency(shape.head_dim) * clock);
  const Seconds body = work / rate;
  return constants->launch +
         (shape.direction == Direction::forward ? body : body * constants->backward_ratio);
}

constexpr std::array kKernels{
    AttentionKernelKind{AttentionKernel::unfused, "unfused",
                        "Two batched products with the scores written to memory in between.",
                        "Korthikanti et al. 2022, arXiv:2205.05198, section 4", unfused_time},
    AttentionKernelKind{AttentionKernel::flash1, "flash1",
                        "FlashAttention: scores stay in the SM, heads in parallel.",
                        "Dao et al. 2022, arXiv:2205.14135", fused_time},
    AttentionKernelKind{AttentionKernel::flash2, "flash2",
                        "FlashAttention-2: also parallel over blocks of queries.",
                        "Dao 2023, arXiv:2307.08691", fused_time},
    AttentionKernelKind{AttentionKernel::flash3, "flash3",
                        "FlashAttention-3: Hopper's asynchronous products and copies.",
                        "Shah et al. 2024, arXiv:2407.08608", fused_time},
    AttentionKernelKind{AttentionKernel::cudnn, "cudnn",
                        "cuDNN's fused attention and TensorRT-LLM's kernels of the same family.",
                        "NVIDIA cuDNN frontend, benchmark/sdpa_benchmark_training", fused_time},
};
static_assert(kKernels.size() == kAttentionKernels);

}  // namespace

Flops attention_flops(const AttentionShape& shape) {
  const double square = shape.tokens * shape.tokens * (shape.causal ? 0.5 : 1.0);
  const double passes = shape.direction == Direction::forward ? 1.0 : 2.5;
  return Flops{4 * shape.sequences * shape.heads * square * shape.head_dim * passes};
}

const AttentionConstants* attention_constants(AttentionKernel kernel, const GpuSpec& gpu) {
  if (kernel == AttentionKernel::unfused) return nullptr;
  const auto wanted = static_cast<std::size_t>(kernel);
  for (std::size_t older = wanted; older >= 1; --older) {
    if (gpu.attention[older]) return &*gpu.attention[older];
  }
  for (std::size_t newer = wanted + 1; newer < kAttentionKernels; ++newer) {
    if (gpu.attention[newer]) return &*gpu.attention[newer];
  }
  return nullptr;
}

std::span<const AttentionKernelKind> attention_kernels() { return kKernels; }

Seconds attention_time(const AttentionShape& shape, AttentionKernel kernel, const GpuSpec& gpu,
                       const ElementwiseTraffic& traffic, Load load) {
  assert(shape.sequences >= 1 && shape.tokens >= 1 && shape.heads >= 1 && shape.head_dim >= 1);
  return kKernels[static_cast<std::size_t>(kernel)].law(shape, kernel, gpu, traffic, load);
}

}  // namespace lockstep
