#include "models/base/number_text.hpp"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace lockstep {

double twelve_digits(double value) {
  if (!std::isfinite(value)) return value;
  // For speed: answers are full of counts.
  constexpr double kWhole = 1e12;
  if (std::abs(value) < kWhole && value == std::trunc(value)) return value;
  constexpr int kDigits = 12;
  constexpr std::size_t kLength = 32;  // a sign, twelve digits with a point, an exponent
  std::array<char, kLength> text{};
  char* const begin = text.data();
  const char* const end =
      std::to_chars(begin, begin + kLength, value, std::chars_format::general, kDigits).ptr;
  double rounded = value;
  std::from_chars(begin, end, rounded);
  return rounded;
}

std::string number_text(double value) { return fmt::format("{:.12g}", value == 0 ? 0.0 : value); }

std::string grouped(double whole) {
  std::string digits = fmt::format("{:.0f}", std::abs(whole));
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return whole <= -0.5 ? "-" + digits : digits;
}

std::string counted(double whole, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(whole), noun, whole == 1 ? "" : "s");
}

std::string significant(double value, int digits) {
  assert(digits >= 1);
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  if (!std::isfinite(value) || magnitude < 1e-4 || magnitude >= 1e15) {
    return fmt::format("{:.{}g}", value, digits);
  }
  // The exponent of the rounded number counts: 9.996 has to be seen as 10.0.
  const std::string rounded = fmt::format("{:.{}e}", value, digits - 1);
  const int exponent = std::atoi(rounded.c_str() + rounded.find('e') + 1);
  const int decimals = digits - 1 - exponent;
  return decimals <= 0 ? grouped(value) : fmt::format("{:.{}f}", value, decimals);
}

std::string plain_number(double value, int digits) {
  assert(digits >= 1);
  const std::string text = fmt::format("{:.{}g}", value, digits);
  const double rounded = std::strtod(text.c_str(), nullptr);
  const bool whole = std::abs(rounded) >= 1 && std::abs(rounded) < 1e15;
  return whole && text.find('e') != std::string::npos ? grouped(rounded) : text;
}

std::string compact(double value) {
  struct Size {
    double from;
    const char* letter;
  };
  constexpr std::array kSizes{Size{1e12, "T"}, Size{1e9, "B"}, Size{1e6, "M"}, Size{1e4, "k"}};
  for (const Size& size : kSizes) {
    const double unit = size.from == 1e4 ? 1e3 : size.from;  // 4,096 reads better than 4.10 k
    if (std::abs(value) >= size.from) return significant(value / unit) + " " + size.letter;
  }
  return significant(value);
}

TimeUnit duration_unit(double seconds) {
  struct Size {
    double upto;
    TimeUnit unit;
  };
  constexpr std::array kSizes{Size{1e-3, {1e-6, "us"}}, Size{1, {1e-3, "ms"}}, Size{120, {1, "s"}},
                              Size{7200, {60, "min"}}, Size{172800, {3600, "h"}}};
  for (const Size& size : kSizes) {
    if (std::abs(seconds) < size.upto) return size.unit;
  }
  return {86400, "days"};
}

std::string duration_text(double seconds) {
  if (seconds == 0) return "0 s";
  const TimeUnit unit = duration_unit(seconds);
  return fmt::format("{} {}", significant(seconds / unit.seconds), unit.name);
}

std::string error_text(double error) {
  const std::string text = fmt::format("{:+.1f} %", 100 * error);
  return text == "-0.0 %" ? "+0.0 %" : text;
}
std::string percent_text(double share) {
  std::string text = fmt::format("{:.1f} %", 100 * share);
  if (std::strtod(text.c_str(), nullptr) != 0) return text;
  // What is there is not nothing; nor is a sum's rounding something.
  constexpr double kNothing = 1e-9;
  return share > kNothing ? "<0.1 %" : "0.0 %";
}

}  // namespace lockstep
