/// Numbers of answers with their unit, as the terminal prints them, whichever number it is.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// The number that a dotted path of an answer ends at, in the unit of its declaration (unit_at())
/// with a prefix that suits its size: "14.04 MW", "-5,740 W", "2.61 s", "325 M USD", "41.3 %" of
/// shares, and four digits of what has no unit: "6,765,000 tokens/s", "0.6231".
std::string figure_text(std::string_view path, double value);

/// A bound on it as somebody would write it: at most six digits, no zeros behind them, in the unit
/// that suits the bound: "150 MW", "60 days", "97 %", "16,384".
std::string bound_text(std::string_view path, double bound);

/// figure_text() of a number that misses this bound, with more digits where it would look like the
/// bound: "40.0003 %", not "40.0 %", where at most 40 % were claimed.
std::string missing_text(std::string_view path, double value, double bound);

/// The number's name in words, without its unit: "time to train", "MFU", "ttft p99".
std::string figure_title(std::string_view path);

/// Whether it is printed as per cent: MFU, goodput, utilisation, shares, chances and relative
/// errors.
bool is_share_figure(std::string_view path);

}  // namespace lockstep
