/// The time of the attention core (scores, softmax, values) of one layer on one GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/load.hpp"
#include "models/spec/software.hpp"

namespace lockstep {

enum class Direction : std::uint8_t { forward, backward };

/// One call of the attention core; counts, all at least 1.
struct AttentionShape {
  double sequences;    ///< b, of the micro batch
  double tokens;       ///< s, per sequence
  double heads;        ///< a, query heads on this GPU
  double kv_heads;     ///< g, key and value heads on this GPU
  double head_dim;     ///< d
  bool causal = true;  ///< later tokens are masked; fused kernels skip them
  double window = 0;   ///< tokens that each looks back, or around where nothing is masked, at least
                       ///< 1; 0: all. Fused kernels skip others
  Direction direction = Direction::forward;
  double query_dim = 0;  ///< of queries and keys, where values differ; head_dim is their mean
  double keys = 0;       ///< of another sequence that all queries go over; 0: of their own
};

/// Keys that the last query meets: s, or the window's if that is less.
double longest_keys(const AttentionShape& shape);

/// Keys that a query meets on average: s, or s / 2 if causal; with a window w < s of causal
/// attention w - w^2 / (2 s), and w where later tokens are not masked.
double mean_keys(const AttentionShape& shape);

/// FLOPs that the mathematics needs: 4 b a s^2 d forward, half of it if causal; backward 2.5 times
/// (Dao 2023, arXiv:2307.08691, section 4.1). Unfused kernels do both halves of a causal square.
Flops attention_flops(const AttentionShape& shape);

/// Time of the attention core by the law of `kernel`, in 16 bit whatever the products run in.
///
/// Fused kernels (flash1, flash2, flash3, cudnn), forward:
///     T = t0 + 4 b a s (s / 2 + s0) d quant / (eta e_d peak)      mean_keys() for the s / 2
///     e_d = d / (d + d0) (128 + d0) / 128
/// d is the width that the kernel is compiled for, the next one that holds the head. An SM takes a
/// block of 128 queries of one head, w = b a ceil(s / 128) / SMs of them each: quant = ceil(w) / w
/// up to four waves, 1 + 1 / (2 w) beyond; and (L - 1) / w more, as the last wave ends with the
/// longest block, which has L = (s + s0) / (s / 2 + 64 + s0) times the mean to do where causal. s0:
/// what a block costs beside its keys.
/// e_d: the exponentials of a score take as long as d0 elements of head size; heads wider than 128
/// lose up to AttentionKernelKind::wide_head_speed at 256, since their tiles no longer fit the
/// registers. The backward pass takes backward_ratio times as long, without t0. Unfused: two
/// batched products over the full square (four backward), slow at head sizes that are no multiple
/// of 64, and the traffic of the scores through softmax, mask and dropout, `traffic.score_bytes`
/// each. A GPU without constants of this generation runs the nearest one that it has, else unfused.
/// Times the ratio that gpu.profile has for it, if there is one.
Seconds attention_time(const AttentionShape& shape, AttentionKernel kernel, const GpuSpec& gpu,
                       const ElementwiseTraffic& traffic, Load load = Load::burst);

/// To add a generation: extend AttentionKernel, write its law, and give it one row in
/// attention.cpp.
struct AttentionKernelKind {
  AttentionKernel kernel;
  std::string_view name;  ///< as presets say it
  std::string_view summary;
  std::string_view source;
  double wide_head_speed;  ///< at head size 256, of what e_d gives; 1: no loss
  /// Head sizes that it is compiled for, ascending; wider heads take their own.
  std::span<const double> forward_widths, backward_widths;
  Seconds (*law)(const AttentionShape& shape, const AttentionKernelKind& kind, const GpuSpec& gpu,
                 const ElementwiseTraffic& traffic, Load load);
};
/// Every generation, in the order of the enumeration.
std::span<const AttentionKernelKind> attention_kernels();

/// The constants that `gpu` runs `kernel` with: its own, else those of the nearest generation that
/// it has (older first). Null for a GPU that has none, and for the unfused kernel.
const AttentionConstants* attention_constants(AttentionKernel kernel, const GpuSpec& gpu);

}  // namespace lockstep
