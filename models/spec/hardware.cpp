#include "models/spec/hardware.hpp"

#include <cassert>
#include <vector>

namespace lockstep {
namespace {

/// Operands twice as wide at the same bytes a clock: 156 of 312 TFLOP/s on A100, 494.7 of 989.4 on
/// H100, 1,250 of 2,500 on GB200, 653.7 of 1,307.4 on MI300X, by their makers' data sheets.
constexpr double kTf32Rate = 0.5;

/// NVIDIA's tensor cores had it from the first with bf16; of AMD's, CDNA 2 lacked it.
bool has_tf32(const GpuSpec& gpu) { return gpu.architecture != "cdna2"; }

}  // namespace

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
    case Precision::tf32:
      return has_tf32(*this) ? kTf32Rate * peak_bf16 : FlopsPerSecond{};
  }
  assert(false && "every format is listed above");
  return {};
}

void scale_bandwidth(IntraNodeCollectives& collectives, double ratio) {
  assert(ratio > 0);
  for (std::vector<CollectiveRegime>* regimes :
       {&collectives.all_reduce, &collectives.all_gather, &collectives.reduce_scatter,
        &collectives.all_to_all, &collectives.send_receive}) {
    for (CollectiveRegime& regime : *regimes) regime.bus_bandwidth = ratio * regime.bus_bandwidth;
  }
}

void follow_nvlink(GpuSpec& gpu, BytesPerSecond before) {
  const BytesPerSecond now = gpu.nvlink_bandwidth;
  if (now == before || now <= BytesPerSecond{} || before <= BytesPerSecond{}) return;
  const double ratio = now / before;
  scale_bandwidth(gpu.collectives, ratio);
  gpu.nvlink_scale *= ratio;
}

}  // namespace lockstep
