#include "sim/measured/operator_words.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

/// A name with the word and without the other, in lower case.
struct OperatorWord {
  std::string_view word;
  ModelOperator of;
  std::string_view without{};
};

// Sources: as of kernel_marks.cpp; operators and autograd's nodes of PyTorch 1.13 to 2.9
// (aten/src/ATen/native/native_functions.yaml, tools/autograd/derivatives.yaml), Megatron-LM
// (megatron/core/transformer/moe), state-spaces/mamba and fla-org/flash-linear-attention.
constexpr std::array kOperatorWords{
    OperatorWord{"adam", ModelOperator::optimiser},
    OperatorWord{"adagrad", ModelOperator::optimiser},
    OperatorWord{"optimizer.", ModelOperator::optimiser},
    OperatorWord{"optimizerstatic", ModelOperator::optimiser},
    OperatorWord{"multi_tensor_sgd", ModelOperator::optimiser},
    OperatorWord{"fused_sgd", ModelOperator::optimiser},
    OperatorWord{"foreach_norm", ModelOperator::optimiser},
    OperatorWord{"l2norm", ModelOperator::optimiser},
    OperatorWord{"clip_grad", ModelOperator::optimiser},
    OperatorWord{"accumulategrad", ModelOperator::gradients},

    OperatorWord{"flash_attn", ModelOperator::attention},
    OperatorWord{"flash_attention", ModelOperator::attention},
    OperatorWord{"flashattn", ModelOperator::attention},
    OperatorWord{"scaled_dot_product", ModelOperator::attention},
    OperatorWord{"scaleddotproduct", ModelOperator::attention},
    OperatorWord{"efficient_attention", ModelOperator::attention},
    OperatorWord{"dotproductattention", ModelOperator::attention},
    OperatorWord{"fusedattn", ModelOperator::attention},
    OperatorWord{"masked_softmax", ModelOperator::attention},
    OperatorWord{"scaled_upper_triang", ModelOperator::attention},

    OperatorWord{"layer_norm", ModelOperator::norm},
    OperatorWord{"layernorm", ModelOperator::norm},
    OperatorWord{"rmsnorm", ModelOperator::norm},
    OperatorWord{"rms_norm", ModelOperator::norm},
    OperatorWord{"cuapplyrms", ModelOperator::norm},
    OperatorWord{"ln_fwd", ModelOperator::norm},
    OperatorWord{"ln_bwd", ModelOperator::norm},
    OperatorWord{"rsqrt", ModelOperator::norm, "adam"},

    OperatorWord{"fused_rope", ModelOperator::rotary},
    OperatorWord{"_rope", ModelOperator::rotary},
    OperatorWord{"rope_", ModelOperator::rotary},
    OperatorWord{"rotary", ModelOperator::rotary},
    OperatorWord{"rotate_half", ModelOperator::rotary},

    OperatorWord{"silu", ModelOperator::activation},
    OperatorWord{"swiglu", ModelOperator::activation},
    OperatorWord{"gelu", ModelOperator::activation, "addmm"},
    OperatorWord{"geglu", ModelOperator::activation},
    OperatorWord{"relu", ModelOperator::activation, "addmm"},

    OperatorWord{"cross_entropy", ModelOperator::loss},
    OperatorWord{"crossentropy", ModelOperator::loss},
    OperatorWord{"xentropy", ModelOperator::loss},
    OperatorWord{"nll_loss", ModelOperator::loss},
    OperatorWord{"nllloss", ModelOperator::loss},
    OperatorWord{"log_softmax", ModelOperator::loss},
    OperatorWord{"logsoftmax", ModelOperator::loss},

    OperatorWord{"embedding", ModelOperator::embedding, "rotary"},

    OperatorWord{"topk", ModelOperator::router},
    OperatorWord{"moe_gating", ModelOperator::router},
    OperatorWord{"router", ModelOperator::router},
    OperatorWord{"moe_permut", ModelOperator::permute},
    OperatorWord{"unpermute", ModelOperator::permute},
    OperatorWord{"permute_kernel", ModelOperator::permute, "unpermute"},
    OperatorWord{"sort_chunks", ModelOperator::permute},
    OperatorWord{"grouped_mm", ModelOperator::experts},
    OperatorWord{"grouped_gemm", ModelOperator::experts},
    OperatorWord{"group_gemm", ModelOperator::experts},
    OperatorWord{"groupedgemm", ModelOperator::experts},
    OperatorWord{"gemmgrouped", ModelOperator::experts},
    OperatorWord{"groupproblemshape", ModelOperator::experts},
    OperatorWord{"groupedlinear", ModelOperator::experts},

    OperatorWord{"cast_transpose", ModelOperator::quantise},
    OperatorWord{"quantiz", ModelOperator::quantise},
    OperatorWord{"amax", ModelOperator::quantise},

    OperatorWord{"selective_scan", ModelOperator::recurrence},
    OperatorWord{"mamba", ModelOperator::recurrence},
    OperatorWord{"chunk_scan", ModelOperator::recurrence},
    OperatorWord{"chunk_state", ModelOperator::recurrence},
    OperatorWord{"gated_delta", ModelOperator::recurrence},
    OperatorWord{"causal_conv1d", ModelOperator::recurrence},
};

}  // namespace

std::vector<ModelOperator> named_operators(std::string_view name) {
  const std::string lower = lowered(name);
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  std::vector<ModelOperator> out;
  for (const OperatorWord& row : kOperatorWords) {
    if (!has(row.word) || (!row.without.empty() && has(row.without))) continue;
    if (std::ranges::find(out, row.of) == out.end()) out.push_back(row.of);
  }
  return out;
}

}  // namespace lockstep
