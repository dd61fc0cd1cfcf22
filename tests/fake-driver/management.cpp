/// NVML, as far as lockstep-calibrate calls it: libnvidia-ml.so.1.
#include <cstdio>

#include "tests/fake-driver/fake_card.hpp"
#include "tests/fake-driver/times.hpp"

namespace {

using namespace lockstep;

constexpr int kInsufficientSize = 7;
constexpr unsigned kMemoryClock = 2;
constexpr unsigned kMegahertz = 1'000'000;

struct FakeUtilisation {
  unsigned gpu, memory;
};
struct FakeMemoryInfo {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct FakeFirstMemoryInfo {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

int nvmlInit_v2() { return fake::fault("nvmlInit_v2"); }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** out) {
  static int card;
  *out = &card;
  return fake::fault("nvmlDeviceGetHandleByPciBusId_v2");
}
int nvmlSystemGetDriverVersion(char* out, unsigned length) {
  std::snprintf(out, length, "made up");
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = static_cast<unsigned>(fake::kWatts * 1e3);
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  *millijoules = static_cast<unsigned long long>(fake::now() * fake::kWatts * 1e3);
  return 0;
}
int nvmlDeviceGetClockInfo(void*, unsigned, unsigned* megahertz) {
  *megahertz = static_cast<unsigned>(fake::kClockHz) / kMegahertz;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, unsigned which, unsigned* megahertz) {
  *megahertz = which == kMemoryClock ? 2619 : 1980;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = static_cast<unsigned>(fake::kCelsius);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, FakeUtilisation* out) {
  *out = {static_cast<unsigned>(fake::setting("LOCKSTEP_FAKE_UTILISATION", 0)), 0};
  return 0;
}
/// The first version counts what the driver keeps, so much here that it looks like a program.
int nvmlDeviceGetMemoryInfo(void*, FakeFirstMemoryInfo* out) {
  constexpr unsigned long long kKept = 4ULL << 30;
  *out = {fake::kCardMemory, fake::kCardMemory - kKept, kKept};
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void*, FakeMemoryInfo* out) {
  const unsigned version = out->version;
  *out = {version, fake::kCardMemory, fake::kReserved, fake::kCardMemory - fake::kReserved, 0};
  return fake::fault("nvmlDeviceGetMemoryInfo_v2");
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = static_cast<unsigned>(fake::setting("LOCKSTEP_FAKE_PROGRAMS", 0));
  return *count == 0 ? 0 : kInsufficientSize;
}
}
