#include "sim/measured/nsys_range.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "models/base/letter_case.hpp"
#include "sim/measured/kineto_points.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostTensors = 1000, kMostDimensions = 100;

/// Takes text from the front.
class RangeText {
 public:
  explicit RangeText(std::string_view text) : text_(text) {}

  bool skip(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<double> number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  /// "[[4096, 1024], [], [2]]". Nothing for another text.
  std::optional<std::vector<std::vector<double>>> sizes() {
    std::vector<std::vector<double>> out;
    if (!skip("[")) return std::nullopt;
    if (skip("]")) return out;
    do {
      auto tensor = dimensions();
      if (!tensor || out.size() == kMostTensors) return std::nullopt;
      out.push_back(std::move(*tensor));
    } while (skip(", ") || skip(","));
    return skip("]") ? std::optional(out) : std::nullopt;
  }
  /// Up to where brackets are closed again, those included.
  void skip_brackets() {
    int open = 0;
    std::size_t i = 0;
    for (; i < text_.size(); ++i) {
      open += text_[i] == '[' ? 1 : text_[i] == ']' ? -1 : 0;
      if (open == 0) break;
    }
    text_.remove_prefix(std::min(i + 1, text_.size()));
  }
  std::string_view take_until(std::string_view any_of) {
    const std::string_view taken = text_.substr(0, text_.find_first_of(any_of));
    text_.remove_prefix(taken.size());
    return taken;
  }
  [[nodiscard]] std::string_view rest() const { return text_; }

 private:
  std::optional<std::vector<double>> dimensions() {
    std::vector<double> out;
    if (!skip("[")) return std::nullopt;
    if (skip("]")) return out;
    do {
      const auto size = number();
      if (!size || out.size() == kMostDimensions) return std::nullopt;
      out.push_back(*size);
    } while (skip(", ") || skip(","));
    return skip("]") ? std::optional(out) : std::nullopt;
  }

  std::string_view text_;
};

/// Where an operator's name begins: at the start, or behind the name of a domain and its colon.
std::size_t operator_at(std::string_view text) {
  for (const std::string_view library : {"aten::", "flash_attn::"}) {
    const std::size_t at = text.find(library);
    if (at == 0) return at;
    if (at == std::string_view::npos || text[at - 1] != ':') continue;
    // "ns::aten::" is of something else.
    if (at == 1 || text[at - 2] != ':') return at;
  }
  return std::string_view::npos;
}

struct TypeWord {
  std::string_view word;  ///< in lower case
  std::string_view type;
};
// Source: names of cuBLAS 11 to 13, CUTLASS 2 to 4 and cuDNN 8 to 9 in published traces. nvjet's
// letters are the types of the operands, of the sum and of the result: t bfloat16, h half, q 8 bit,
// s single. The first that fits decides.
constexpr std::array kTypeWords{
    TypeWord{"e4m3", "c10::Float8_e4m3fn"},
    TypeWord{"e5m2", "c10::Float8_e5m2"},
    TypeWord{"fp8", "c10::Float8_e4m3fn"},
    TypeWord{"_qqt", "c10::Float8_e4m3fn"},
    TypeWord{"_qqh", "c10::Float8_e4m3fn"},
    TypeWord{"_qqs", "c10::Float8_e4m3fn"},
    TypeWord{"tf32", kTf32Type},
    TypeWord{"sgemm", "float"},
    TypeWord{"bf16", "c10::BFloat16"},
    TypeWord{"bfloat16", "c10::BFloat16"},
    TypeWord{"_tst_", "c10::BFloat16"},
    TypeWord{"_tss_", "c10::BFloat16"},
    TypeWord{"_hsh_", "c10::Half"},
    TypeWord{"_hss_", "c10::Half"},
    TypeWord{"fp16", "c10::Half"},
    TypeWord{"f16", "c10::Half"},
    TypeWord{"h16816gemm", "c10::Half"},
    TypeWord{"h1688gemm", "c10::Half"},
    TypeWord{"h884gemm", "c10::Half"},
    TypeWord{"hgemm", "c10::Half"},
    TypeWord{"half", "c10::Half"},
    TypeWord{"s1688gemm", kTf32Type},
};

/// Kernels whose second template argument says dropout, and the third the mask. Source:
/// flash-attention 2, csrc/flash_attn/src/flash_fwd_launch_template.h and flash_bwd_....
constexpr std::array<std::string_view, 2> kMaskedKernels{
    "flash_fwd_kernel<", "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<"};

/// The template arguments that `text` begins with, up to the first three.
std::vector<std::string_view> template_arguments(std::string_view text) {
  std::vector<std::string_view> out;
  int open = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size() && out.size() < 3; ++i) {
    const char c = text[i];
    const bool ends = open == 0 && (c == ',' || c == '>');
    if (ends) {
      out.push_back(text.substr(start, i - start));
      start = i + 1;
    }
    if (ends && c == '>') break;
    open += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
  }
  return out;
}

}  // namespace

std::optional<NsysRange> parse_nsys_range(std::string_view text) {
  const std::size_t at = operator_at(text);
  if (at == std::string_view::npos) return std::nullopt;
  RangeText from(text.substr(at));
  NsysRange out;
  out.op.name = std::string(from.take_until(",/\n "));
  // ", seq = 7", ", op_id = 12", ", sizes = [[...]]", ", input_op_ids = [...]" in this order.
  for (const std::string_view count : {", seq = ", ", op_id = "}) {
    if (from.skip(count) && !from.number()) return out;
  }
  if (from.skip(", sizes = ")) {
    auto sizes = from.sizes();
    if (!sizes) return out;
    out.op.dims = std::move(*sizes);
  }
  if (from.skip(", input_op_ids = ")) from.skip_brackets();
  if (from.skip("/")) out.kernel = std::string(from.rest());
  return out;
}

std::string operand_type_of(std::string_view kernel) {
  const std::string text = lowered(kernel);
  for (const TypeWord& row : kTypeWords) {
    if (text.find(row.word) != std::string::npos) return std::string(row.type);
  }
  return {};
}

std::optional<bool> causal_of(std::string_view kernel) {
  for (const std::string_view name : kMaskedKernels) {
    const std::size_t at = kernel.find(name);
    if (at == std::string_view::npos) continue;
    const auto arguments = template_arguments(kernel.substr(at + name.size()));
    if (arguments.size() < 3) return std::nullopt;
    const std::string_view mask = arguments[2];
    if (mask.ends_with("1") || mask.ends_with("true")) return true;
    if (mask.ends_with("0") || mask.ends_with("false")) return false;
  }
  return std::nullopt;
}

}  // namespace lockstep
