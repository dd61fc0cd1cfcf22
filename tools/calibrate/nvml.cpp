#include "tools/calibrate/nvml.hpp"

#include <array>
#include <dlfcn.h>
#include <fmt/format.h>

namespace lockstep {
namespace {

// nvmlClockType_t and nvmlTemperatureSensors_t of nvml.h, and what calls give back.
constexpr int kSuccess = 0, kInsufficientSize = 7;
constexpr unsigned kSmClock = 1, kMemoryClock = 2;
constexpr int kGpuTemperature = 0;

}  // namespace

/// Prototypes from nvml.h of the NVML API reference; calls without a remark have kept their form
/// since driver 450.
struct Nvml::Calls {
  using Device = struct nvmlDevice_st*;
  struct Utilisation {
    unsigned gpu, memory;  ///< per cent
  };
  /// nvmlMemory_v2_t, from driver 510 on: the first version's `used` holds what the driver
  /// reserves.
  struct MemoryInfo {
    unsigned version = sizeof(MemoryInfo) | 2U << 24;  // NVML_STRUCT_VERSION(Memory, 2)
    unsigned long long total = 0, reserved = 0, free = 0, used = 0;  ///< bytes
  };
  /// nvmlMemory_t.
  struct FirstMemoryInfo {
    unsigned long long total, free, used;  ///< bytes
  };

  void* library = nullptr;
  Device device = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_address)(const char*, Device*) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*power_usage)(Device, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*highest_clock)(Device, unsigned, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*utilisation)(Device, Utilisation*) = nullptr;
  int (*first_memory)(Device, FirstMemoryInfo*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;          ///< null before driver 510
  int (*processes)(Device, unsigned*, void*) = nullptr;  ///< the same

  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    if (device != nullptr) shutdown();
    if (library != nullptr) dlclose(library);
  }

  template <class Function>
  bool load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
  }
  bool load_all() {
    return load(init, "nvmlInit_v2") && load(shutdown, "nvmlShutdown") &&
           load(by_address, "nvmlDeviceGetHandleByPciBusId_v2") &&
           load(driver_version, "nvmlSystemGetDriverVersion") &&
           load(power_usage, "nvmlDeviceGetPowerUsage") &&
           load(power_limit, "nvmlDeviceGetEnforcedPowerLimit") &&
           load(energy, "nvmlDeviceGetTotalEnergyConsumption") &&
           load(clock, "nvmlDeviceGetClockInfo") &&
           load(highest_clock, "nvmlDeviceGetMaxClockInfo") &&
           load(temperature, "nvmlDeviceGetTemperature") &&
           load(utilisation, "nvmlDeviceGetUtilizationRates") &&
           load(first_memory, "nvmlDeviceGetMemoryInfo");
  }
  void load_later_ones() {
    load(memory, "nvmlDeviceGetMemoryInfo_v2");
    load(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  }
  /// Programs with a compute context; nothing where the driver does not say.
  std::optional<int> programs() const {
    if (processes == nullptr) return std::nullopt;
    unsigned count = 0;
    // Without room for any it says how many there are.
    const int status = processes(device, &count, nullptr);
    if (status != kSuccess && status != kInsufficientSize) return std::nullopt;
    return static_cast<int>(count);
  }
  bool find(const std::string& pci_address) {
    if (init() != kSuccess) return false;
    Device found = nullptr;
    if (by_address(pci_address.c_str(), &found) != kSuccess) {
      shutdown();
      return false;
    }
    device = found;
    return true;
  }
};

Nvml::Nvml(std::unique_ptr<Calls> calls) : calls_(std::move(calls)) {}
Nvml::~Nvml() = default;

std::unique_ptr<Nvml> Nvml::open(const std::string& pci_address) {
  auto calls = std::make_unique<Calls>();
  calls->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (calls->library == nullptr || !calls->load_all() || !calls->find(pci_address)) return nullptr;
  calls->load_later_ones();
  return std::unique_ptr<Nvml>(new Nvml(std::move(calls)));
}

std::optional<Occupancy> Nvml::occupancy() const {
  Calls::MemoryInfo memory{};
  if (calls_->memory == nullptr || calls_->memory(calls_->device, &memory) != kSuccess) {
    Calls::FirstMemoryInfo first{};
    if (calls_->first_memory(calls_->device, &first) != kSuccess) return std::nullopt;
    memory.total = first.total;
    memory.used = first.used;
  }
  Calls::Utilisation use{};
  // Cards that are cut into instances do not know it.
  if (calls_->utilisation(calls_->device, &use) != kSuccess) use = {};
  return Occupancy{.utilisation = use.gpu / 100.0,
                   .used = Bytes{static_cast<double>(memory.used)},
                   .total = Bytes{static_cast<double>(memory.total)},
                   .programs = calls_->programs()};
}

CardState Nvml::state() const {
  CardState out;
  unsigned value = 0;
  if (calls_->clock(calls_->device, kSmClock, &value) == kSuccess) out.sm_mhz = value;
  if (calls_->power_usage(calls_->device, &value) == kSuccess) out.watts = value * 1e-3;
  if (calls_->temperature(calls_->device, kGpuTemperature, &value) == kSuccess) out.celsius = value;
  return out;
}

std::optional<Joules> Nvml::energy() const {
  unsigned long long millijoules = 0;
  if (calls_->energy(calls_->device, &millijoules) != kSuccess) return std::nullopt;
  return Joules{static_cast<double>(millijoules) * 1e-3};
}

std::vector<std::pair<std::string, std::string>> Nvml::conditions() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::array<char, 96> version{};
  if (calls_->driver_version(version.data(), version.size()) == kSuccess) {
    out.emplace_back("driver", version.data());
  }
  unsigned value = 0;
  if (calls_->power_limit(calls_->device, &value) == kSuccess) {
    out.emplace_back("power limit", fmt::format("{:.0f} W", value * 1e-3));
  }
  if (calls_->highest_clock(calls_->device, kSmClock, &value) == kSuccess) {
    out.emplace_back("highest SM clock", fmt::format("{} MHz", value));
  }
  if (calls_->highest_clock(calls_->device, kMemoryClock, &value) == kSuccess) {
    out.emplace_back("highest memory clock", fmt::format("{} MHz", value));
  }
  out.insert(out.end(), further_.begin(), further_.end());
  return out;
}

void Nvml::add_condition(std::string name, std::string value) {
  further_.emplace_back(std::move(name), std::move(value));
}

}  // namespace lockstep
