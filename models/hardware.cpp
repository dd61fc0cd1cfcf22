#include "models/hardware.hpp"

#include <cassert>

namespace lockstep {

FlopsPerSecond GpuSpec::peak(Precision precision) const {
  switch (precision) {
    case Precision::fp16:
      return peak_fp16;
    case Precision::bf16:
      return peak_bf16;
    case Precision::fp8:
    case Precision::mxfp8:
      return peak_fp8;
    case Precision::nvfp4:
      return peak_fp4;
  }
  assert(false && "every format is listed above");
  return {};
}

}  // namespace lockstep
