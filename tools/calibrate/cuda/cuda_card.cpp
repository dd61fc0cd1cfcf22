#include "tools/calibrate/cuda/cuda_card.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "tools/calibrate/cuda/passes.hpp"
#include "tools/calibrate/cuda/products.hpp"
#include "tools/lockstep/options.hpp"

namespace lockstep {
namespace {

/// Of the memory that is free: the largest operands of the plan are 2.6 GiB together, and a second
/// set is there to rotate. cuBLASLt, contexts and graphs keep the rest.
constexpr double kInputsShare = 0.4, kOutputsShare = 0.3;
constexpr std::size_t kMostInputs = std::size_t{6} << 30, kMostOutputs = std::size_t{4} << 30;

int card_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  throw CardUnavailable(
      fmt::format("there is no GPU here that could be timed (cudaGetDeviceCount: {}); run it on a "
                  "machine where nvidia-smi lists one",
                  status == cudaSuccess ? "no device" : cudaGetErrorString(status)));
}

std::string pci_address(int device) {
  std::array<char, 32> address{};
  check(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device),
        "cudaDeviceGetPCIBusId");
  return address.data();
}

Occupancy occupancy_of(const Nvml* nvml, const cudaDeviceProp& properties) {
  const Occupancy unknown{
      .utilisation = 0, .used = {}, .total = Bytes{static_cast<double>(properties.totalGlobalMem)}};
  return nvml == nullptr ? unknown : nvml->occupancy().value_or(unknown);
}

/// Before a context of ours counts as use of it. A driver that was just loaded for us shows its own
/// work as use for a moment, so that one look is not enough to send a person away.
void require_idle(int device, const Nvml* nvml, const cudaDeviceProp& properties) {
  constexpr int kLooks = 8;
  constexpr std::chrono::milliseconds kBetweenLooks{500};
  std::string obstacle = obstacle_of(occupancy_of(nvml, properties));
  for (int look = 1; look < kLooks && !obstacle.empty(); ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
    obstacle = obstacle_of(occupancy_of(nvml, properties));
  }
  if (obstacle.empty()) return;
  throw CardUnavailable(fmt::format("card {} ({}) cannot be timed: {}", device,
                                    std::string(properties.name), obstacle));
}

std::string version_text(int version, int major_unit, int minor_unit) {
  return fmt::format("{}.{}", version / major_unit, version % major_unit / minor_unit);
}

std::size_t share_of(std::size_t bytes, double share, std::size_t most) {
  const double wanted = static_cast<double>(bytes) * share;
  return std::min(most, static_cast<std::size_t>(wanted)) / kAlignment * kAlignment;
}

class CudaCard : public Card {
 public:
  CudaCard(const cudaDeviceProp& properties, std::size_t free, std::unique_ptr<Nvml> nvml)
      : bench_(static_cast<std::size_t>(properties.l2CacheSize),
               share_of(free, kInputsShare, kMostInputs),
               share_of(free, kOutputsShare, kMostOutputs), std::move(nvml)),
        products_(bench_) {
    facts_.name = properties.name;
    facts_.major = properties.major;
    facts_.minor = properties.minor;
    facts_.inputs = Bytes{static_cast<double>(share_of(free, kInputsShare, kMostInputs))};
    facts_.outputs = Bytes{static_cast<double>(share_of(free, kOutputsShare, kMostOutputs))};
    describe(properties);
  }

  [[nodiscard]] const CardFacts& facts() const override { return facts_; }

  Samples measure(const Task& task, const Pace& pace) override {
    if (const auto* product = std::get_if<ProductTask>(&task)) {
      return products_.measure(*product, pace);
    }
    if (const auto* memory = std::get_if<MemoryTask>(&task)) return measure_memory(bench_, *memory);
    if (const auto* copy = std::get_if<CopyTask>(&task)) return measure_copy(bench_, *copy);
    return measure_launch(bench_, std::get<LaunchTask>(task));
  }

 private:
  void describe(const cudaDeviceProp& properties) {
    auto& c = facts_.conditions;
    c.emplace_back("device", facts_.name);
    c.emplace_back("multiprocessors", fmt::format("{}", properties.multiProcessorCount));
    c.emplace_back("L2 cache", fmt::format("{} MiB", properties.l2CacheSize >> 20));
    c.emplace_back("memory",
                   fmt::format("{:.1f} GiB", static_cast<double>(properties.totalGlobalMem) /
                                                 gibibytes(1).base_units()));
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    c.emplace_back("CUDA", version_text(runtime, 1000, 10));
    c.emplace_back("CUDA of the driver", version_text(driver, 1000, 10));
    c.emplace_back("cuBLASLt", fmt::format("{}", cublasLtGetVersion()));
    if (bench_.nvml() == nullptr) {
      c.emplace_back("clocks and power", "not known: libnvidia-ml.so.1 could not be used");
      return;
    }
    for (const auto& condition : bench_.nvml()->conditions()) c.push_back(condition);
  }

  CardFacts facts_;
  Bench bench_;
  Products products_;
};

std::unique_ptr<Card> opened(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::unique_ptr<Nvml> nvml = Nvml::open(pci_address(device));
  require_idle(device, nvml.get(), properties);
  check(cudaSetDevice(device), "cudaSetDevice");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return std::make_unique<CudaCard>(properties, free, std::move(nvml));
}

}  // namespace

std::unique_ptr<Card> open_cuda_card(int device) {
  const int count = card_count();
  if (device >= count) {
    throw UsageError(fmt::format("--device: found {}; allowed: 0 to {}", device, count - 1));
  }
  try {
    return opened(device);
  } catch (const CardError& e) {
    // In exclusive mode, cut into instances, out of memory.
    throw CardUnavailable(fmt::format("card {} cannot be used: {}", device, e.what()));
  }
}

}  // namespace lockstep
