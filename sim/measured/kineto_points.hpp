/// Which operators of PyTorch, and which collectives of torch.distributed, say enough to be points
/// of a profile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/kernels/kernel_profile.hpp"
#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/kineto_trace.hpp"

namespace lockstep {

/// Of operands that PyTorch calls "float", where their kernel's name says that it multiplies TF32.
inline constexpr std::string_view kTf32Type = "tf32";

/// A product (aten::mm, addmm, bmm, baddbmm, _scaled_mm, linear) with its shapes; without a time.
/// Nothing: another operator, or a number format that has no law.
std::optional<GemmPoint> product_of(const KinetoOperator& op);

/// Fused attention (aten::_flash_attention_*, aten::_scaled_dot_product_cudnn_attention*,
/// flash_attn's own) of sequences of one length.
std::optional<AttentionPoint> attention_of(const KinetoOperator& op);

/// A collective whose members lie evenly over nodes of `gpus_per_node` ranks each, without a time;
/// else `why` says why not.
std::optional<CollectivePoint> collective_point(const KinetoCollective& from, int gpus_per_node,
                                                std::string& why);

}  // namespace lockstep
