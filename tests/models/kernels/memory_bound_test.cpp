#include "models/kernels/memory_bound.hpp"

#include <doctest/doctest.h>

#include "tests/models/kernels/simple_gpu.hpp"
#include "tests/support/near.hpp"

namespace lockstep {

TEST_CASE("memory_bound_time: large tensors take bytes over the achieved bandwidth") {
  GpuSpec gpu = simple_gpu();
  gpu.memory.launch = microseconds(2);
  gpu.memory.efficiency = 0.8;
  CHECK(memory_bound_time(Bytes{8e9}, gpu).base_units() == test::near(0.01).epsilon(1e-3));
}

TEST_CASE("memory_bound_time: small tensors take a launch, no tensor takes nothing") {
  GpuSpec gpu = simple_gpu();
  gpu.memory.launch = microseconds(2);
  CHECK(memory_bound_time(Bytes{1}, gpu).base_units() == test::near(2e-6).epsilon(1e-3));
  CHECK(memory_bound_time(Bytes{}, gpu) == Seconds{});
}

TEST_CASE(
    "memory_bound_time: half of the bandwidth is reached where moving lasts as long as launching") {
  GpuSpec gpu = simple_gpu();
  gpu.memory.launch = microseconds(2);
  const Bytes traffic = microseconds(2) * gpu.hbm_bandwidth;
  CHECK(traffic / memory_bound_time(traffic, gpu) / gpu.hbm_bandwidth == test::near(0.5));
}

}  // namespace lockstep
