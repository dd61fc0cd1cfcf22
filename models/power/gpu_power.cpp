#include "models/power/gpu_power.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/kernels/gemm.hpp"

namespace lockstep {
namespace {

/// HBM traffic of a large product, of what HBM can deliver: operands come from L2. The products of
/// a training step read and write 0.1 to 0.3 TB/s on H200 (ai-dynamo/aiconfigurator 095f58a51c4c,
/// gemm_perf, m, n, k >= 4096).
constexpr double kProductTraffic = 0.05;

Watts streaming_power(const GpuSpec& gpu) {
  return gpu.power->active + gpu.power->hbm * (gpu.memory.efficiency * gpu.hbm_bandwidth);
}

}  // namespace

ByGpuPart<Watts> clipped(ByGpuPart<Watts> demand, Watts limit) {
  const Watts fixed = demand[0];
  const Watts above = sum(demand) - fixed;
  if (fixed + above <= limit || above <= Watts{}) return demand;
  const double share = std::max(Watts{}, limit - fixed) / above;
  for (std::size_t i = 1; i < kGpuParts; ++i) demand[i] *= share;
  return demand;
}

EngineWork& EngineWork::operator+=(const EngineWork& o) {
  flops_16 += o.flops_16;
  flops_8 += o.flops_8;
  flops_4 += o.flops_4;
  hbm += o.hbm;
  link += o.link;
  return *this;
}
EngineWork operator*(double k, const EngineWork& work) {
  return {k * work.flops_16, k * work.flops_8, k * work.flops_4, k * work.hbm, k * work.link};
}

ByGpuPart<Joules> gpu_energy(const EngineWork& work, Seconds time, const GpuSpec& gpu) {
  assert(gpu.power);
  const GpuPowerConstants& c = *gpu.power;
  return {c.active * time,
          c.tensor_16 * work.flops_16 + c.tensor_8 * work.flops_8 + c.tensor_4 * work.flops_4,
          c.hbm * work.hbm, c.link * work.link, Joules{}};
}

Watts product_power(const GpuSpec& gpu) {
  const GpuPowerConstants& c = *gpu.power;
  const Watts power = c.active + c.tensor_16 * gemm_rate(Precision::fp16, gpu, Load::sustained) +
                      c.hbm * (kProductTraffic * gpu.hbm_bandwidth);
  return std::min(power, gpu.power_limit);
}

Watts lowest_cap(const GpuSpec& gpu) {
  const GpuPowerConstants& c = *gpu.power;
  return c.active + std::pow(c.lowest_clock, c.clock_exponent) * (product_power(gpu) - c.active);
}

double capped_clock(const GpuSpec& gpu, Watts cap) {
  const GpuPowerConstants& c = *gpu.power;
  assert(cap >= lowest_cap(gpu));
  const double share = (cap - c.active) / (product_power(gpu) - c.active);
  return std::min(1.0, std::pow(share, 1 / c.clock_exponent));
}

GpuSpec capped(GpuSpec gpu, Watts cap) {
  assert(cap <= gpu.power_limit);
  const double clock = capped_clock(gpu, cap);
  GpuPowerConstants& c = *gpu.power;
  if (streaming_power(gpu) > cap) {
    const double share = (cap - c.active) / (streaming_power(gpu) - c.active);
    gpu.hbm_bandwidth *= share;
    gpu.capped_streaming *= share;
  }
  // What the power above `active` can move, however much HBM could deliver.
  if (c.hbm > JoulesPerByte{}) {
    gpu.gemm.bandwidth = std::min(gpu.gemm.bandwidth, BytesPerSecond{(cap - c.active) / c.hbm});
  }
  gpu.gemm.sustained *= clock;
  gpu.capped_clock *= clock;
  const double volts = std::pow(clock, c.clock_exponent - 1);
  for (JoulesPerFlop* e : {&c.tensor_16, &c.tensor_8, &c.tensor_4}) *e *= volts;
  gpu.power_limit = cap;
  return gpu;
}

}  // namespace lockstep
