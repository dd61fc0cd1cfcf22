/// Quantities as people write them: "400 Gb/s", "80 GiB", "15 min", or a bare number in SI units.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep {

/// What kind of quantity a field holds; decides the units that it may have.
enum class Dimension : std::uint8_t {
  time,        ///< base unit: second
  data,        ///< byte
  data_rate,   ///< byte per second
  flops_rate,  ///< FLOP per second
  power,       ///< watt
  count,       ///< tokens or other things counted: a plain number, or "15.6 T tokens"
  share,       ///< a ratio: a plain number, or "6 %"
};

struct Unit {
  std::string_view symbol;  ///< case matters: "Gb/s" is an eighth of "GB/s"
  Dimension dimension;
  double factor;  ///< base units in one of these
};
/// Every unit, by dimension, the ones that people should use first.
std::span<const Unit> units();

/// Units written out, as answers print them ("54.0 days"): read everywhere, and listed nowhere.
std::span<const Unit> unit_words();

/// "time", "data rate", ... as messages say it.
std::string_view dimension_name(Dimension dimension);
/// "s, ms, us, ...": the symbols of a dimension.
std::string unit_list(Dimension dimension);

/// Why a text is no quantity of the dimension.
struct QuantityMistake {
  std::string allowed;
  std::string nearest;  ///< a unit symbol; empty: none is near
};

/// The quantity in base units: a decimal number, optional blanks, a unit. A number without a unit
/// is taken only where the dimension has none (count, share). The result may be any finite number:
/// the caller checks its range.
std::variant<double, QuantityMistake> parse_quantity(std::string_view text, Dimension dimension);

/// "2.5 us", "400 Gb/s", "80 GiB": the value in the unit that makes it shortest to read, at most
/// six significant digits.
std::string format_quantity(double base_units, Dimension dimension);

}  // namespace lockstep
