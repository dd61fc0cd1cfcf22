/// A value that changes by the hour: what a kilowatt-hour costs, or how much carbon it emits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

/// Values of successive hours, repeated from the start when they run out: one for a constant, 24
/// for a day, 8,760 for a year. The first hour begins with the run.
struct HourlySeries {
  std::vector<double> values{0.0};

  [[nodiscard]] double at(Seconds time) const;
  /// Integral from `begin` to `end`, in value times seconds. Requires 0 <= begin <= end.
  [[nodiscard]] double integral(Seconds begin, Seconds end) const;
};

/// The last column of a CSV file, one line per hour; a first line without a number is a heading,
/// empty lines and lines that begin with '#' count for nothing. Throws InputError about `file`,
/// with the line, for anything but numbers of 0 to `most`, and for a file without any.
HourlySeries parse_hourly(const std::string& file, std::string_view text, double most,
                          double least = 0);

}  // namespace lockstep
