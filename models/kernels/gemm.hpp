/// The time of a matrix product on one GPU: tiles, waves, split-K, memory traffic.
#pragma once

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/load.hpp"
#include "models/spec/precision.hpp"

namespace lockstep {

/// C[m x n] = A[m x k] B[k x n], `count` independent ones in one batched launch. All at least 1.
/// Of a convolution as an implicit GEMM, each element of A stands in it `repeats` times and in
/// memory once.
struct GemmShape {
  double m;
  double n;
  double k;
  double count = 1;
  double repeats = 1;
};

/// FLOPs of the product, a multiply-add counted as 2.
Flops gemm_flops(const GemmShape& shape);

/// HBM traffic: operands read once in their format, the result written once in 16 bit (TF32: 32).
Bytes gemm_traffic(const GemmShape& shape, Precision precision);

/// Time of the product, one launch inside a CUDA graph, without quantising its operands.
///
///     T = t0 + (C^4 + M^4)^(1/4),   M = traffic / bandwidth
///     C = min over tiles (tm, tn) and splits q of
///         ceil(tiles q / SMs) 2 tm tn (k / q + K0) / (eta e_tile a peak / SMs) + c sqrt(q) [q > 1]
///
/// The output is cut into tiles, the tiles run in waves over the SMs, and prologue and epilogue of
/// a tile take as long as K0 elements of k do in 16 bit; the library picks the fastest tile and
/// split, so the minimum. a = 0.69 where n or k is no multiple of 8 (TF32: 4), else 1. Tile and
/// wave quantisation: NVIDIA, "Matrix Multiplication Background User's Guide" (DU-09799-001),
/// sections 4.1 and 4.2. The constants are fitted to measured products; each GPU preset says to
/// which. Under a sustained load the arithmetic alone slows by the clock factors. Leaves out:
/// operands that stay in L2, and that random data draw more power than constant ones. Times the
/// ratio that gpu.profile has for it, if there is one. Requires a GPU that has the format.
Seconds gemm_time(const GemmShape& shape, Precision precision, const GpuSpec& gpu,
                  Load load = Load::burst);

/// Arithmetic rate of a very large product: what eta, the format and the clock leave of the peak.
FlopsPerSecond gemm_rate(Precision precision, const GpuSpec& gpu, Load load = Load::burst);

}  // namespace lockstep
