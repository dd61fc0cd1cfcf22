#include "models/power/hourly.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <optional>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/trimmed.hpp"

namespace lockstep {
namespace {

constexpr double kHourSeconds = 3600;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

double HourlySeries::at(Seconds time) const {
  const double hour = std::floor(time.base_units() / kHourSeconds);
  return values[static_cast<std::size_t>(std::fmod(hour, static_cast<double>(values.size())))];
}

double HourlySeries::integral(Seconds begin, Seconds end) const {
  assert(Seconds{} <= begin && begin <= end && !values.empty());
  if (values.size() == 1) return values[0] * (end - begin).base_units();
  // Sum over whole series from 0, then the rest of it: the integral up to a time.
  const auto until = [this](double seconds) {
    const double period = kHourSeconds * static_cast<double>(values.size());
    const double whole = std::accumulate(values.begin(), values.end(), 0.0) * kHourSeconds;
    double rest = std::fmod(seconds, period), sum = std::floor(seconds / period) * whole;
    for (std::size_t i = 0; rest > 0 && i < values.size(); ++i, rest -= kHourSeconds) {
      sum += values[i] * std::min(rest, kHourSeconds);
    }
    return sum;
  };
  return until(end.base_units()) - until(begin.base_units());
}

HourlySeries parse_hourly(const std::string& file, std::string_view text, double most,
                          double least) {
  HourlySeries series{.values = {}};
  int line_number = 0;
  for (bool heading = true; !text.empty();) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t comma = line.find_last_of(",;");
    const std::string_view cell =
        trimmed(comma == std::string_view::npos ? line : line.substr(comma + 1));
    const std::optional<double> value = number(cell);
    const bool may_be_heading = heading;
    heading = false;
    if (!value && may_be_heading) continue;
    if (!value || !(*value >= least && *value <= most)) {
      throw InputError({.file = fmt::format("{}:{}", file, line_number),
                        .pointer = {},
                        .found = in_quotes(cell),
                        .allowed = fmt::format("a number from {} to {} for each hour",
                                               plain_number(least), plain_number(most)),
                        .nearest = {}});
    }
    series.values.push_back(*value);
  }
  if (series.values.empty()) {
    throw InputError({.file = file,
                      .pointer = {},
                      .found = "no number",
                      .allowed = "a line for each hour, its value in the last column",
                      .nearest = {}});
  }
  return series;
}

}  // namespace lockstep
