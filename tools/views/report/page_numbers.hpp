/// Numbers with their unit, as pages show them; the space between is one that no line ends at.
#pragma once

#include <string>
#include <string_view>

#include "models/base/number_text.hpp"

namespace lockstep {

std::string page_duration(double seconds);                 ///< "12.3 µs", "2.00 ns"
std::string page_setting(double seconds);                  ///< as somebody would set it: "30 min"
std::string page_bytes(double bytes);                      ///< "1.20 GB", powers of 1000
std::string page_percent(double share, int decimals = 0);  ///< "61 %"; "< 1 %" of little
/// What behind "within" is true of the error: "3.1 %", of little "0.1 %".
std::string page_within(double error);
/// A part of a whole as part_percent() has it: "61.3 %", "< 0.1 %", "99.95 %".
std::string page_part(double share);
std::string page_times(double ratio);                        ///< "1.42×"
std::string page_watts(double watts);                        ///< "24.3 MW"
std::string page_energy(double joules);                      ///< "31.2 GWh", kJ below a kWh
std::string page_usd(double usd);                            ///< "42.5 M USD"
std::string page_count(double count);                        ///< compact(): "15.6 T"
std::string page_with(double value, std::string_view unit);  ///< three digits and any unit
std::string page_with_text(std::string_view number, std::string_view unit);  ///< "12,345 tokens/s"

/// A power of 1000 to show all values of an axis in.
struct AxisUnit {
  double size;       ///< in base units
  std::string name;  ///< "ms", "GB"
};
/// The unit in which the largest value is at least 1, as far as there is one. Requires finite.
AxisUnit time_unit(double largest_s);
AxisUnit bytes_unit(double largest);
AxisUnit power_unit(double largest_w);
AxisUnit count_unit(double largest);  ///< "T", "B", "M", "k", ""
/// For hours to years: days, hours, minutes or seconds, of which there are at least three.
AxisUnit long_time_unit(double largest_s);

/// With that many significant digits: JSON does not carry what a chart cannot show.
double shown_digits(double value, int digits);
/// Four digits are more than most charts show.
double four_digits(double value);
/// Per cent with one decimal, or two.
double rounded_percent(double share);
double fine_percent(double share);

}  // namespace lockstep
