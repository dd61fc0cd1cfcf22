/// What the names of a recorded step's kernels and operators say of the software that launched
/// them: whose attention, which operators are fused, which optimiser.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

enum class KernelMark : std::uint8_t {
  // Attention.
  flash1,
  flash2,
  flash3,
  cudnn_attention,
  other_attention,     ///< fused, and no kernel that has a law here
  attention_forward,   ///< one a layer and micro batch, whatever the library
  attention_backward,  ///< the same
  softmax,             ///< none of a loss
  // Norms.
  rms_norm,  ///< one kernel
  rms_library,
  rms_triton,
  rms_pytorch,
  rsqrt,  ///< of RMSNorm operator by operator, with `power`
  power,
  layer_norm,
  // Rotary embedding.
  rotary,
  negation,  ///< of rotate_half, with `concatenation`
  concatenation,
  complex_product,
  // Activation.
  swiglu,
  silu,
  gelu,
  // Loss.
  cross_entropy,
  chunked_loss,
  parallel_loss,
  nll_loss,
  // torch.compile.
  inductor,
  inductor_norm,
  inductor_silu,
  elementwise,  ///< of ATen
  // Optimiser.
  fused_adam,
  apex_adam,
  eager_adam,
  int8_states,
  fp32_states,
  bf16_states,
  // Sharding, experts, the rest.
  fsdp1,
  fsdp2,
  ddp,
  grouped_product,
  routed,
  user_buffers,
  backward,
};
inline constexpr std::size_t kKernelMarks = static_cast<std::size_t>(KernelMark::backward) + 1;

/// How many have a mark, of all ranks.
struct MarkedKernels {
  std::size_t kernels = 0;    ///< on the GPU
  std::size_t operators = 0;  ///< of the host, and ranges of frameworks that mark what they do
  std::string example;        ///< a name, or the part of it that marks it
  [[nodiscard]] std::size_t all() const { return kernels > 0 ? kernels : operators; }
};

struct KernelMarks {
  std::size_t ranks = 0;  ///< that were recorded
  std::array<MarkedKernels, kKernelMarks> marks;
  [[nodiscard]] const MarkedKernels& of(KernelMark mark) const {
    return marks[static_cast<std::size_t>(mark)];
  }
  [[nodiscard]] std::size_t count(KernelMark mark) const { return of(mark).all(); }
};

KernelMarks kernel_marks(std::span<const KinetoRecording> recordings);

/// Whether a name has a mark.
bool has_mark(std::string_view name, KernelMark mark);

}  // namespace lockstep
