#include "tools/calibrate/card.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include "sim/measured/kernel_catalogue.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/calibrate/memory_kernels.hpp"

using namespace lockstep;

TEST_CASE("obstacle_of: programs on the card, a full card, a small one, an idle one") {
  const Occupancy idle{
      .utilisation = 0, .used = gibibytes(0.6), .total = gibibytes(80), .programs = 0};
  CHECK(obstacle_of(idle).empty());
  Occupancy other = idle;
  other.programs = 1;
  CHECK(obstacle_of(other) ==
        "another program is on it, with 0.6 GiB of its memory; nothing else may run on it");
  other.programs = 3;
  CHECK(obstacle_of(other) ==
        "3 other programs are on it, with 0.6 GiB of its memory; nothing else may run on it");
  other = idle;
  other.programs.reset();
  CHECK(obstacle_of(other).empty());
  other.used = gibibytes(12.25);
  CHECK(obstacle_of(other) ==
        "another program holds 12.2 GiB of its memory; nothing else may run on it");
  other = idle;
  other.total = gibibytes(4);
  CHECK(obstacle_of(other) == "it has 4.0 GiB of memory; 6 GiB are needed");
}

TEST_CASE("disturbance_of: a card that is busy with nobody on it is timed, with a warning") {
  Occupancy watched{
      .utilisation = 0.04, .used = gibibytes(0.6), .total = gibibytes(80), .programs = 0};
  CHECK(disturbance_of(watched).empty());
  watched.utilisation = 0.97;
  CHECK(obstacle_of(watched).empty());
  CHECK(disturbance_of(watched) ==
        "it was 97.0 % busy before the first kernel, by a monitor or a program of another "
        "container");
}

TEST_CASE("describe: a line for people") {
  CHECK(describe(ProductTask{.shape = {4096, 8192, 1024},
                             .role = ProductRole::weight_gradient,
                             .precision = Precision::fp8,
                             .load = Load::sustained}) ==
        "gemm fp8 weight gradient 4096 x 8192 x 1024, sustained");
  CHECK(describe(ProductTask{.shape = {512, 4096, 2048, 16}}) ==
        "gemm bf16 forward 16 of 512 x 4096 x 2048");
  CHECK(describe(AttentionTask{{2, 4096, 32, 8, 128, true, 0, Direction::backward}}) ==
        "attention backward causal 2 x 4096 tokens, 32/8 heads of 128");
  CHECK(describe(MemoryTask{MemoryKernelKind::adam, 1 << 20}) == "memory adam 29.36 MB");
  CHECK(describe(CopyTask{.to_device = false, .size = Bytes{4096}}) ==
        "copy device to host 4,096 bytes");
  CHECK(describe(LaunchTask{.graph = true, .busy = false}) ==
        "launch of empty kernels in a CUDA graph");
  CHECK(describe(LaunchTask{.graph = false, .busy = true}) ==
        "gap between busy kernels one by one");
}

TEST_CASE("names that CUDA gives to cards lead to presets that there are") {
  const PresetStore presets;
  const GpuNames names(presets);
  for (const char* name :
       {"NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA GH200 480GB",
        "NVIDIA B200", "NVIDIA GB200", "NVIDIA A100-SXM4-80GB"}) {
    CAPTURE(name);
    CHECK(presets.has("gpus", names.preset_of(name)));
  }
}

TEST_CASE("memory kernels: traffic by hand") {
  const auto traffic = [](MemoryKernelKind kernel) { return info(kernel).traffic(1e6); };
  CHECK(traffic(MemoryKernelKind::copy) == 4e6);
  CHECK(traffic(MemoryKernelKind::rms_norm) == 4e6);
  CHECK(traffic(MemoryKernelKind::silu_gate) == 6e6);
  CHECK(traffic(MemoryKernelKind::softmax) == 4e6);
  // Gradient and copy 2 each; parameter and both moments read and written, 4 each.
  CHECK(traffic(MemoryKernelKind::adam) == 28e6);
}

TEST_CASE("reference_row: small rows by hand") {
  const auto row = [](MemoryKernelKind kernel, const std::vector<float>& first,
                      const std::vector<float>& second) {
    return reference_row(kernel, first, second);
  };
  CHECK(row(MemoryKernelKind::copy, {1, -2}, {}) == std::vector<double>{1, -2});
  // Mean square of 3 and 4: 12.5.
  const auto norm = row(MemoryKernelKind::rms_norm, {3, 4}, {1, 2});
  CHECK(norm[0] == doctest::Approx(3 / std::sqrt(12.5)));
  CHECK(norm[1] == doctest::Approx(8 / std::sqrt(12.5)));
  const auto gate = row(MemoryKernelKind::silu_gate, {0, 2}, {5, 3});
  CHECK(gate[0] == 0);
  CHECK(gate[1] == doctest::Approx(6 / (1 + std::exp(-2.0))));
  const auto share = row(MemoryKernelKind::softmax, {1000, 1000, 1000 - std::log(2.0F)}, {});
  CHECK(share[0] == doctest::Approx(0.4));
  CHECK(share[2] == doctest::Approx(0.2));
  // The first step of Adam is the rate against the gradient's sign, whatever its size.
  const auto step = row(MemoryKernelKind::adam, {0.5F, -3}, {});
  CHECK(step[0] == doctest::Approx(-1e-3).epsilon(1e-6));
  CHECK(step[1] == doctest::Approx(1e-3).epsilon(1e-6));
}

TEST_CASE("from_bf16 and agrees: rounding passes, a wrong number and a NaN do not") {
  CHECK(from_bf16(0x3F80) == 1.0F);
  CHECK(from_bf16(0xC040) == -3.0F);
  CHECK(agrees(1.0 + 1.0 / 512, 1.0, 0));
  CHECK_FALSE(agrees(1.01, 1.0, 0));
  CHECK(agrees(0.4, 0.0, 0.5));
  CHECK_FALSE(agrees(0.6, 0.0, 0.5));
  CHECK_FALSE(agrees(std::numeric_limits<double>::quiet_NaN(), 0.0, 1e9));
}
