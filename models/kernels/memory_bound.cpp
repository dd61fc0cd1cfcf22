#include "models/kernels/memory_bound.hpp"

#include <cassert>

namespace lockstep {

Seconds memory_bound_time(Bytes traffic, const GpuSpec& gpu) {
  assert(traffic >= Bytes{});
  if (traffic == Bytes{}) return {};
  return gpu.memory.launch + traffic / (gpu.hbm_bandwidth * gpu.memory.efficiency);
}

}  // namespace lockstep
