#include "sim/measured/kernel_marks.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

/// A name with both words and none of the others, in lower case.
struct MarkRow {
  KernelMark mark;
  std::array<std::string_view, 2> words;
  std::array<std::string_view, 2> without{};
};

constexpr std::string_view kInductorPoint = "triton_poi_", kInductorSum = "triton_red_";

// Sources: github.com/Dao-AILab/flash-attention (csrc, hopper), cuDNN's generated kernels,
// facebookresearch/xformers, ROCm/aotriton; NVIDIA/TransformerEngine, NVIDIA/apex,
// linkedin/Liger-Kernel; pytorch/pytorch (aten/src/ATen/native/cuda, torch/_inductor/codegen,
// torch/distributed/fsdp); bitsandbytes.
constexpr std::array kMarkRows{
    MarkRow{KernelMark::flash1, {"fmha_fwd_loop"}},
    MarkRow{KernelMark::flash1, {"fmha_fprop"}},
    MarkRow{KernelMark::flash1, {"fmha_bwd_dq_dk_dv_loop"}},
    MarkRow{KernelMark::flash2, {"flash_fwd_kernel"}},
    MarkRow{KernelMark::flash2, {"flash_bwd_dq_dk_dv"}},
    MarkRow{KernelMark::flash2, {"attn_fwd"}},  // AOTriton: the algorithm of FlashAttention-2
    MarkRow{KernelMark::flash2, {"bwd_kernel_dk_dv"}},
    MarkRow{KernelMark::flash3, {"flashattnfwd"}},
    MarkRow{KernelMark::flash3, {"flashattnbwdsm"}},
    MarkRow{KernelMark::flash3, {"compute_attn_ws"}},
    MarkRow{KernelMark::cudnn_attention, {"cudnn", "sdpa"}},
    MarkRow{KernelMark::other_attention, {"fmha_cutlass"}},
    MarkRow{KernelMark::other_attention, {"fmhafwd"}},
    MarkRow{KernelMark::attention_forward, {"fmha_fwd_loop"}},
    MarkRow{KernelMark::attention_forward, {"flash_fwd_kernel"}},
    MarkRow{KernelMark::attention_forward, {"attn_fwd"}},
    MarkRow{KernelMark::attention_forward, {"flashattnfwdsm"}},
    MarkRow{KernelMark::attention_forward, {"sdpa", "fprop"}},
    MarkRow{KernelMark::attention_backward, {"fmha_bwd_dq_dk_dv_loop"}},
    MarkRow{KernelMark::attention_backward, {"flash_bwd_dq_dk_dv"}},
    MarkRow{KernelMark::attention_backward, {"bwd_kernel_dk_dv"}},
    MarkRow{KernelMark::attention_backward, {"flashattnbwdsm"}},
    MarkRow{KernelMark::attention_backward, {"sdpa", "bprop"}},
    MarkRow{KernelMark::softmax, {"cunn_softmax"}, {"log", "xentropy"}},
    // The first of its last two arguments says whether it makes logarithms.
    MarkRow{KernelMark::softmax, {"softmax_warp", ", false, "}},
    MarkRow{KernelMark::softmax, {"masked_softmax"}},
    MarkRow{KernelMark::softmax, {"triton_", "_softmax"}, {"log_softmax"}},

    MarkRow{KernelMark::rms_norm, {"rmsnorm"}, {"triton_", "backward0"}},
    MarkRow{KernelMark::rms_norm, {"rms_norm"}, {"triton_", "backward0"}},
    MarkRow{KernelMark::rms_norm, {"cuapplyrms"}},
    MarkRow{KernelMark::rms_library, {"transformer_engine", "rmsnorm"}},
    MarkRow{KernelMark::rms_library, {"rmsnorm_fwd"}},
    MarkRow{KernelMark::rms_library, {"cuapplyrms"}},
    MarkRow{KernelMark::rms_triton, {"rms_norm_forward_kernel"}},
    MarkRow{KernelMark::rms_triton, {"rms_norm_backward_kernel"}},
    MarkRow{KernelMark::rms_pytorch, {"aten::_fused_rms_norm"}},
    MarkRow{KernelMark::rsqrt, {"rsqrt_kernel"}},
    MarkRow{KernelMark::power, {"pow_tensor_scalar"}},
    MarkRow{KernelMark::layer_norm, {"layer_norm_kernel"}, {kInductorPoint, kInductorSum}},
    MarkRow{KernelMark::layer_norm, {"layernorm"}},
    MarkRow{KernelMark::layer_norm, {"ln_fwd"}},

    MarkRow{KernelMark::rotary, {"fused_rope"}},
    MarkRow{KernelMark::rotary, {"_triton_rope"}},
    MarkRow{KernelMark::rotary, {"rope_kernel"}},
    MarkRow{KernelMark::rotary, {"rotary_kernel"}},
    MarkRow{KernelMark::negation, {"neg_kernel"}},
    MarkRow{KernelMark::concatenation, {"catarray"}},
    MarkRow{KernelMark::complex_product, {"c10::complex<float>", "mul"}},

    MarkRow{KernelMark::swiglu, {"swiglu"}, {kInductorPoint, "aten::"}},
    MarkRow{KernelMark::swiglu, {"transformer_engine", "gated"}},
    MarkRow{KernelMark::silu, {"at::native", "silu_kernel"}},
    MarkRow{KernelMark::silu, {"at::native", "silu_backward"}},
    MarkRow{KernelMark::gelu, {"gelu"}},

    MarkRow{KernelMark::cross_entropy, {"cross_entropy"}, {"aten::", "triton_red_"}},
    MarkRow{KernelMark::cross_entropy, {"xentropy"}},
    MarkRow{KernelMark::chunked_loss, {"fusedlinearcrossentropy"}},
    MarkRow{KernelMark::parallel_loss, {"vocabparallelcrossentropy"}},
    MarkRow{KernelMark::nll_loss, {"at::native", "nll_loss"}},

    MarkRow{KernelMark::inductor, {kInductorPoint}},
    MarkRow{KernelMark::inductor, {kInductorSum}},
    MarkRow{KernelMark::inductor, {"triton_per_"}},
    MarkRow{KernelMark::inductor_norm, {"triton_", "rsqrt"}, {"_triton_", "adam"}},
    MarkRow{KernelMark::inductor_norm, {"triton_", "native_layer_norm"}},
    MarkRow{KernelMark::inductor_norm, {"triton_", "fused_rms_norm"}},
    MarkRow{KernelMark::inductor_silu, {"triton_", "silu"}},
    MarkRow{KernelMark::elementwise, {"at::native", "elementwise"}},

    MarkRow{KernelMark::fused_adam, {"fusedadammath"}},
    MarkRow{KernelMark::apex_adam, {"adamfunctor"}, {"at::native"}},
    MarkRow{KernelMark::apex_adam, {"multi_tensor_adam"}},
    MarkRow{KernelMark::eager_adam, {"at::native", "addcdiv"}},
    MarkRow{KernelMark::eager_adam, {"multi_tensor_apply", "pointwiseop"}},
    MarkRow{KernelMark::int8_states, {"optimizerstatic8bit"}},
    MarkRow{KernelMark::fp32_states, {"fusedadammathfunctor<float"}},
    MarkRow{KernelMark::bf16_states, {"fusedadammathfunctor<c10::bfloat16"}},

    MarkRow{KernelMark::fsdp1, {"fullyshardeddataparallel."}},
    MarkRow{KernelMark::fsdp2, {"fsdp::all_gather_copy"}},
    MarkRow{KernelMark::fsdp2, {"fsdp::chunk_cat"}},
    MarkRow{KernelMark::fsdp2, {"fsdp::split_with_sizes_copy"}},
    MarkRow{KernelMark::ddp, {"distributeddataparallel.forward"}},
    MarkRow{KernelMark::grouped_product, {"grouped_gemm"}},
    MarkRow{KernelMark::grouped_product, {"group_gemm"}},
    MarkRow{KernelMark::grouped_product, {"gemmgrouped"}},
    MarkRow{KernelMark::grouped_product, {"groupproblemshape"}},
    MarkRow{KernelMark::grouped_product, {"_grouped_mm"}},
    MarkRow{KernelMark::routed, {"topk"}},
    MarkRow{KernelMark::routed, {"moe"}},
    MarkRow{KernelMark::user_buffers, {"userbuffers"}},
    MarkRow{KernelMark::backward, {"backward"}},
    MarkRow{KernelMark::backward, {"bwd"}},
    MarkRow{KernelMark::backward, {"bprop"}},
    MarkRow{KernelMark::backward, {"dgrad"}},
    MarkRow{KernelMark::backward, {"wgrad"}},
};

