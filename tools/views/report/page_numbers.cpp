#include "tools/views/report/page_numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "models/base/number_text.hpp"
#include "tools/console/percent.hpp"

namespace lockstep {
namespace {

constexpr double kJoulesInKwh = 3.6e6;

/// No line ends between a number and its unit.
std::string unbroken(std::string text) {
  for (std::size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at)) {
    text.replace(at, 1, "\u00a0");
  }
  return text;
}

/// "< 1 %" of "<1 %".
std::string spaced_percent(std::string text) {
  if (text.starts_with('<') || text.starts_with('>')) text.insert(1, " ");
  return unbroken(std::move(text));
}

AxisUnit unit_of(double largest, std::span<const AxisUnit> units, double least = 1) {
  for (const AxisUnit& unit : units) {
    // What rounds to 1 is 1.
    if (largest >= least * unit.size * (1 - 1e-9)) return unit;
  }
  return units.back();
}

}  // namespace

std::string page_duration(double seconds) {
  constexpr double kMicrosecond = 1e-6, kNanosecond = 1e-9, kRoundsUp = 1 - 5e-4;
  const double size = std::abs(seconds);
  std::string text = seconds == 0 ? "0 s" : duration_text(seconds);
  if (size > 0 && size < kRoundsUp * kMicrosecond)
    text = significant(seconds / kNanosecond) + " ns";
  if (text.ends_with(" us")) text.replace(text.size() - 2, 2, "µs");
  return unbroken(text);
}

std::string page_setting(double seconds) {
  static const std::array<AxisUnit, 3> units{{{3600, "h"}, {60, "min"}, {1, "s"}}};
  constexpr double kTwoDays = 172'800, kRounds = 1 - 5e-4;
  if (seconds < kRounds) return page_duration(seconds);
  const AxisUnit unit =
      seconds >= kTwoDays * kRounds ? AxisUnit{86'400, "days"} : unit_of(seconds, units, kRounds);
  // Three digits, without zeros that say nothing.
  std::string digits = significant(seconds / unit.size);
  if (digits.find('.') != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
  }
  return unbroken(digits + " " + unit.name);
}

std::string page_with(double value, std::string_view unit) {
  if (unit.empty()) return significant(value);
  return unbroken(fmt::format("{} {}", significant(value), unit));
}

std::string page_with_text(std::string_view number, std::string_view unit) {
  if (unit.empty()) return std::string(number);
  return unbroken(fmt::format("{} {}", number, unit));
}

std::string page_bytes(double bytes) {
  const AxisUnit unit = bytes_unit(bytes);
  return page_with(bytes / unit.size, unit.name);
}

std::string page_watts(double watts) {
  const AxisUnit unit = power_unit(std::abs(watts));
  return page_with(watts / unit.size, unit.name);
}

std::string page_energy(double joules) {
  static const std::array<AxisUnit, 4> units{{{1e6 * kJoulesInKwh, "GWh"},
                                              {1e3 * kJoulesInKwh, "MWh"},
                                              {kJoulesInKwh, "kWh"},
                                              {1e3, "kJ"}}};
  const AxisUnit unit = unit_of(joules, units);
  return page_with(joules / unit.size, unit.name);
}

std::string page_usd(double usd) { return unbroken(compact(usd) + " USD"); }
std::string page_count(double count) { return unbroken(compact(count)); }
std::string page_percent(double share, int decimals) {
  return spaced_percent(few_percent(share, decimals));
}
std::string page_within(double error) {
  constexpr double kTenth = 1e-3;
  return page_percent(error > 0 ? std::max(error, kTenth) : 0, 1);
}
std::string page_part(double share) { return spaced_percent(part_percent(share)); }
std::string page_times(double ratio) { return significant(ratio) + "×"; }

AxisUnit time_unit(double largest_s) {
  static const std::array<AxisUnit, 3> units{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}};
  return unit_of(largest_s, units);
}

AxisUnit bytes_unit(double largest) {
  static const std::array<AxisUnit, 6> units{
      {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};
  return unit_of(largest, units);
}

AxisUnit power_unit(double largest_w) {
  static const std::array<AxisUnit, 4> units{{{1e9, "GW"}, {1e6, "MW"}, {1e3, "kW"}, {1, "W"}}};
  return unit_of(largest_w, units);
}

AxisUnit count_unit(double largest) {
  static const std::array<AxisUnit, 5> units{
      {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};
  return unit_of(largest, units);
}

AxisUnit long_time_unit(double largest_s) {
  static const std::array<AxisUnit, 4> units{{{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  return unit_of(largest_s, units, 3);
}

double shown_digits(double value, int digits) {
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}
double four_digits(double value) { return shown_digits(value, 4); }
double rounded_percent(double share) { return std::round(1000 * share) / 10; }
double fine_percent(double share) { return std::round(10'000 * share) / 100; }

}  // namespace lockstep
