#include "models/spec/hardware.hpp"

#include <doctest/doctest.h>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

TEST_CASE("GpuSpec::peak: each format has its own, mxfp8 that of fp8, tf32 half of bf16's") {
  GpuSpec gpu;
  gpu.peak_fp16 = teraflops_per_second(1);
  gpu.peak_bf16 = teraflops_per_second(2);
  gpu.peak_fp8 = teraflops_per_second(3);
  gpu.peak_fp4 = teraflops_per_second(4);
  CHECK(gpu.peak(Precision::fp16) == teraflops_per_second(1));
  CHECK(gpu.peak(Precision::bf16) == teraflops_per_second(2));
  CHECK(gpu.peak(Precision::fp8) == teraflops_per_second(3));
  CHECK(gpu.peak(Precision::mxfp8) == teraflops_per_second(3));
  CHECK(gpu.peak(Precision::nvfp4) == teraflops_per_second(4));
  CHECK(gpu.peak(Precision::tf32) == teraflops_per_second(1));
}

TEST_CASE("follow_nvlink: what long messages reach goes with the links, start-up times stay") {
  GpuSpec gpu;
  gpu.nvlink_bandwidth = gigabytes_per_second(400);
  gpu.collectives.all_reduce = gpu.collectives.all_gather = gpu.collectives.reduce_scatter =
      gpu.collectives.all_to_all = gpu.collectives.send_receive = {
          {"simple_ring", microseconds(20), microseconds(1), gigabytes_per_second(300), 2}};
  gpu.nvlink_bandwidth = gigabytes_per_second(100);
  follow_nvlink(gpu, gigabytes_per_second(400));
  for (const auto& regimes :
       {gpu.collectives.all_reduce, gpu.collectives.all_gather, gpu.collectives.reduce_scatter,
        gpu.collectives.all_to_all, gpu.collectives.send_receive}) {
    CHECK(regimes.at(0).bus_bandwidth == gigabytes_per_second(75));
    CHECK(regimes.at(0).base == microseconds(20));
    CHECK(regimes.at(0).per_step == microseconds(1));
  }
  CHECK(gpu.nvlink_scale == 0.25);
  gpu.nvlink_bandwidth = gigabytes_per_second(200);
  follow_nvlink(gpu, gigabytes_per_second(100));
  CHECK(gpu.collectives.all_gather.at(0).bus_bandwidth == gigabytes_per_second(150));
  CHECK(gpu.nvlink_scale == 0.5);
}

TEST_CASE("follow_nvlink: nothing follows links that are not there, or were not") {
  GpuSpec gpu;
  gpu.collectives.all_reduce = {
      {"simple_ring", Seconds{}, Seconds{}, gigabytes_per_second(300), 2}};
  follow_nvlink(gpu, gigabytes_per_second(400));
  gpu.nvlink_bandwidth = gigabytes_per_second(400);
  follow_nvlink(gpu, BytesPerSecond{});
  CHECK(gpu.collectives.all_reduce.at(0).bus_bandwidth == gigabytes_per_second(300));
  CHECK(gpu.nvlink_scale == 1);
}

TEST_CASE("GPU presets: a format that the hardware lacks has no peak") {
  const PresetStore presets;
  CHECK(presets.gpu("v100_sxm2_32gb").peak(Precision::bf16) == FlopsPerSecond{});
  CHECK(presets.gpu("v100_sxm2_32gb").peak(Precision::tf32) == FlopsPerSecond{});
  CHECK(presets.gpu("mi250x").peak(Precision::tf32) == FlopsPerSecond{});
  CHECK(presets.gpu("a100_sxm4_80gb").peak(Precision::tf32) == teraflops_per_second(156));
  CHECK(presets.gpu("a100_sxm4_80gb").peak(Precision::fp8) == FlopsPerSecond{});
  CHECK(presets.gpu("h100_sxm5_80gb").peak(Precision::nvfp4) == FlopsPerSecond{});
  CHECK(presets.gpu("b200_sxm_180gb").peak(Precision::nvfp4) == teraflops_per_second(9000));
}

TEST_CASE(
    "GPU presets: no kernel reaches more than the data sheet, and a lasting load gains nothing") {
  const PresetStore presets;
  for (const std::string& name : presets.names("gpus")) {
    CAPTURE(name);
    const GpuSpec& gpu = presets.gpu(name);
    CHECK(gpu.gemm.bandwidth <= gpu.hbm_bandwidth);
    CHECK(gpu.gemm.efficiency <= 1);
    CHECK(gpu.gemm.efficiency * gpu.gemm.fp8_efficiency <= 1);
    CHECK(gpu.gemm.sustained <= 1);
    CHECK(gpu.power_idle < gpu.power_limit);
    // The fewest of any card that trains: H20 has 78.
    CHECK(gpu.sm_count >= 78);
  }
}

}  // namespace lockstep