bool has_words(const MarkRow& row, std::string_view lower) {
  const auto has = [&](std::string_view word) {
    return lower.find(word) != std::string_view::npos;
  };
  return std::ranges::all_of(row.words, has) &&
         std::ranges::none_of(row.without,
                              [&](std::string_view word) { return !word.empty() && has(word); });
}

/// A name, or what of a long one is around the word that marks it.
std::string excerpt(const std::string& name, const std::string& lower, const MarkRow& row) {
  constexpr std::size_t kLongest = 44, kBefore = 16;
  if (name.size() <= kLongest) return name;
  const std::string_view word = row.words[1].empty() ? row.words[0] : row.words[1];
  const std::size_t at = lower.find(word), from = at > kBefore ? at - kBefore : 0;
  std::string out = (from > 0 ? "..." : "") + name.substr(from, kLongest);
  if (from + kLongest < name.size()) out += "...";
  return out;
}

/// By `KinetoRecording::names`: events, operators and ranges of that name.
struct NameUses {
  std::vector<std::size_t> kernels, operators, ranges;
};

/// Of ranges, which anybody may name anything, those of frameworks alone count.
constexpr std::array kRangeMarks{KernelMark::fsdp1, KernelMark::fsdp2, KernelMark::ddp,
                                 KernelMark::chunked_loss, KernelMark::parallel_loss};

