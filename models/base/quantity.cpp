#include "models/base/quantity.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/trimmed.hpp"

namespace lockstep {
namespace {

constexpr double kKibi = 1024;
constexpr double kMebi = kKibi * 1024;
constexpr double kGibi = kMebi * 1024;
constexpr double kTebi = kGibi * 1024;
constexpr double kMonth = 365.25 * 86400 / 12;  // a mean one

constexpr std::array kUnits{
    Unit{"s", Dimension::time, 1},
    Unit{"ms", Dimension::time, 1e-3},
    Unit{"us", Dimension::time, 1e-6},
    Unit{"ns", Dimension::time, 1e-9},
    Unit{"min", Dimension::time, 60},
    Unit{"h", Dimension::time, 3600},
    Unit{"d", Dimension::time, 86400},

    Unit{"B", Dimension::data, 1},
    Unit{"kB", Dimension::data, 1e3},
    Unit{"MB", Dimension::data, 1e6},
    Unit{"GB", Dimension::data, 1e9},
    Unit{"TB", Dimension::data, 1e12},
    Unit{"KiB", Dimension::data, kKibi},
    Unit{"MiB", Dimension::data, kMebi},
    Unit{"GiB", Dimension::data, kGibi},
    Unit{"TiB", Dimension::data, kTebi},

    Unit{"Gb/s", Dimension::data_rate, 1e9 / 8},
    Unit{"GB/s", Dimension::data_rate, 1e9},
    Unit{"TB/s", Dimension::data_rate, 1e12},
    Unit{"MB/s", Dimension::data_rate, 1e6},
    Unit{"kB/s", Dimension::data_rate, 1e3},
    Unit{"B/s", Dimension::data_rate, 1},
    Unit{"Tb/s", Dimension::data_rate, 1e12 / 8},
    Unit{"Mb/s", Dimension::data_rate, 1e6 / 8},
    Unit{"MiB/s", Dimension::data_rate, kMebi},
    Unit{"GiB/s", Dimension::data_rate, kGibi},
    Unit{"TiB/s", Dimension::data_rate, kTebi},

    Unit{"TFLOP/s", Dimension::flops_rate, 1e12},
    Unit{"PFLOP/s", Dimension::flops_rate, 1e15},
    Unit{"GFLOP/s", Dimension::flops_rate, 1e9},
    Unit{"FLOP/s", Dimension::flops_rate, 1},

    Unit{"W", Dimension::power, 1},
    Unit{"kW", Dimension::power, 1e3},
    Unit{"MW", Dimension::power, 1e6},

    Unit{"tokens", Dimension::count, 1},
    Unit{"k tokens", Dimension::count, 1e3},
    Unit{"M tokens", Dimension::count, 1e6},
    Unit{"B tokens", Dimension::count, 1e9},
    Unit{"T tokens", Dimension::count, 1e12},
    Unit{"k", Dimension::count, 1e3},
    Unit{"M", Dimension::count, 1e6},
    Unit{"B", Dimension::count, 1e9},
    Unit{"T", Dimension::count, 1e12},

    Unit{"%", Dimension::share, 0.01},
};

constexpr std::array kUnitWords{
    Unit{"second", Dimension::time, 1},       Unit{"seconds", Dimension::time, 1},
    Unit{"minute", Dimension::time, 60},      Unit{"minutes", Dimension::time, 60},
    Unit{"hour", Dimension::time, 3600},      Unit{"hours", Dimension::time, 3600},
    Unit{"day", Dimension::time, 86400},      Unit{"days", Dimension::time, 86400},
    Unit{"week", Dimension::time, 7 * 86400}, Unit{"weeks", Dimension::time, 7 * 86400},
    Unit{"month", Dimension::time, kMonth},   Unit{"months", Dimension::time, kMonth},
};

/// Null where the dimension has no such unit.
const Unit* unit_named(std::string_view name, Dimension dimension) {
  for (const std::span<const Unit> table : {units(), unit_words()}) {
    for (const Unit& unit : table) {
      if (unit.dimension == dimension && unit.symbol == name) return &unit;
    }
  }
  return nullptr;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Runs of blanks become one space: "15.6  T tokens" is as good as "15.6 T tokens".
std::string single_spaced(std::string_view text) {
  std::string out;
  for (const char c : trimmed(text)) {
    if (!is_blank(c))
      out += c;
    else if (out.back() != ' ')
      out += ' ';
  }
  return out;
}

bool may_be_bare(Dimension dimension) {
  return dimension == Dimension::count || dimension == Dimension::share;
}

std::string rule(Dimension dimension) {
  if (dimension == Dimension::share) return "a number or a percentage such as \"6 %\"";
  return std::string(may_be_bare(dimension) ? "a number or a number with a unit of "
                                            : "a number with a unit of ") +
         std::string(dimension_name(dimension)) + ": " + unit_list(dimension) +
         (dimension == Dimension::time ? ", weeks, months" : "");
}

QuantityMistake mistake(std::string_view unit, Dimension dimension) {
  std::vector<std::string> symbols;
  for (const Unit& u : units()) {
    if (u.dimension == dimension) symbols.emplace_back(u.symbol);
  }
  // "5" for a time is no misspelt unit, and one letter is near to everything.
  return {rule(dimension), unit.size() < 2 ? std::string{} : nearest_name(unit, symbols)};
}

std::string with_unit(double base_units, const Unit& unit) {
  std::array<char, 40> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.6g ", base_units / unit.factor);
  return std::string(buffer.data()) + std::string(unit.symbol);
}

}  // namespace

std::span<const Unit> units() { return kUnits; }
std::span<const Unit> unit_words() { return kUnitWords; }

std::string_view dimension_name(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "time";
    case Dimension::data:
      return "data";
    case Dimension::data_rate:
      return "data rate";
    case Dimension::flops_rate:
      return "compute rate";
    case Dimension::power:
      return "power";
    case Dimension::count:
      return "count";
    case Dimension::share:
      return "share";
  }
  return "quantity";
}

std::string unit_list(Dimension dimension) {
  std::vector<std::string_view> symbols;
  for (const Unit& unit : kUnits) {
    if (unit.dimension == dimension) symbols.push_back(unit.symbol);
  }
  return listed(std::span<const std::string_view>(symbols));
}

std::variant<double, QuantityMistake> parse_quantity(std::string_view text, Dimension dimension) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // from_chars takes "nan" and "inf", which are no quantities.
  if (error != std::errc{} || !std::isfinite(number)) return QuantityMistake{rule(dimension), ""};

  const std::string unit =
      single_spaced({end, static_cast<std::size_t>(text.data() + text.size() - end)});
  if (unit.empty()) {
    if (may_be_bare(dimension)) return number;
    return QuantityMistake{rule(dimension), ""};
  }
  const Unit* const known = unit_named(unit, dimension);
  if (known == nullptr) return mistake(unit, dimension);
  const double value = number * known->factor;
  if (!std::isfinite(value)) return QuantityMistake{rule(dimension), ""};
  return value;
}

std::string format_quantity(double base_units, Dimension dimension) {
  const Unit* base = nullptr;
  std::string shortest;
  for (const Unit& unit : kUnits) {
    if (unit.dimension != dimension) continue;
    if (base == nullptr || unit.factor == 1) base = &unit;
    const double magnitude = std::fabs(base_units) / unit.factor;
    if (magnitude < 1 || magnitude >= 1e5) continue;
    std::string candidate = with_unit(base_units, unit);
    if (shortest.empty() || candidate.size() < shortest.size()) shortest = std::move(candidate);
  }
  return shortest.empty() ? with_unit(base_units, *base) : shortest;
}

}  // namespace lockstep
