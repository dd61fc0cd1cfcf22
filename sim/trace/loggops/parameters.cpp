#include "sim/trace/loggops/parameters.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <system_error>

#include "models/base/input_error.hpp"
#include "models/base/usage_error.hpp"

namespace lockstep {
namespace {

/// Sets what the letter stands for; nothing for a number that it cannot be.
bool set_loggops(LogGopsParameters& out, char letter, double value) {
  // A second for a message and a millisecond for a byte: slower than any network.
  constexpr double kMostNs = 1e9, kMostNsPerByte = 1e6, kPsPerNs = 1000;
  const auto time = [&] {
    return StepTime{static_cast<std::uint64_t>(std::llround(value * kPsPerNs))};
  };
  const bool of_byte = letter == 'G' || letter == 'O';
  if (letter == 'S') {
    if (value != std::floor(value) || value > static_cast<double>(kMostGoalMessage)) return false;
    out.largest_eager = static_cast<std::uint64_t>(value);
  } else if (value > (of_byte ? kMostNsPerByte : kMostNs)) {
    return false;
  } else if (of_byte) {
    (letter == 'G' ? out.gap_per_byte_ps : out.overhead_per_byte_ps) = value * kPsPerNs;
  } else {
    (letter == 'L' ? out.latency : letter == 'o' ? out.overhead : out.gap) = time();
  }
  return true;
}

void read_loggops_part(std::string_view part, LogGopsParameters& out) {
  constexpr std::string_view kLetters = "LogGOS";
  double value = -1;
  const char* end = part.data() + part.size();
  const bool has_letter =
      part.size() > 2 && part[1] == '=' && kLetters.find(part[0]) != std::string_view::npos;
  if (has_letter) {
    const auto [stop, error] = std::from_chars(part.data() + 2, end, value);
    if (error != std::errc{} || stop != end) value = -1;
  }
  if (std::isfinite(value) && value >= 0 && set_loggops(out, part[0], value)) return;
  throw UsageError(fmt::format(
      "--loggops: found {}; allowed: L, o and g up to 1e9 ns, G and O up to 1e6 ns a byte, and "
      "whole bytes S up to {}, as in L=2500,o=1500,g=1000,G=0.02,O=0,S=65535",
      in_quotes(part), kMostGoalMessage));
}

}  // namespace

LogGopsParameters parse_loggops(std::string_view text) {
  LogGopsParameters out;
  std::string_view rest = text;
  std::string seen;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    read_loggops_part(part, out);
    if (seen.find(part[0]) != std::string::npos) {
      throw UsageError(fmt::format("--loggops: found {}, a second {}; allowed: each letter once",
                                   in_quotes(part), part[0]));
    }
    seen += part[0];
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace lockstep