NameUses uses_of_names(const KinetoRecording& recording) {
  NameUses out{.kernels = std::vector<std::size_t>(recording.names.size()),
               .operators = std::vector<std::size_t>(recording.names.size()),
               .ranges = std::vector<std::size_t>(recording.names.size())};
  for (const KinetoRecording::GpuEvent& event : recording.gpu) {
    if (!event.copies && !event.communicates()) ++out.kernels[event.name];
  }
  for (const KinetoRecording::Operator& each : recording.operators) {
    ++(each.is_range ? out.ranges : out.operators)[each.name];
  }
  return out;
}

}  // namespace

bool has_mark(std::string_view name, KernelMark mark) {
  const std::string lower = lowered(name);
  return std::ranges::any_of(
      kMarkRows, [&](const MarkRow& row) { return row.mark == mark && has_words(row, lower); });
}

KernelMarks kernel_marks(std::span<const KinetoRecording> recordings) {
  KernelMarks out;
  out.ranks = recordings.size();
  for (const KinetoRecording& recording : recordings) {
    const NameUses uses = uses_of_names(recording);
    for (std::size_t name = 0; name < recording.names.size(); ++name) {
      const std::string lower = lowered(recording.names[name]);
      std::array<const MarkRow*, kKernelMarks> has{};
      for (const MarkRow& row : kMarkRows) {
        if (has_words(row, lower)) has[static_cast<std::size_t>(row.mark)] = &row;
      }
      for (std::size_t mark = 0; mark < kKernelMarks; ++mark) {
        if (has[mark] == nullptr) continue;
        const bool ranged =
            std::ranges::find(kRangeMarks, static_cast<KernelMark>(mark)) != kRangeMarks.end();
        const std::size_t operators = uses.operators[name] + (ranged ? uses.ranges[name] : 0);
        if (uses.kernels[name] + operators == 0) continue;
        MarkedKernels& marked = out.marks[mark];
        // An example of what is counted: a kernel, where there is one.
        if (marked.example.empty() || (marked.kernels == 0 && uses.kernels[name] > 0)) {
          marked.example = excerpt(recording.names[name], lower, *has[mark]);
        }
        marked.kernels += uses.kernels[name];
        marked.operators += operators;
      }
    }
  }
  return out;
}

}  // namespace lockstep
