/// What monitors logged of a job's GPUs beside what its step is predicted to draw: mean power, its
/// swing, the clock, and which GPU is slow.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/answer/fields.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/measured/telemetry_log.hpp"

namespace lockstep {

/// Power over time as a monitor reads it, watts.
struct PowerStatistics {
  double mean_w = 0, p99_w = 0;
  double swing_w = 0;  ///< between the 1st and 99th percentiles
};

/// A GPU over the samples in which the job ran.
struct TelemetryOfGpu {
  std::string name;
  std::size_t samples = 0;
  std::optional<PowerStatistics> power{};
  std::optional<double> clock_mhz{};        ///< mean
  std::optional<double> clock_of_median{};  ///< over the median GPU's; of one GPU none
  std::optional<double> utilisation{};      ///< mean, 0 to 1
  /// What lowered the clock, and in which share of the samples: "power cap", "thermal", ...
  std::vector<std::pair<std::string, double>> throttled{};
  bool slow = false;   ///< its clock is that far below the median GPU's, or heat or a brake is
  double costs_s = 0;  ///< what its products take longer in a step, which the others wait for
};

struct Telemetry {
  PowerStatistics predicted;                ///< of the mean GPU, over the meter's window
  std::optional<PowerStatistics> measured;  ///< median over the GPUs
  std::optional<double> clock_mhz;          ///< median over the GPUs
  std::optional<double> highest_clock_mhz;  ///< of the card, where a log says it
  double predicted_clock = 1;  ///< in lasting products, over the highest: GemmConstants::sustained
  std::vector<TelemetryOfGpu> gpus;
  std::optional<std::size_t> slowest;  ///< of the slow ones the one that costs most
  std::size_t outside = 0;             ///< samples before and after the job, left out
  std::vector<std::string> notes;

  [[nodiscard]] std::optional<double> clock_share() const {
    if (!clock_mhz || !highest_clock_mhz) return std::nullopt;
    return *clock_mhz / *highest_clock_mhz;
  }
};

/// Compares. Of each GPU the samples from the first to the last in which it is at least half busy,
/// or draws at least half of its highest power where utilisation is not logged. The prediction is
/// averaged over a second, as NVML does on Ampere and later cards (nvmlDeviceGetPowerUsage; GA100
/// and instant readings are not). A GPU is slow whose clock is 3 % below the median one's, or which
/// heat or a power brake throttles in 5 % of the samples (both assumed). What that costs is the
/// predicted time of products, mean over the stages, times (median clock / own clock - 1).
/// Requires predicted.power and at least one log.
Telemetry compare_telemetry(const RunResult& predicted, std::span<const TelemetryLog> logs);

const FieldTable<Telemetry>& telemetry_fields();

}  // namespace lockstep
