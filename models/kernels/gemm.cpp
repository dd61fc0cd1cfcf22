#include "models/kernels/gemm.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

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

/// Bytes of a result element: accumulators leave as 16-bit numbers for every format.
constexpr double kResultBytes = 2;

double tile_efficiency(const Tile& tile, const GemmConstants& constants) {
  if (std::min(tile.m, tile.n) <= 64) return constants.efficiency_x64;
  return tile.m * tile.n <= 128 * 128 ? constants.efficiency_128x128 : 1.0;
}

double format_efficiency(Precision precision, const GemmConstants& constants) {
  if (precision == Precision::nvfp4) return constants.fp4_efficiency;
  return is_quantised(precision) ? constants.fp8_efficiency : 1.0;
}

/// Arithmetic and split-K time of the fastest tile and split, seconds.
double fastest_tiling(const GemmShape& shape, double rate, const GpuSpec& gpu) {
  const double sms = gpu.sm_count;
  double fastest = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(shape.m / tile.m) * std::ceil(shape.n / tile.n) * shape.count;
    const double sm_rate = rate / sms * tile_efficiency(tile, gpu.gemm);
    for (const double q : kSplits) {
      const double waves = std::ceil(tiles * q / sms);
      const double tile_work = 2 * tile.m * tile.n * (shape.k / q + gpu.gemm.k_ramp);
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
  const double operands = shape.m * shape.k + shape.k * shape.n;
  const double result = shape.m * shape.n;
  return Bytes{shape.count * (operands * info(precision).bytes_per_element + result * kResultBytes)};
}

FlopsPerSecond gemm_rate(Precision precision, const GpuSpec& gpu, Load load) {
  const double clock = load == Load::sustained ? gpu.gemm.sustained : 1.0;
  return gpu.peak(precision) * (gpu.gemm.efficiency * format_efficiency(precision, gpu.gemm) * clock);
}

Seconds gemm_time(const GemmShape& shape, Precision precision, const GpuSpec& gpu, Load load) {
  assert(shape.m >= 1 && shape.n >= 1 && shape.k >= 1 && shape.count >= 1);
  assert(gpu.peak(precision) > FlopsPerSecond{} && "the GPU lacks this format");
  const double compute =
      fastest_tiling(shape, gemm_rate(precision, gpu, load).base_units(), gpu);
  const double memory = Seconds{gemm_traffic(shape, precision) / gpu.gemm.bandwidth}.base_units();
  const double body = std::sqrt(std::sqrt(std::pow(compute, 4) + std::pow(memory, 4)));
  return gpu.gemm.launch + Seconds{body};
}

}  // namespace lockstep
