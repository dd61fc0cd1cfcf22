#include "sim/measured/kernel_kinds.hpp"

#include <array>
#include <string>

#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

struct KernelWord {
  std::string_view word;  ///< in lower case
  KernelKind kind;
};

// Source: names in traces of PyTorch 1.13 to 2.9 on CUDA 11 to 13 and ROCm 6. The first that fits
// decides.
constexpr std::array kKernelWords{
    KernelWord{"nccl", KernelKind::collective},  // RCCL's too
    KernelWord{"memcpy", KernelKind::copy},
    KernelWord{"memset", KernelKind::copy},
    KernelWord{"copybuffer", KernelKind::copy},
    KernelWord{"fillbuffer", KernelKind::copy},
    KernelWord{"flash", KernelKind::attention},
    KernelWord{"fmha", KernelKind::attention},
    KernelWord{"attention", KernelKind::attention},
    KernelWord{"sdpa", KernelKind::attention},  // cuDNN's
    // AOTriton's, which PyTorch has on ROCm.
    KernelWord{"attn_fwd", KernelKind::attention},
    KernelWord{"attn_bwd", KernelKind::attention},
    KernelWord{"bwd_kernel_d", KernelKind::attention},
    KernelWord{"bwd_preprocess", KernelKind::attention},
    KernelWord{"gemm", KernelKind::product},
    KernelWord{"gemv", KernelKind::product},
    KernelWord{"nvjet", KernelKind::product},   // cuBLAS from 12.4 on, Hopper and later
    KernelWord{"cijk_", KernelKind::product},   // rocBLAS and hipBLASLt
    KernelWord{"splitk", KernelKind::product},  // the sum of its parts
    KernelWord{"cutlass", KernelKind::product},
    KernelWord{"xmma", KernelKind::product},
    KernelWord{"cublas", KernelKind::product},
    KernelWord{"_mm_", KernelKind::product},  // Inductor's templates
    // Convolutions of cuDNN and MIOpen are products too.
    KernelWord{"matmul", KernelKind::product},
    KernelWord{"scudnn", KernelKind::product},
    KernelWord{"hcudnn", KernelKind::product},
    KernelWord{"convolve", KernelKind::product},
    KernelWord{"winograd", KernelKind::product},
    KernelWord{"dgrad", KernelKind::product},
    KernelWord{"wgrad", KernelKind::product},
    KernelWord{"sp3asmconv", KernelKind::product},
    KernelWord{"naive_conv", KernelKind::product},
    KernelWord{"elementwise", KernelKind::memory},
    KernelWord{"reduce", KernelKind::memory},
    KernelWord{"norm", KernelKind::memory},
    KernelWord{"bn_fw", KernelKind::memory},  // cuDNN's batch norms
    KernelWord{"bn_bw", KernelKind::memory},
    KernelWord{"_pool", KernelKind::memory},
    KernelWord{"nchwtonhwc", KernelKind::memory},
    KernelWord{"nhwctonchw", KernelKind::memory},
    KernelWord{"subtensorop", KernelKind::memory},  // MIOpen's
    KernelWord{"act_and_mul", KernelKind::memory},
    KernelWord{"rocprim", KernelKind::memory},
    KernelWord{"im2col", KernelKind::memory},
    KernelWord{"softmax", KernelKind::memory},
    KernelWord{"triton", KernelKind::memory},
    KernelWord{"catarray", KernelKind::memory},
    KernelWord{"index", KernelKind::memory},
    KernelWord{"gather", KernelKind::memory},
    KernelWord{"scatter", KernelKind::memory},
    KernelWord{"embedding", KernelKind::memory},
    KernelWord{"dropout", KernelKind::memory},
    KernelWord{"multi_tensor", KernelKind::memory},  // fused optimisers
    KernelWord{"transpose", KernelKind::memory},
    KernelWord{"cast", KernelKind::memory},
    KernelWord{"rope", KernelKind::memory},
    KernelWord{"rotary", KernelKind::memory},
    KernelWord{"gelu", KernelKind::memory},
    KernelWord{"swiglu", KernelKind::memory},
    KernelWord{"cross_entropy", KernelKind::memory},
    KernelWord{"nll_loss", KernelKind::memory},
};

}  // namespace

std::string_view name_of(KernelKind kind) {
  constexpr std::array<std::string_view, 6> kNames{"attention", "collective",   "product",
                                                   "copy",      "memory-bound", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

KernelKind kernel_kind(std::string_view name) {
  const std::string text = lowered(name);
  for (const KernelWord& row : kKernelWords) {
    if (text.find(row.word) != std::string::npos) return row.kind;
  }
  return KernelKind::other;
}

}  // namespace lockstep
