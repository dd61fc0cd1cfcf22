#include "models/power/gpu_power.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <string_view>

#include "models/kernels/gemm.hpp"
#include "models/kernels/memory_bound.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {
namespace {

/// Round numbers: 100 W active, 1 pJ per FLOP, 100 pJ per byte, 400 W at most.
GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.peak_fp16 = gpu.peak_bf16 = teraflops_per_second(300);
  gpu.hbm_bandwidth = gigabytes_per_second(2000);
  gpu.power_limit = Watts{400};
  gpu.gemm.efficiency = 1;
  gpu.gemm.bandwidth = gigabytes_per_second(2000);
  gpu.memory.efficiency = 1;
  gpu.power = GpuPowerConstants{.awake = Watts{80},
                                .active = Watts{100},
                                .tensor_16 = picojoules_per_flop(1),
                                .tensor_8 = picojoules_per_flop(0.5),
                                .tensor_4 = picojoules_per_flop(0.25),
                                .hbm = picojoules_per_byte(100),
                                .link = picojoules_per_byte(50)};
  return gpu;
}

EngineWork work(double tera_16, double tera_8, double tera_4, double giga_hbm, double giga_link) {
  EngineWork w;
  w.flops_16 = Flops{1e12 * tera_16};
  w.flops_8 = Flops{1e12 * tera_8};
  w.flops_4 = Flops{1e12 * tera_4};
  w.hbm = Bytes{1e9 * giga_hbm};
  w.link = Bytes{1e9 * giga_link};
  return w;
}
double joules(const EngineWork& w, double seconds) {
  return sum(gpu_energy(w, Seconds{seconds}, round_gpu())).base_units();
}

}  // namespace

TEST_CASE("gpu_energy: the fixed part and joules per unit add up") {
  CHECK(joules({}, 2) == doctest::Approx(200));
  CHECK(joules(work(100, 0, 0, 0, 0), 1) == doctest::Approx(200));
  CHECK(joules(work(0, 100, 0, 0, 0), 1) == doctest::Approx(150));
  CHECK(joules(work(0, 0, 100, 0, 0), 1) == doctest::Approx(125));
  CHECK(joules(work(0, 0, 0, 1000, 0), 1) == doctest::Approx(200));
  CHECK(joules(work(0, 0, 0, 0, 400), 1) == doctest::Approx(120));
  CHECK(joules(work(50, 50, 40, 500, 100), 1) == doctest::Approx(100 + 50 + 25 + 10 + 50 + 5));
  CHECK(joules({}, 0) == 0);
}

TEST_CASE("clipped: the card's limit holds, and the fixed part is not what gives way") {
  const ByGpuPart<Watts> demand{Watts{100}, Watts{300}, Watts{150}, Watts{50}, Watts{}};
  CHECK(clipped(demand, Watts{600}) == demand);
  const ByGpuPart<Watts> drawn = clipped(demand, Watts{350});
  CHECK(drawn == ByGpuPart<Watts>{Watts{100}, Watts{150}, Watts{75}, Watts{25}, Watts{}});
  CHECK(sum(clipped(demand, Watts{60})) == Watts{100});
}

TEST_CASE("capped_clock: the cube root of what is left above the fixed part") {
  const GpuSpec gpu = round_gpu();
  const double product = product_power(gpu).base_units();
  CHECK(product == 400);  // 100 + 300 + streams: at the limit
  CHECK(capped_clock(gpu, Watts{400}) == 1);
  CHECK(capped_clock(gpu, Watts{250}) == doctest::Approx(std::cbrt(0.5)));
  CHECK(capped_clock(gpu, lowest_cap(gpu)) == doctest::Approx(0.2));
}

TEST_CASE("capped: products slow by the clock, streaming only when it does not fit itself") {
  const GpuSpec gpu = round_gpu();
  const GpuSpec at_350 = capped(gpu, Watts{350});  // streaming draws 300
  const auto rate = [](const GpuSpec& g) {
    return gemm_rate(Precision::bf16, g, Load::sustained).base_units();
  };
  CHECK(rate(at_350) == doctest::Approx(std::cbrt(250.0 / 300) * rate(gpu)));
  CHECK(memory_bound_time(Bytes{1e9}, at_350) == memory_bound_time(Bytes{1e9}, gpu));
  const GpuSpec at_200 = capped(gpu, Watts{200});
  CHECK(memory_bound_time(Bytes{1e9}, at_200) / memory_bound_time(Bytes{1e9}, gpu) ==
        doctest::Approx(2));
}

