/// Numbers as text: with a sensible count of digits for people, with twelve for programs.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// The double nearest to `value` that has at most 12 significant decimal digits: what JSON and CSV
/// print.
double twelve_digits(double value);
/// The shortest text of twelve_digits(value): "0.4", "13.0625", "1e+30".
std::string number_text(double value);

/// 1234567 -> "1,234,567".
std::string grouped(double whole);
/// "1 job", "1,234 jobs": the noun has an "s" behind it unless it is of one.
std::string counted(double whole, std::string_view noun);
/// `digits` significant digits, never an exponent between 1e-4 and 1e15: "6.72", "0.0131",
/// "16,384".
std::string significant(double value, int digits = 3);
/// At most `digits` significant digits and no zeros behind them, as somebody would write it, never
/// an exponent between 1e-4 and 1e15: "2.5", "12,800", "1,000,000".
std::string plain_number(double value, int digits = 6);
/// A large count with a letter for its size: "950", "26.5 k", "1.62 M", "4.21 B", "15.6 T".
std::string compact(double value);
/// A unit of time, as durations are printed.
struct TimeUnit {
  double seconds;
  std::string_view name;
};
/// The one that a duration reads best in: us, ms, s, min, h or days, by its size without the sign.
TimeUnit duration_unit(double seconds);
/// A duration in the unit that reads best: "1.23 us", "45.6 ms", "6.72 s", "3.4 min", "2.1 h",
/// "54.0 days".
std::string duration_text(double seconds);
/// A signed relative error as per cent: "+3.1 %"; what rounds to nothing is "+0.0 %".
std::string error_text(double error);
/// A share of 1 as per cent: "41.3 %".
std::string percent_text(double share);

}  // namespace lockstep
