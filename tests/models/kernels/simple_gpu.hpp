/// A GPU with round numbers, so that times can be worked out by hand.
#pragma once

#include "models/spec/hardware.hpp"

namespace lockstep {

/// 100 SMs of 1 TFLOP/s in 16 bit, twice that in 8 bit, four times in 4 bit; 1 TB/s; no losses, no
/// launches, no ramps.
inline GpuSpec simple_gpu() {
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.peak_fp16 = gpu.peak_bf16 = teraflops_per_second(100);
  gpu.peak_fp8 = teraflops_per_second(200);
  gpu.peak_fp4 = teraflops_per_second(400);
  gpu.hbm_bandwidth = gigabytes_per_second(1000);
  gpu.gemm.efficiency = gpu.gemm.efficiency_128x128 = gpu.gemm.efficiency_x64 = 1;
  gpu.gemm.fp8_efficiency = gpu.gemm.fp4_efficiency = 1;
  gpu.gemm.k_ramp = 0;
  gpu.gemm.bandwidth = gpu.hbm_bandwidth;
  gpu.memory.efficiency = 1;
  return gpu;
}

}  // namespace lockstep
