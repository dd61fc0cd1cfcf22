#include "models/kernels/memory_bound.hpp"

#include <cassert>

#include "models/kernels/kernel_profile.hpp"

namespace lockstep {

Seconds memory_bound_time(Bytes traffic, const GpuSpec& gpu) {
  assert(traffic >= Bytes{});
  if (traffic == Bytes{}) return {};
  const double measured = gpu.profile ? gpu.profile->memory(traffic) : 1;
  return measured * (gpu.memory.launch + traffic / (gpu.hbm_bandwidth * gpu.memory.efficiency));
}

}  // namespace lockstep
