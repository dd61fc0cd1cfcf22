/// What a GPU kernel does, by its name.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

enum class KernelKind : std::uint8_t { attention, collective, product, copy, memory, other };
std::string_view name_of(KernelKind kind);

/// By the first row of a table whose word is in the name, whatever its case: "nccl" a collective,
/// "flash" and "fmha" attention (before products, whose templates they use), "gemm", "cutlass",
/// "nvjet", "Cijk_" and "wgrad" a product, "elementwise", "layer_norm" and "triton" memory-bound.
KernelKind kernel_kind(std::string_view name);

}  // namespace lockstep