TEST_CASE("capped: faster HBM slows no product that is bound by it") {
  GpuSpec gpu = round_gpu();
  gpu.gemm.bandwidth = gigabytes_per_second(1800);
  const auto of_products = [&gpu](double faster, double cap) {
    GpuSpec other = gpu;
    other.hbm_bandwidth = faster * gpu.hbm_bandwidth;
    return capped(other, Watts{cap}).gemm.bandwidth;
  };
  for (const double faster : {1.0, 1.25, 2.0}) {
    CAPTURE(faster);
    // 100 W above the fixed ones move 1 TB/s, 180 W all that products reach.
    CHECK(of_products(faster, 200).base_units() == doctest::Approx(1000e9));
    CHECK(of_products(faster, 240).base_units() == doctest::Approx(1400e9));
    CHECK(of_products(faster, 290) == gpu.gemm.bandwidth);
  }
}

TEST_CASE("capped: a product at the new clock draws what the cap allows, and no more") {
  const PresetStore presets;
  for (const std::string& name : presets.names("gpus")) {
    CAPTURE(name);
    const GpuSpec& gpu = presets.gpu(name);
    for (const double share : {0.5, 0.7, 0.9, 1.0}) {
      const Watts cap = share * gpu.power_limit;
      if (cap < lowest_cap(gpu)) continue;
      const GpuSpec slow = capped(gpu, cap);
      CHECK(product_power(slow).base_units() <= cap.base_units() * (1 + 1e-12));
      CHECK(slow.gemm.sustained <= gpu.gemm.sustained);
      CHECK(slow.power_limit == cap);
    }
  }
}

TEST_CASE("GPU presets: large products run near the limit, streaming below it") {
  const PresetStore presets;
  for (const std::string& name : presets.names("gpus")) {
    CAPTURE(name);
    const GpuSpec& gpu = presets.gpu(name);
    const GpuPowerConstants& c = *gpu.power;
    CHECK(gpu.power_idle <= c.awake);
    CHECK(c.awake <= c.active);
    CHECK(c.tensor_4 <= c.tensor_8);
    CHECK(c.tensor_8 <= c.tensor_16);
    // The limit of a GH200 is that of a module with a CPU in it; tensor cores of the others run at
    // half of the chip's rate, of H20 at a quarter.
    constexpr std::array<std::string_view, 4> kBelow{"gh200_96gb", "h20_96gb", "rtx4090_24gb",
                                                     "rtx5090_32gb"};
    if (std::ranges::find(kBelow, name) == kBelow.end()) {
      CHECK(product_power(gpu) / gpu.power_limit > 0.95);
    }
    const Watts streaming = c.active + c.hbm * gpu.hbm_bandwidth;
    CHECK(streaming < 1.001 * gpu.power_limit);
  }
}

TEST_CASE("capped: voltage falls with the clock, and the energy of a FLOP with its square") {
  // Above the 100 W that are fixed, power goes as f V^2. Half of it is left under 250 W of 400.
  for (const double exponent : {3.0, 2.0}) {
    CAPTURE(exponent);
    GpuSpec gpu = round_gpu();
    gpu.power->clock_exponent = exponent;
    const GpuSpec slow = capped(gpu, Watts{250});
    const double clock = std::pow(0.5, 1 / exponent);  // c^n = 1/2
    const double of_a_flop = 0.5 / clock;              // power above the fixed part over the clock
    CHECK(slow.power->tensor_16 / gpu.power->tensor_16 == doctest::Approx(of_a_flop));
    CHECK(slow.power->tensor_8 / gpu.power->tensor_8 == doctest::Approx(of_a_flop));
    CHECK(slow.power->tensor_4 / gpu.power->tensor_4 == doctest::Approx(of_a_flop));
    CHECK(slow.power->active == gpu.power->active);
    CHECK(slow.power->hbm == gpu.power->hbm);  // HBM keeps its own clock
    // 300 TFLOP/s at 1 pJ draw 300 W; so many at the new clock draw the 150 W that are left.
    EngineWork second;
    second.flops_16 = clock * Flops{300e12};
    CHECK(sum(gpu_energy(second, Seconds{1}, slow)).base_units() == doctest::Approx(250));
  }
}

}  // namespace lockstep
