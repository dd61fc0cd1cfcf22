#include "models/kernels/attention.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "models/kernels/gemm.hpp"
#include "models/kernels/kernel_profile.hpp"
#include "models/kernels/memory_bound.hpp"

namespace lockstep {
namespace {

/// Queries of one head that a thread block works on.
constexpr double kQueryBlock = 128;
/// Waves of equal blocks from which an uneven last one averages out.
constexpr double kManyWaves = 4;
/// Attention draws less power than a large product, so only part of the loss of clock applies:
/// clock^(1/3). Assumed; training runs identify it weakly.
constexpr double kPowerShare = 1.0 / 3;

/// Head size that every fused kernel is tuned for, and the widest that they have.
constexpr double kTunedHead = 128;
constexpr double kWidestHead = 256;

/// e_d of the header.
double head_size_efficiency(double d, double softmax_width, double wide_head_speed) {
  const double e = d / (d + softmax_width) * (kTunedHead + softmax_width) / kTunedHead;
  if (d <= kTunedHead) return e;
  const double width = (std::min(d, kWidestHead) - kTunedHead) / (kWidestHead - kTunedHead);
  return e * (1 - (1 - wide_head_speed) * width);
}

/// Speed of the unfused batched products at head sizes that the library has no fast kernel for,
/// beside the misalignment that gemm_time() knows. Fitted to BLOOM's tuning runs (sizes 96 to 150;
/// bigscience-workshop/bigscience, train/tr11).
double unfused_head_speed(double d) {
  if (std::fmod(d, 8) != 0) return 0.10;
  return std::fmod(d, 32) != 0 ? 0.40 : 1.0;
}

/// quant of the header. `ramp_tokens` is s0.
double wave_quantisation(const AttentionShape& shape, double ramp_tokens, const GpuSpec& gpu) {
  const double waves =
      shape.sequences * shape.heads * std::ceil(shape.tokens / kQueryBlock) / gpu.sm_count;
  const double equal = waves < kManyWaves ? std::ceil(waves) - waves : 0.5;
  const double last = longest_keys(shape);
  const double mean = std::min(last, mean_keys(shape) + kQueryBlock / 2);
  const double longest = (last + ramp_tokens) / (mean + ramp_tokens);
  const double idle = (2 - longest) * equal + (longest - 1) * longest / 2;
  return std::max(longest / waves, 1 + idle / waves);
}

/// The width that a kernel is compiled for and works on, for heads of `d`.
double compiled_width(double d, std::span<const double> widths) {
  const auto it = std::ranges::lower_bound(widths, d);
  return it == widths.end() ? d : *it;
}

/// Mean of the widths that queries and values take.
double compiled_width(const AttentionShape& shape, const AttentionKernelKind& kind) {
  const std::span<const double> widths =
      shape.direction == Direction::forward ? kind.forward_widths : kind.backward_widths;
  if (shape.query_dim == 0) return compiled_width(shape.head_dim, widths);
  const double value_dim = 2 * shape.head_dim - shape.query_dim;
  return (compiled_width(shape.query_dim, widths) + compiled_width(value_dim, widths)) / 2;
}

Seconds unfused_time(const AttentionShape& shape, const AttentionKernelKind&, const GpuSpec& gpu,
                     const ElementwiseTraffic& traffic, Load load) {
  const double count = shape.sequences * shape.heads;
  const double s = shape.tokens, d = shape.head_dim;
  const double over = shape.keys > 0 ? shape.keys : s;
  const Seconds products =
      (gemm_time({.m = s, .n = over, .k = d, .count = count}, Precision::fp16, gpu, load) +
       gemm_time({.m = s, .n = d, .k = over, .count = count}, Precision::fp16, gpu, load)) /
      unfused_head_speed(d);
  const Seconds softmax =
      memory_bound_time(Bytes{traffic.score_bytes * count * s * over}, gpu) * traffic.slowdown;
  if (shape.direction == Direction::forward) return products + softmax;
  return products * 2 + softmax * traffic.score_backward_ratio;
}

Seconds fused_time(const AttentionShape& shape, const AttentionKernelKind& kind, const GpuSpec& gpu,
                   const ElementwiseTraffic& traffic, Load load) {
  const AttentionConstants* constants = attention_constants(kind.kernel, gpu);
  if (constants == nullptr) return unfused_time(shape, kind, gpu, traffic, load);
  const double s = shape.tokens;
  const double keys = mean_keys(shape) + constants->ramp_tokens;
  const double width = compiled_width(shape, kind);
  const Flops work{4 * shape.sequences * shape.heads * s * keys * width *
                   wave_quantisation(shape, constants->ramp_tokens, gpu)};
  const double clock = load == Load::sustained ? std::pow(gpu.gemm.sustained, kPowerShare) : 1.0;
  const double head = head_size_efficiency(width, constants->softmax_width, kind.wide_head_speed);
  const Seconds body = work / (gpu.peak_fp16 * (constants->efficiency * head * clock));
  return constants->launch +
         (shape.direction == Direction::forward ? body : body * constants->backward_ratio);
}

// Compiled for: github:Dao-AILab/flash-attention, csrc/flash_attn/src and hopper/instantiations.
// cuDNN's: from measured times of heads of 72 to 256 (the profile h200_sxm_measured).
constexpr std::array kFlash1Widths{32.0, 64.0, 128.0};
constexpr std::array kFlash2Widths{32.0, 64.0, 96.0, 128.0, 192.0, 256.0};
constexpr std::array kFlash3Widths{64.0, 96.0, 128.0, 192.0, 256.0};
constexpr std::array kCudnnForward{64.0, 128.0, 192.0, 256.0};
constexpr std::array kCudnnBackward{64.0, 128.0, 256.0};

// Speeds at head size 256: FlashAttention-3's figures 5 and 6, H100 (0.85, 0.99 and 0.82 fitted).
constexpr std::array kKernels{
    AttentionKernelKind{AttentionKernel::unfused,
                        "unfused",
                        "Two batched products with the scores written to memory in between.",
                        "Korthikanti et al. 2022, arXiv:2205.05198, section 4",
                        1.0,
                        {},
                        {},
                        unfused_time},
    AttentionKernelKind{AttentionKernel::flash1, "flash1",
                        "FlashAttention: scores stay in the SM, heads in parallel.",
                        "Dao et al. 2022, arXiv:2205.14135", 0.85, kFlash1Widths, kFlash1Widths,
                        fused_time},
    AttentionKernelKind{AttentionKernel::flash2, "flash2",
                        "FlashAttention-2: also parallel over blocks of queries.",
                        "Dao 2023, arXiv:2307.08691", 0.85, kFlash2Widths, kFlash2Widths,
                        fused_time},
    AttentionKernelKind{AttentionKernel::flash3, "flash3",
                        "FlashAttention-3: Hopper's asynchronous products and copies.",
                        "Shah et al. 2024, arXiv:2407.08608", 0.99, kFlash3Widths, kFlash3Widths,
                        fused_time},
    AttentionKernelKind{
        AttentionKernel::cudnn, "cudnn", "cuDNN's fused attention, as Transformer Engine runs it.",
        "NVIDIA cuDNN frontend, benchmark", 0.82, kCudnnForward, kCudnnBackward, fused_time},
};
static_assert(kKernels.size() == kAttentionKernels);

}  // namespace

double longest_keys(const AttentionShape& shape) {
  if (shape.keys > 0) return shape.keys;
  return shape.window > 0 ? std::min(shape.window, shape.tokens) : shape.tokens;
}

double mean_keys(const AttentionShape& shape) {
  const double reach = longest_keys(shape);
  if (shape.keys > 0 || !shape.causal) return reach;
  return reach - reach * reach / (2 * shape.tokens);
}

Flops attention_flops(const AttentionShape& shape) {
  const double square = shape.tokens * mean_keys(shape);
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
  const AttentionKernelKind& kind = kKernels[static_cast<std::size_t>(kernel)];
  const double measured = gpu.profile ? gpu.profile->attention(shape, kernel) : 1;
  return measured * kind.law(shape, kind, gpu, traffic, load);
}

}  // namespace lockstep
