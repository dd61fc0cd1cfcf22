#include "models/kernels/gemm.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "models/kernels/kernel_profile.hpp"

namespace lockstep {
namespace {

struct Tile {
  double m;
  double n;
};
/// Output tiles of the library's menu (CUTLASS's profiler lists the same for 16-bit tensor cores).
constexpr std::array kTiles{Tile{256, 128}, Tile{128, 256}, Tile{128, 128},
                            Tile{128, 64},  Tile{64, 128},  Tile{64, 64}};
constexpr std::array kSplits{1.0, 2.0, 4.0, 8.0};

/// Bytes of a result element: 16-bit numbers leave for every format but TF32.
constexpr double kResultBytes = 2, kWideResultBytes = 4;

/// Rows that do not start at multiples of 16 bytes cannot be loaded whole: 272.7 TFLOP/s of a
/// SwiGLU MLP with 10,922 columns against 398.4 with 10,944, H100. Source: Bekman, "ML
/// Engineering", https://github.com/stas00/ml-engineering, training/performance.
constexpr double kAlignedBytes = 16;
constexpr double kMisalignedEfficiency = 272.73 / 398.38;

double alignment_efficiency(const GemmShape& shape, Precision precision) {
  // Eight-bit products are asked for with sides that suit them, or padded: 16 bit decides.
  const double elements = kAlignedBytes / std::max(2.0, info(precision).bytes_per_element);
  const bool aligned = std::fmod(shape.n, elements) == 0 && std::fmod(shape.k, elements) == 0;
  return aligned ? 1.0 : kMisalignedEfficiency;
}

double tile_efficiency(const Tile& tile, const GemmConstants& constants) {
  if (std::min(tile.m, tile.n) <= 64) return constants.efficiency_x64;
  return tile.m * tile.n <= 128 * 128 ? constants.efficiency_128x128 : 1.0;
}

double format_efficiency(Precision precision, const GemmConstants& constants) {
  if (precision == Precision::nvfp4) return constants.fp4_efficiency;
  return is_quantised(precision) ? constants.fp8_efficiency : 1.0;
}

/// Arithmetic and split-K time of the fastest tile and split, seconds. `rate` is that of the whole
/// GPU, `ramp` the elements of k that prologue and epilogue cost.
double fastest_tiling(const GemmShape& shape, double rate, double ramp, const GpuSpec& gpu) {
  const double sms = gpu.sm_count;
  double fastest = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(shape.m / tile.m) * std::ceil(shape.n / tile.n) * shape.count;
    const double sm_rate = rate / sms * tile_efficiency(tile, gpu.gemm);
    for (const double q : kSplits) {
      const double waves = std::ceil(tiles * q / sms);
      const double tile_work = 2 * tile.m * tile.n * (shape.k / q + ramp);
      const double reduction = q > 1 ? gpu.gemm.split_k.base_units() * std::sqrt(q) : 0;
      fastest = std::min(fastest, waves * tile_work / sm_rate + reduction);
    }
  }
  return fastest;
}

}  // namespace

Flops gemm_flops(const GemmShape& shape) {
  return Flops{2 * shape.m * shape.n * shape.k * shape.count};
}

Bytes gemm_traffic(const GemmShape& shape, Precision precision) {
  const double operands = shape.m * shape.k / shape.repeats + shape.k * shape.n;
  const double result = shape.m * shape.n;
  return Bytes{shape.count *
               (operands * info(precision).bytes_per_element +
                result * (precision == Precision::tf32 ? kWideResultBytes : kResultBytes))};
}

FlopsPerSecond gemm_rate(Precision precision, const GpuSpec& gpu, Load load) {
  double clock = 1;
  if (load == Load::sustained) {
    clock = gpu.gemm.sustained * (is_quantised(precision) ? gpu.gemm.quantised_sustained : 1.0);
  }
  return gpu.peak(precision) *
         (gpu.gemm.efficiency * format_efficiency(precision, gpu.gemm) * clock);
}

Seconds gemm_time(const GemmShape& shape, Precision precision, const GpuSpec& gpu, Load load) {
  assert(shape.m >= 1 && shape.n >= 1 && shape.k >= 1 && shape.count >= 1);
  assert(gpu.peak(precision) > FlopsPerSecond{} && "the GPU lacks this format");
  const double rate =
      gemm_rate(precision, gpu, load).base_units() * alignment_efficiency(shape, precision);
  const double ramp = gpu.gemm.k_ramp * (gpu.peak(precision) / gpu.peak_fp16);
  const double compute = fastest_tiling(shape, rate, ramp, gpu);
  const double memory = Seconds{gemm_traffic(shape, precision) / gpu.gemm.bandwidth}.base_units();
  const double body = std::sqrt(std::sqrt(std::pow(compute, 4) + std::pow(memory, 4)));
  const double measured = gpu.profile ? gpu.profile->gemm(shape, precision, load) : 1;
  return measured * (gpu.gemm.launch + Seconds{body});
}

}  // namespace lockstep
