#include "tools/views/diagnose/telemetry_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostSlowGpus = 12;

std::string watts_of(double watts) { return fmt::format("{:.0f} W", watts); }

std::string power_table(const Telemetry& t, const TextStyle& style) {
  if (!t.measured) return {};
  TextTable table(
      {{"power of a GPU", TextTable::Align::left}, {"predicted"}, {"measured"}, {"difference"}});
  const auto add = [&](std::string_view title, double predicted, double measured) {
    table.add({std::string(title), watts_of(predicted), watts_of(measured),
               error_text(measured / predicted - 1)});
  };
  add("mean", t.predicted.mean_w, t.measured->mean_w);
  add("99th percentile", t.predicted.p99_w, t.measured->p99_w);
  table.add({"swing", watts_of(t.predicted.swing_w), watts_of(t.measured->swing_w),
             fmt::format("{:+.0f} W", t.measured->swing_w - t.predicted.swing_w)});
  return "\n" + table.text(style);
}

/// Empty: no log says the clock.
std::string clock_words(const Telemetry& t) {
  if (!t.clock_mhz) return {};
  std::string out =
      fmt::format("The clock of the median GPU is {:.0f} MHz in the mean", *t.clock_mhz);
  if (const std::optional<double> share = t.clock_share()) {
    out += fmt::format(", {} of the highest; in products that last, {} is predicted.",
                       percent_text(*share), percent_text(t.predicted_clock));
  } else {
    out += fmt::format(
        ". In products that last, {} of the highest is predicted; the log does not say the card's "
        "highest (clocks.max.sm).",
        percent_text(t.predicted_clock));
  }
  return out;
}

/// "clock 12 % below the median GPU's; thermal limit in 40 % of the samples".
std::string why_slow(const TelemetryOfGpu& gpu) {
  std::string out;
  if (gpu.clock_of_median && *gpu.clock_of_median < 1) {
    out = fmt::format("its clock is {} below the median GPU's",
                      percent_text(1 - *gpu.clock_of_median));
  }
  for (const auto& [reason, part] : gpu.throttled) {
    out += fmt::format("{}{} in {} of the samples", out.empty() ? "" : "; ", reason,
                       percent_text(part));
  }
  return out;
}

std::string slow_gpu_words(const TelemetryOfGpu& gpu) {
  const std::string costs =
      gpu.costs_s > 0
          ? fmt::format(": its products take {} longer in every step, which the others wait for",
                        duration_text(gpu.costs_s))
          : std::string();
  return fmt::format("{} is slow: {}{}.", gpu.name, why_slow(gpu), costs);
}

/// A sentence for each slow GPU, the dearest first; that none is slow where clocks tell.
std::vector<std::string> slow_gpus_words(const Telemetry& t) {
  if (!t.slowest) {
    const bool clocks = t.clock_mhz.has_value() && t.gpus.size() > 1;
    return clocks ? std::vector<std::string>{"No GPU's clock stands out."}
                  : std::vector<std::string>{};
  }
  std::vector<std::string> out{slow_gpu_words(t.gpus[*t.slowest])};
  for (std::size_t i = 0; i < t.gpus.size(); ++i) {
    if (t.gpus[i].slow && i != *t.slowest) out.push_back(slow_gpu_words(t.gpus[i]));
  }
  return out;
}

std::string slow_gpus_text(const Telemetry& t) {
  const std::vector<std::string> words = slow_gpus_words(t);
  if (words.empty()) return {};
  std::string out = "\n";
  for (std::size_t i = 0; i < std::min(kMostSlowGpus, words.size()); ++i) {
    out += wrap(words[i], kTextColumns, 0) + "\n";
  }
  if (words.size() > kMostSlowGpus) {
    out += fmt::format("  {} more: --format json has them\n", words.size() - kMostSlowGpus);
  }
  return out;
}

std::string clock_text(const Telemetry& t) {
  const std::string words = clock_words(t);
  return words.empty() ? words : "\n" + wrap(words, kTextColumns, 0) + "\n";
}

}  // namespace

std::string slow_gpu_verdict(const Telemetry& t) {
  if (!t.slowest) return {};
  const TelemetryOfGpu& gpu = t.gpus[*t.slowest];
  std::string out = fmt::format(" {} is slow", gpu.name);
  if (gpu.clock_of_median && *gpu.clock_of_median < 1) {
    out += fmt::format(": its clock is {} below the median GPU's",
                       percent_text(1 - *gpu.clock_of_median));
  }
  if (gpu.costs_s > 0) {
    out += fmt::format(", which costs every step {}", duration_text(gpu.costs_s));
  }
  const auto others = std::ranges::count(t.gpus, true, &TelemetryOfGpu::slow) - 1;
  if (others > 0) out += fmt::format("; so {} {} more", others == 1 ? "is" : "are", others);
  return out + ".";
}

std::vector<std::string> telemetry_words(const Telemetry& t) {
  std::vector<std::string> out;
  if (const std::string clock = clock_words(t); !clock.empty()) out.push_back(clock);
  for (std::string& each : slow_gpus_words(t)) out.push_back(std::move(each));
  out.insert(out.end(), t.notes.begin(), t.notes.end());
  return out;
}

std::string telemetry_text(const Telemetry& t, const TextStyle& style) {
  std::string out = power_table(t, style) + clock_text(t) + slow_gpus_text(t);
  for (const std::string& note : t.notes) out += wrap("note: " + note, kTextColumns, 2) + "\n";
  return out;
}

}  // namespace lockstep
