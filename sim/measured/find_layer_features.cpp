#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/stack_findings.hpp"

namespace lockstep {
namespace {

/// Of kernels of a rank's layers: two layers, both ways. Fewer may be of something else.
constexpr std::size_t kFewestSoftmax = 4, kFewestHalves = 8, kFewestNorms = 4, kFewestComplex = 8;
constexpr std::string_view kTrue = "true", kFalse = "false";

/// Which attention kernel a mark is.
struct AttentionMark {
  KernelMark mark;
  std::string_view value;  ///< JSON
};
constexpr std::array kAttentionMarks{AttentionMark{KernelMark::flash2, R"("flash2")"},
                                     AttentionMark{KernelMark::flash3, R"("flash3")"},
                                     AttentionMark{KernelMark::cudnn_attention, R"("cudnn")"},
                                     AttentionMark{KernelMark::flash1, R"("flash1")"}};

bool is_unfused(const KernelMarks& marks) {
  return marks.of(KernelMark::softmax).kernels >= kFewestSoftmax * marks.ranks;
}

void find_attention(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kPath = "attention";
  const auto* const most = std::ranges::max_element(
      kAttentionMarks, {}, [&](const AttentionMark& row) { return marks.of(row.mark).kernels; });
  const MarkedKernels& found = marks.of(most->mark);
  const MarkedKernels& softmax = marks.of(KernelMark::softmax);
  if (found.kernels > 0) {
    out.found(kPath, std::string(most->value), found.kernels, marked_text(found));
  } else if (marks.count(KernelMark::other_attention) > 0) {
    out.not_told(kPath, "fused by kernels without a law here: " +
                            marked_text(marks.of(KernelMark::other_attention)));
  } else if (is_unfused(marks)) {
    out.found(kPath, R"("unfused")", softmax.kernels,
              "no fused kernel, and softmax by itself: " + marked_text(softmax));
  } else {
    out.not_told(kPath, "no kernel of attention");
  }
}

/// Whose fused kernels: the ones of norms, which each library has.
void find_library(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kPath = "features.kernels";
  struct Library {
    KernelMark mark;
    std::string_view value;
  };
  constexpr std::array kLibraries{Library{KernelMark::rms_library, R"("library")"},
                                  Library{KernelMark::rms_triton, R"("triton")"},
                                  Library{KernelMark::rms_pytorch, R"("pytorch")"}};
  for (const Library& library : kLibraries) {
    const MarkedKernels& marked = marks.of(library.mark);
    if (marked.all() == 0) continue;
    return out.found(kPath, std::string(library.value), marked.all(), marked_text(marked));
  }
  out.not_told(kPath, "no fused RMSNorm, whose names tell the library");
}

/// Whether as many kernels are of the layers: at least `each` for an attention kernel, where these
/// are known.
bool are_of_layers(std::size_t kernels, std::size_t fewest, std::size_t each,
                   const KernelMarks& marks) {
  const std::size_t layers = marks.of(KernelMark::attention_forward).kernels;
  return kernels >= std::max(fewest * marks.ranks, each * layers);
}

/// RMSNorm operator by operator: a power, a mean and an inverse root each; 0: too few for layers,
/// of which each has two.
std::size_t eager_norms(const KernelMarks& marks) {
  const std::size_t norms =
      std::min(marks.of(KernelMark::rsqrt).kernels, marks.of(KernelMark::power).kernels);
  return are_of_layers(norms, kFewestNorms, 2, marks) ? norms : 0;
}

void find_norm(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kPath = "features.fused_norm";
  const MarkedKernels& fused = marks.of(KernelMark::rms_norm);
  if (fused.all() > 0) {
    out.found(kPath, std::string(kTrue), fused.all(), marked_text(fused));
  } else if (eager_norms(marks) > 0) {
    out.found(kPath, std::string(kFalse), eager_norms(marks),
              "RMSNorm by operators: " + marked_text(marks.of(KernelMark::rsqrt)));
  } else if (marks.count(KernelMark::inductor_norm) > 0) {
    out.found(kPath, std::string(kFalse), marks.count(KernelMark::inductor_norm),
              "norms are compiled: " + marked_text(marks.of(KernelMark::inductor_norm)));
  } else {
    out.not_told(kPath, marks.count(KernelMark::layer_norm) > 0
                            ? "LayerNorm, which is one kernel in any software"
                            : "no kernel of a norm that is known");
  }
}

void find_compiler(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kPath = "features.torch_compile";
  const MarkedKernels& compiled = marks.of(KernelMark::inductor);
  const MarkedKernels& norms = marks.of(KernelMark::inductor_norm);
  const bool other_norms = marks.count(KernelMark::rms_norm) > 0 || eager_norms(marks) > 0 ||
                           marks.count(KernelMark::layer_norm) > 0;
  if (norms.kernels > 0 && !other_norms) {
    out.found(kPath, std::string(kTrue), norms.kernels,
              "norms among the compiled kernels: " + marked_text(norms));
  } else if (norms.kernels > 0) {
    out.not_told(kPath, "some norms are compiled, others are not");
  } else if (compiled.kernels > 0) {
    if (other_norms) {
      out.found(kPath, std::string(kFalse), compiled.kernels,
                "pieces are compiled, norms are not: " + marked_text(compiled));
    } else {
      out.not_told(kPath, "compiled kernels, of which none is a norm's");
    }
  } else if (const MarkedKernels& eager = marks.of(KernelMark::elementwise); eager.kernels > 0) {
    out.found(kPath, std::string(kFalse), eager.kernels,
              "no compiled kernel beside " + marked_text(eager));
  } else {
    out.not_told(kPath, "no element-wise kernel that is known");
  }
}

bool is_compiled(const KernelMarks& marks) { return marks.count(KernelMark::inductor_norm) > 0; }

void find_rotary(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kFused = "features.fused_rope", kComplex = "features.complex_rope";
  const MarkedKernels& fused = marks.of(KernelMark::rotary);
  const MarkedKernels& complex = marks.of(KernelMark::complex_product);
  const MarkedKernels& halves = marks.of(KernelMark::negation);
  const bool attends = marks.count(KernelMark::attention_forward) > 0 ||
                       marks.count(KernelMark::other_attention) > 0 || is_unfused(marks);
  // Of queries and keys, forward and backward.
  const bool halved = attends && are_of_layers(halves.kernels, kFewestHalves, 4, marks) &&
                      2 * marks.of(KernelMark::concatenation).kernels >= halves.kernels;
  if (fused.kernels > 0) {
    out.found(kFused, std::string(kTrue), fused.kernels, marked_text(fused));
    return out.not_told(kComplex, "the rotary embedding is fused");
  }
  if (attends && are_of_layers(complex.kernels, kFewestComplex, 4, marks)) {
    out.found(kFused, std::string(kFalse), complex.kernels, marked_text(complex));
    return out.found(kComplex, std::string(kTrue), complex.kernels, marked_text(complex));
  }
  if (halved) {
    out.found(kFused, std::string(kFalse), halves.kernels,
              "halves negated and put together: " + marked_text(halves));
    return out.found(kComplex, std::string(kFalse), halves.kernels, marked_text(halves));
  }
  const std::string why = is_compiled(marks) ? "compiled with its neighbours, if there is one"
                                             : "no kernel of a rotary embedding";
  out.not_told(kFused, why);
  out.not_told(kComplex, why);
}

void find_activation(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kPath = "features.fused_swiglu";
  const MarkedKernels& fused = marks.of(KernelMark::swiglu);
  const MarkedKernels& compiled = marks.of(KernelMark::inductor_silu);
  const MarkedKernels& eager = marks.of(KernelMark::silu);
  if (fused.kernels > 0) {
    out.found(kPath, std::string(kTrue), fused.kernels, marked_text(fused));
  } else if (eager.kernels > 0) {
    out.found(kPath, std::string(kFalse), eager.kernels, "SiLU by itself: " + marked_text(eager));
  } else if (compiled.kernels > 0 && !is_compiled(marks)) {
    out.found(kPath, std::string(kTrue), compiled.kernels, "a piece: " + marked_text(compiled));
  } else if (compiled.kernels > 0) {
    out.found(kPath, std::string(kFalse), compiled.kernels,
              "compiled with its layer: " + marked_text(compiled));
  } else {
    out.not_told(
        kPath, marks.count(KernelMark::gelu) > 0 ? "GELU, one kernel in any software" : "no SiLU");
  }
}

void find_loss(const KernelMarks& marks, StackFindings& out) {
  constexpr std::string_view kFused = "features.fused_cross_entropy",
                             kChunked = "features.chunked_cross_entropy",
                             kParallel = "features.vocab_parallel_loss";
  const MarkedKernels& fused = marks.of(KernelMark::cross_entropy);
  const MarkedKernels& eager = marks.of(KernelMark::nll_loss);
  const MarkedKernels& chunked = marks.of(KernelMark::chunked_loss);
  const MarkedKernels& parallel = marks.of(KernelMark::parallel_loss);
  if (chunked.all() > 0) {
    out.found(kChunked, std::string(kTrue), chunked.all(), marked_text(chunked));
  } else {
    out.not_told(kChunked, "no operator that names it");
  }
  if (parallel.all() > 0) {
    out.found(kParallel, std::string(kTrue), parallel.all(), marked_text(parallel));
  } else if (fused.kernels == 0 && eager.kernels > 0) {
    out.found(kParallel, std::string(kFalse), eager.kernels, marked_text(eager));
  } else {
    out.not_told(kParallel, "no operator that names it");
  }
  if (fused.kernels > 0) {
    out.found(kFused, std::string(kTrue), fused.kernels, marked_text(fused));
  } else if (eager.kernels > 0) {
    out.found(kFused, std::string(kFalse), eager.kernels,
              "logarithms and loss by themselves: " + marked_text(eager));
  } else {
    out.not_told(kFused, "no kernel of a loss that is known");
  }
}

/// Products for each attention kernel forward and two for each backward: of a layer, as each of
/// its products has two gradients. What belongs to no layer (the output's) makes it a little more.
constexpr double kLeastOver = -0.05, kMostOver = 0.2;
constexpr int kFewestProducts = 4, kMostProducts = 7;

bool sums_parts(std::string_view name) {  // of a product that was split
  return name.find("reduce") != std::string_view::npos ||
         name.find("Reduce") != std::string_view::npos;
}

std::size_t products_in(std::span<const KinetoRecording> recordings) {
  std::size_t products = 0;
  for (const KinetoRecording& recording : recordings) {
    for (const KinetoRecording::GpuEvent& event : recording.gpu) {
      const std::string& name = recording.names[event.name];
      if (!event.communicates() && kernel_kind(name) == KernelKind::product && !sums_parts(name)) {
        ++products;
      }
    }
  }
  return products;
}

}  // namespace

std::string marked_text(const MarkedKernels& marked) {
  const bool kernels = marked.kernels > 0;
  return fmt::format("{}, such as {}",
                     counted(static_cast<double>(marked.all()), kernels ? "kernel" : "operator"),
                     marked.example);
}

void find_layer_features(const KernelMarks& marks, StackFindings& out) {
  find_attention(marks, out);
  find_norm(marks, out);
  find_rotary(marks, out);
  find_activation(marks, out);
  find_loss(marks, out);
  find_compiler(marks, out);
  find_library(marks, out);
}

void find_merged_products(std::span<const KinetoRecording> recordings, const KernelMarks& marks,
                          StackFindings& out) {
  constexpr std::string_view kQkv = "features.merged_qkv", kGateUp = "features.merged_gate_up";
  const auto none = [&](const std::string& why) {
    out.not_told(kQkv, why);
    out.not_told(kGateUp, why);
  };
  const std::size_t forward = marks.of(KernelMark::attention_forward).kernels,
                    backward = marks.of(KernelMark::attention_backward).kernels;
  if (forward == 0 || backward == 0) return none("no fused attention, by which layers are counted");
  if (marks.count(KernelMark::grouped_product) + marks.count(KernelMark::routed) > 0) {
    return none("experts, whose products are among the others");
  }
  const std::size_t products = products_in(recordings);
  const double a_layer =
      static_cast<double>(products) / static_cast<double>(forward + 2 * backward);
  const int whole = static_cast<int>(std::floor(a_layer - kLeastOver));
  const std::string from = fmt::format(
      "{} products, {} to an attention kernel of which {} are forward and {}, twice, backward",
      products, significant(a_layer), forward, backward);
  if (whole < kFewestProducts || whole > kMostProducts || a_layer - whole > kMostOver) {
    return none("no whole number of products in a layer: " + from);
  }
  const bool gated = marks.count(KernelMark::swiglu) + marks.count(KernelMark::silu) +
                         marks.count(KernelMark::inductor_silu) >
                     0;
  // Of a gated layer 4 are both merged, 7 neither; without a gate 4 are merged and 6 are not.
  const bool qkv_merged = whole == kFewestProducts || (gated && whole == 5);
  if (!gated && whole != kFewestProducts && whole != 6) return none("no gated MLP, and " + from);
  out.found(kQkv, std::string(qkv_merged ? kTrue : kFalse), products, from);
  if (!gated) return out.not_told(kGateUp, "no gated MLP");
  const bool gate_merged = whole == kFewestProducts || whole == 6;
  out.found(kGateUp, std::string(gate_merged ? kTrue : kFalse), products, from);
}

}  // namespace lockstep
