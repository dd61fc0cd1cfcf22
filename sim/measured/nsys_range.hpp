/// What an NVTX range of PyTorch's emit_nvtx(record_shapes=True) says, and names of kernels beside
/// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/measured/kineto_trace.hpp"

namespace lockstep {

/// An operator's range around a kernel.
struct NsysRange {
  KinetoOperator op;   ///< without types and values, which ranges do not have
  std::string kernel;  ///< what follows the range, as :nvtx-name puts it; may be empty
};

/// Of ":aten::mm, seq = 7, sizes = [[4096, 1024], [1024, 2048]]" and the like, with the name of an
/// NVTX domain in front or without, and a slash and the kernel behind or nothing. Nothing for a
/// range of something else; an operator whose shapes were not recorded has none.
std::optional<NsysRange> parse_nsys_range(std::string_view text);

/// The type of a product's operands by its kernel's name, as PyTorch calls it: "c10::BFloat16",
/// "c10::Half", "c10::Float8_e4m3fn"; kTf32Type for single precision on tensor cores, and "float"
/// without them. Empty where the name does not say.
std::string operand_type_of(std::string_view kernel);

/// Whether a kernel of FlashAttention 2 masks what comes later, by the template arguments in its
/// name. Nothing where the name does not say.
std::optional<bool> causal_of(std::string_view kernel);

}  // namespace lockstep
