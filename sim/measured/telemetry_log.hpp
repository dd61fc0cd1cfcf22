/// What monitors logged of GPUs while a job ran: power, clock and utilisation, sample by sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct TelemetrySample {
  std::optional<double> power_w, clock_mhz;
  std::optional<double> utilisation;     ///< share of the time in which kernels ran, 0 to 1
  std::optional<std::uint64_t> reasons;  ///< why the clock is low: bits of NVML's clock reasons
};

struct TelemetryGpu {
  std::string name;  ///< "GPU 3", "node7 GPU 3"
  std::vector<TelemetrySample> samples;
};

struct TelemetryLog {
  std::vector<TelemetryGpu> gpus;         ///< by first appearance
  std::string device;                     ///< the first card, where the log names it
  std::optional<double> max_clock_mhz{};  ///< of the card, where the log says it
  bool instant = false;                   ///< power is no average over the last second
  std::size_t missing = 0;                ///< samples of Prometheus that are NaN, left out
};

/// Reads a log of one of these, told by its first line of column names:
/// - `nvidia-smi --query-gpu=... --format=csv -l 1`, with or without units, with its header;
/// - `nvidia-smi dmon` (with `--format csv` too) and `dcgmi dmon -e 155,100,203`, whose headers
///   begin with '#';
/// - `amd-smi monitor -p -u -w 1`, as a table or with `--csv`; CSV of `amd-smi metric` and of
///   `rocm-smi --showpower --showuse --showclocks --csv`, repeated;
/// - JSON of `amd-smi metric` and `amd-smi monitor`, one look or several behind each other; what
///   `nvidia-smi -q` prints, once or again and again;
/// - metrics as dcgm-exporter, AMD's device metrics exporter and nvidia_gpu_exporter write them for
///   Prometheus, one scrape or several, and JSON of Prometheus' queries;
/// - CSV with a column for each of DCGM's fields (DCGM_FI_DEV_POWER_USAGE, ...), or a row for each
///   value (columns of time, field, GPU and value), as stores of dcgm-exporter's metrics write it.
/// Cells such as "[N/A]" have no value, and NaN of Prometheus is none; a last line of a table that
/// was cut is left out. Throws InputError for another text, for one without a sample of power or
/// clock, for JSON and metrics that were cut off, and for a sample of Prometheus that is no number.
/// Sources: docs.nvidia.com/deploy/nvidia-smi; DCGM's "Field Identifiers" and "dcgmi dmon"; NVML
/// API reference, nvmlClocksEventReasons; ROCm/amdsmi, amdsmi_cli/amdsmi_commands.py (monitor,
/// metric); ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py.
TelemetryLog read_telemetry(const std::string& file, std::string_view text);

}  // namespace lockstep
