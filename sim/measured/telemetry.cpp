#include "sim/measured/telemetry.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <string_view>

#include "models/base/number_text.hpp"
#include "models/spec/precision.hpp"
#include "sim/measured/diagnosis.hpp"
#include "sim/measured/statistics.hpp"
#include "sim/power/power_series.hpp"

namespace lockstep {
namespace {

constexpr double kBusy = 0.5;
constexpr double kSlowClock = 0.97, kOftenThrottled = 0.05;  // assumed: header
constexpr Seconds kNvmlWindow{1};
constexpr double kHigh = 0.99, kLow = 0.01;

/// Bits of NVML's clock event reasons (nvml.h, nvmlClocksEventReason*).
struct ThrottleReason {
  std::uint64_t bit;
  std::string_view name;
  bool harms;  ///< not the card's ordinary limit
};
constexpr std::array kThrottleReasons{
    ThrottleReason{0x4, "power cap", false},     ThrottleReason{0x8, "hardware slowdown", true},
    ThrottleReason{0x20, "thermal limit", true}, ThrottleReason{0x40, "overheating", true},
    ThrottleReason{0x80, "power brake", true},
};

PowerStatistics power_statistics(std::vector<double> watts) {
  PowerStatistics out;
  for (const double w : watts) out.mean_w += w / static_cast<double>(watts.size());
  out.p99_w = quantile(watts, kHigh);
  out.swing_w = out.p99_w - quantile(std::move(watts), kLow);
  return out;
}

/// Of the mean GPU of the job.
PowerStatistics predicted_power(const RunResult& predicted, bool instant) {
  constexpr int kReadings = 2000;  // evenly over the step
  const Scenario& s = predicted.scenario;
  const PowerSeries gpu =
      scaled(predicted.power->gpus, {}, 1.0 / (static_cast<double>(s.nodes) * s.node.gpus));
  std::vector<double> watts;
  for (const Watts w : metered_profile(gpu, instant ? Seconds{} : kNvmlWindow, kReadings)) {
    watts.push_back(w.base_units());
  }
  PowerStatistics out = power_statistics(std::move(watts));
  out.mean_w = mean_power(gpu).base_units();
  return out;
}

double predicted_clock_of(const Scenario& s) {
  const GemmConstants& gemm = s.node.gpu.gemm;
  return gemm.sustained * (is_quantised(s.job.precision) ? gemm.quantised_sustained : 1.0);
}

bool has_utilisation(const TelemetryGpu& gpu) {
  return std::ranges::any_of(gpu.samples, [](const auto& s) { return s.utilisation.has_value(); });
}

/// The samples in which the job ran, pauses within it too.
std::span<const TelemetrySample> samples_of_job(const TelemetryGpu& gpu) {
  const bool told = has_utilisation(gpu);
  double most = 0;
  for (const TelemetrySample& s : gpu.samples) most = std::max(most, s.power_w.value_or(0));
  const auto is_busy = [&](const TelemetrySample& s) {
    return told ? s.utilisation.value_or(0) >= kBusy : s.power_w.value_or(most) >= kBusy * most;
  };
  const auto first = std::ranges::find_if(gpu.samples, is_busy);
  auto last = gpu.samples.end();
  while (last != first && !is_busy(*std::prev(last))) --last;
  return {first, last};
}

std::optional<double> mean_of_told(std::span<const TelemetrySample> samples,
                                   std::optional<double> TelemetrySample::* member) {
  double sum = 0;
  std::size_t told = 0;
  for (const TelemetrySample& s : samples) {
    if (!(s.*member)) continue;
    sum += *(s.*member);
    ++told;
  }
  if (told == 0) return std::nullopt;
  return sum / static_cast<double>(told);
}

std::vector<std::pair<std::string, double>> throttles(std::span<const TelemetrySample> samples) {
  std::vector<std::pair<std::string, double>> out;
  for (const ThrottleReason& reason : kThrottleReasons) {
    std::size_t told = 0, set = 0;
    for (const TelemetrySample& s : samples) {
      if (!s.reasons) continue;
      ++told;
      set += (*s.reasons & reason.bit) != 0 ? 1U : 0U;
    }
    if (set == 0) continue;
    out.emplace_back(reason.name, static_cast<double>(set) / static_cast<double>(told));
  }
  return out;
}

bool is_harmed(const TelemetryOfGpu& gpu) {
  return std::ranges::any_of(gpu.throttled, [](const auto& each) {
    const auto* const reason =
        std::ranges::find(kThrottleReasons, each.first, &ThrottleReason::name);
    return reason->harms && each.second >= kOftenThrottled;
  });
}

TelemetryOfGpu telemetry_of(const std::string& name, std::span<const TelemetrySample> samples) {
  TelemetryOfGpu out{.name = name, .samples = samples.size()};
  std::vector<double> watts;
  for (const TelemetrySample& s : samples) {
    if (s.power_w) watts.push_back(*s.power_w);
  }
  if (!watts.empty()) out.power = power_statistics(std::move(watts));
  out.clock_mhz = mean_of_told(samples, &TelemetrySample::clock_mhz);
  out.utilisation = mean_of_told(samples, &TelemetrySample::utilisation);
  out.throttled = throttles(samples);
  return out;
}

template <class Get>
std::optional<double> median_of(const std::vector<TelemetryOfGpu>& gpus, const Get& get) {
  std::vector<double> values;
  for (const TelemetryOfGpu& gpu : gpus) {
    if (const std::optional<double> value = get(gpu)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return median(std::move(values));
}

std::optional<PowerStatistics> median_power(const std::vector<TelemetryOfGpu>& gpus) {
  const auto of = [&](double PowerStatistics::* member) {
    return median_of(gpus, [member](const TelemetryOfGpu& gpu) {
      return gpu.power ? std::optional((*gpu.power).*member) : std::nullopt;
    });
  };
  const auto mean = of(&PowerStatistics::mean_w);
  if (!mean) return std::nullopt;
  return PowerStatistics{*mean, *of(&PowerStatistics::p99_w), *of(&PowerStatistics::swing_w)};
}

std::optional<double> upper_median_clock(const std::vector<TelemetryOfGpu>& gpus) {
  std::vector<double> clocks;
  for (const TelemetryOfGpu& gpu : gpus) {
    if (gpu.clock_mhz) clocks.push_back(*gpu.clock_mhz);
  }
  if (clocks.empty()) return std::nullopt;
  const auto middle = clocks.begin() + static_cast<std::ptrdiff_t>(clocks.size() / 2);
  std::ranges::nth_element(clocks, middle);
  return *middle;
}

void find_slow_gpus(const RunResult& predicted, Telemetry& out) {
  double products = 0;
  const std::size_t stages = predicted.report.stages.size();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    products += predicted_part_s(predicted, stage, RecordedPart::product);
  }
  products /= static_cast<double>(stages);
  // Of two in the middle the faster one: a mean of the two is no GPU's clock.
  const std::optional<double> middle = upper_median_clock(out.gpus);
  for (std::size_t i = 0; i < out.gpus.size(); ++i) {
    TelemetryOfGpu& gpu = out.gpus[i];
    if (gpu.clock_mhz && *gpu.clock_mhz > 0 && out.gpus.size() > 1) {
      gpu.clock_of_median = *gpu.clock_mhz / *middle;
    }
    const double clock = gpu.clock_of_median.value_or(1);
    gpu.slow = clock < kSlowClock || is_harmed(gpu);
    if (!gpu.slow) continue;
    gpu.costs_s = std::max(0.0, products * (1 / clock - 1));
    const bool most = !out.slowest || gpu.costs_s > out.gpus[*out.slowest].costs_s;
    if (most) out.slowest = i;
  }
}

void add_gpus(std::span<const TelemetryLog> logs, Telemetry& out) {
  for (const TelemetryLog& log : logs) {
    if (log.max_clock_mhz) {
      out.highest_clock_mhz = std::max(out.highest_clock_mhz.value_or(0), *log.max_clock_mhz);
    }
    for (const TelemetryGpu& gpu : log.gpus) {
      const std::span<const TelemetrySample> samples = samples_of_job(gpu);
      out.outside += gpu.samples.size() - samples.size();
      if (samples.empty()) {
        out.notes.push_back(fmt::format("{} is never busy in the log, and is left out", gpu.name));
        continue;
      }
      out.gpus.push_back(telemetry_of(gpu.name, samples));
    }
  }
}

}  // namespace

Telemetry compare_telemetry(const RunResult& predicted, std::span<const TelemetryLog> logs) {
  Telemetry out;
  add_gpus(logs, out);
  const bool instant = std::ranges::all_of(logs, &TelemetryLog::instant);
  out.predicted = predicted_power(predicted, instant);
  out.predicted_clock = predicted_clock_of(predicted.scenario);
  out.measured = median_power(out.gpus);
  out.clock_mhz = upper_median_clock(out.gpus);
  find_slow_gpus(predicted, out);
  std::size_t missing = 0;
  for (const TelemetryLog& log : logs) missing += log.missing;
  if (missing > 0) {
    out.notes.push_back(fmt::format("{} without a value (NaN) {} left out",
                                    counted(static_cast<double>(missing), "sample"),
                                    missing == 1 ? "is" : "are"));
  }
  if (out.outside > 0) {
    out.notes.push_back(fmt::format("{} before and after the job are left out",
                                    counted(static_cast<double>(out.outside), "sample")));
  }
  const auto gpus = static_cast<std::size_t>(predicted.scenario.gpus());
  if (out.gpus.size() != gpus) {
    out.notes.push_back(fmt::format("the logs are of {}, the scenario of {}",
                                    counted(static_cast<double>(out.gpus.size()), "GPU"), gpus));
  }
  return out;
}

namespace {

const FieldTable<PowerStatistics>& power_statistics_fields() {
  using Of = PowerStatistics;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("mean_w", "Mean.", [](const Of& p) { return p.mean_w; })
          .add("p99_w", "99th percentile of the readings.", [](const Of& p) { return p.p99_w; })
          .add("swing_w", "Between their 1st and 99th percentiles.",
               [](const Of& p) { return p.swing_w; });
  return fields;
}

const FieldTable<TelemetryOfGpu>& telemetry_gpu_fields() {
  using Of = TelemetryOfGpu;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "As the log names it.", [](const Of& g) { return g.name; })
          .add("samples", "While the job ran.", [](const Of& g) { return g.samples; })
          .object("power", "Its power.", power_statistics_fields(),
                  [](const Of& g) -> const auto& { return g.power; })
          .add("clock_mhz", "Mean clock of its SMs.", [](const Of& g) { return g.clock_mhz; })
          .add("clock_over_median", "Over that of the median GPU.",
               [](const Of& g) { return g.clock_of_median; })
          .add("utilisation", "Mean share of the time in which kernels ran.",
               [](const Of& g) { return g.utilisation; })
          .add("throttled", "Shares of the samples in which each reason lowered the clock.",
               [](const Of& g) { return NamedNumbers(g.throttled); })
          .add("slow", "Whether it is slower than the others, or throttled by heat or a brake.",
               [](const Of& g) { return g.slow; })
          .add("costs_s", "What its products take longer in a step.",
               [](const Of& g) { return g.costs_s; });
  return fields;
}

}  // namespace

const FieldTable<Telemetry>& telemetry_fields() {
  using Of = Telemetry;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .object("predicted_power", "Of the mean GPU, as the monitor would read it.",
                  power_statistics_fields(), [](const Of& t) { return t.predicted; })
          .object("measured_power", "Of the GPUs in the logs, the median of each number.",
                  power_statistics_fields(), [](const Of& t) -> const auto& { return t.measured; })
          .add("clock_mhz", "Mean clock of the SMs, median over the GPUs, the faster one of two.",
               [](const Of& t) { return t.clock_mhz; })
          .add("highest_clock_mhz", "Of the card, where the log says it.",
               [](const Of& t) { return t.highest_clock_mhz; })
          .add("measured_clock_share", "The clock over the highest one.",
               [](const Of& t) { return t.clock_share(); })
          .add("predicted_clock_share", "The same in products that last, as predicted.",
               [](const Of& t) { return t.predicted_clock; })
          .add("slowest_gpu", "Of the GPUs that are slow the one that costs the step most.",
               [](const Of& t) {
                 return t.slowest ? std::optional(t.gpus[*t.slowest].name) : std::nullopt;
               })
          .list("gpus", "GPUs of the logs.", telemetry_gpu_fields(),
                [](const Of& t) -> const auto& { return t.gpus; })
          .add("notes", "What is to be known of the logs.", [](const Of& t) { return t.notes; });
  return fields;
}

}  // namespace lockstep
