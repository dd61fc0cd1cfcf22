// Fuzz target: whatever bytes a file of measurements has, each reader of them gives what its header
// says or an InputError of whole lines: what monitors logged of GPUs (diagnose --telemetry), traces
// of the PyTorch profiler, nccl-tests' logs and series, tables of Nsight Systems, rows of steps and
// of power.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "sim/measured/kineto_trace.hpp"
#include "sim/measured/nccl_log.hpp"
#include "sim/measured/nccl_series.hpp"
#include "sim/measured/nsys_report.hpp"
#include "sim/measured/power_rows.hpp"
#include "sim/measured/rows.hpp"
#include "sim/measured/telemetry_log.hpp"
#include "tests/fuzz/documents.hpp"

namespace {

using namespace lockstep;

void require(bool holds) {
  if (!holds) std::abort();
}

/// A number is one, and not below 0.
void require_amount(const std::optional<double>& value) {
  require(!value || (std::isfinite(*value) && *value >= 0));
}

void telemetry(std::string_view text) {
  const TelemetryLog log = read_telemetry("fuzz.csv", text);
  require(!log.gpus.empty());
  require_amount(log.max_clock_mhz);
  for (const TelemetryGpu& gpu : log.gpus) {
    require(!gpu.samples.empty() && !gpu.name.empty());
    for (const TelemetrySample& sample : gpu.samples) {
      require(sample.power_w || sample.clock_mhz);
      require_amount(sample.power_w);
      require_amount(sample.clock_mhz);
      require_amount(sample.utilisation);
      require(sample.utilisation.value_or(0) <= 1);
    }
  }
}

void kineto(std::string_view text) { require(!parse_kineto("fuzz.json", text).kernels.empty()); }

void nccl_log(std::string_view text) {
  const NcclLogOptions options{.op = "all_reduce", .nodes = 2, .gpus_per_node = 8};
  for (const NcclSeries& series : parse_nccl_log("fuzz.log", text, options).series) {
    for (const NcclSample& sample : series.samples) {
      require(sample.size >= Bytes{1} && sample.time_us.has_value());
      require_amount(sample.time_us);
    }
  }
}

void nccl_series(std::string_view text) { (void)parse_nccl_series("fuzz.json", text); }
void nsys(std::string_view text) { (void)parse_nsys("fuzz.csv", text); }
void power_rows(std::string_view text) { (void)parse_power_rows("fuzz.json", text); }
void rows(std::string_view text) { (void)parse_rows("fuzz.json", text); }

constexpr void (*kReaders[])(std::string_view) = {telemetry, kineto,     nccl_log, nccl_series,
                                                  nsys,      power_rows, rows};

}  // namespace

// The first byte names a reader: 'a' the first of kReaders.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t reader = (data[0] >= 'a' ? data[0] - std::size_t{'a'} : data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    kReaders[reader % std::size(kReaders)](text);
  } catch (const InputError& error) {
    require(are_whole_lines(error.what()));
  }
  return 0;
}
