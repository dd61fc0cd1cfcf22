#include "models/kernels/memory_bound.hpp"

#include <cassert>
#include <cmath>

namespace lockstep {

Seconds memory_bound_time(Bytes traffic, const GpuSpec& gpu) {
  assert(traffic >= Bytes{});
  if (traffic == Bytes{}) return Seconds{};
  const Seconds moving = traffic / (gpu.hbm_bandwidth * gpu.memory.efficiency);
  return Seconds{std::sqrt(std::sqrt(std::pow(gpu.memory.launch.base_units(), 4) +
                                     std::pow(moving.base_units(), 4)))};
}

}  // namespace lockstep
