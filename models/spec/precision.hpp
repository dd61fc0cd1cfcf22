/// Number formats of matrix products, and what an element of each weighs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

/// The format in which the large matrix products run. Everything else (attention, norms, the final
/// projection, residuals) stays in 16 bit for fp8 and below, as mixed-precision recipes do.
/// TF32 is for products of 32-bit tensors: kernels are timed and modelled in it, no job trains in
/// it.
enum class Precision : std::uint8_t { fp16, bf16, fp8, mxfp8, nvfp4, tf32 };

struct PrecisionInfo {
  std::string_view name;  ///< as scenarios say it
  Precision precision;
  double bytes_per_element;  ///< of a matrix-product operand, scale factors included
  std::string_view about;
};
/// Every format, in the order of the enumeration.
std::span<const PrecisionInfo> precisions();
const PrecisionInfo& info(Precision precision);
/// Those that a job can train in: all before TF32.
inline std::span<const PrecisionInfo> training_precisions() {
  return precisions().first(static_cast<std::size_t>(Precision::tf32));
}

/// True for the formats that quantise 16-bit tensors before each product.
constexpr bool is_quantised(Precision p) {
  return p == Precision::fp8 || p == Precision::mxfp8 || p == Precision::nvfp4;
}

}  // namespace lockstep
