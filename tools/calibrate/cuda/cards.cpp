#include "tools/calibrate/cuda/cards.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <thread>

#include "tools/calibrate/cuda/check.hpp"

namespace lockstep {
namespace {

Occupancy occupancy_of(const Nvml* nvml, const cudaDeviceProp& properties) {
  const Occupancy unknown{.utilisation = 0,
                          .used = {},
                          .total = Bytes{static_cast<double>(properties.totalGlobalMem)},
                          .programs = {}};
  return nvml == nullptr ? unknown : nvml->occupancy().value_or(unknown);
}

std::string version_text(int version, int major_unit, int minor_unit) {
  return fmt::format("{}.{}", version / major_unit, version % major_unit / minor_unit);
}

}  // namespace

int card_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return count;
  throw CardUnavailable(
      fmt::format("there is no GPU here that could be timed (cudaGetDeviceCount: {}); run it on a "
                  "machine where nvidia-smi lists one",
                  status == cudaSuccess ? "no device" : cudaGetErrorString(status)));
}

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

std::unique_ptr<Nvml> nvml_of(int device) {
  std::array<char, 32> address{};
  check(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device),
        "cudaDeviceGetPCIBusId");
  return Nvml::open(address.data());
}

/// A driver that was just loaded for us shows its own work as use for a moment, so that one look is
/// not enough to send a person away.
void require_idle(int device, Nvml* nvml, const cudaDeviceProp& properties) {
  constexpr int kLooks = 8;
  constexpr std::chrono::milliseconds kBetweenLooks{500};
  Occupancy occupancy = occupancy_of(nvml, properties);
  const auto disturbed = [&] {
    return !obstacle_of(occupancy).empty() || !disturbance_of(occupancy).empty();
  };
  for (int look = 1; look < kLooks && disturbed(); ++look) {
    std::this_thread::sleep_for(kBetweenLooks);
    occupancy = occupancy_of(nvml, properties);
  }
  const std::string card = fmt::format("card {} ({})", device, std::string(properties.name));
  if (const std::string obstacle = obstacle_of(occupancy); !obstacle.empty()) {
    throw CardUnavailable(fmt::format("{} cannot be timed: {}", card, obstacle));
  }
  if (const std::string disturbance = disturbance_of(occupancy); !disturbance.empty()) {
    fmt::print(stderr, "lockstep-calibrate: {}: {}\n", card, disturbance);
    if (nvml != nullptr) nvml->add_condition("disturbance", disturbance);
  }
}

void add_versions(const Nvml* nvml, std::vector<std::pair<std::string, std::string>>& conditions) {
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  conditions.emplace_back("CUDA", version_text(runtime, 1000, 10));
  conditions.emplace_back("CUDA of the driver", version_text(driver, 1000, 10));
  if (nvml == nullptr) {
    conditions.emplace_back("clocks and power", "not known: libnvidia-ml.so.1 could not be used");
    return;
  }
  for (const auto& condition : nvml->conditions()) conditions.push_back(condition);
}

}  // namespace lockstep
