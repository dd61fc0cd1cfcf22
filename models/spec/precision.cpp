#include "models/spec/precision.hpp"

#include <array>
#include <cstddef>

namespace lockstep {
namespace {

constexpr std::array kPrecisions{
    PrecisionInfo{"fp16", Precision::fp16, 2.0, "IEEE half precision, loss scaling"},
    PrecisionInfo{"bf16", Precision::bf16, 2.0, "bfloat16"},
    PrecisionInfo{"fp8", Precision::fp8, 1.0, "FP8 E4M3/E5M2 with a scale per tensor"},
    PrecisionInfo{"mxfp8", Precision::mxfp8, 1.0 + 1.0 / 32,
                  "OCP MXFP8: FP8 with a scale per 32 elements"},
    PrecisionInfo{"nvfp4", Precision::nvfp4, 0.5 + 1.0 / 16,
                  "FP4 E2M1 with an FP8 scale per 16 elements"},
    PrecisionInfo{"tf32", Precision::tf32, 4.0,
                  "32-bit tensors, of which products take 10 bits of the fraction"},
};

}  // namespace

std::span<const PrecisionInfo> precisions() { return kPrecisions; }
const PrecisionInfo& info(Precision precision) {
  return kPrecisions[static_cast<std::size_t>(precision)];
}

}  // namespace lockstep
