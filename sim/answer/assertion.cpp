#include "sim/answer/assertion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/trimmed.hpp"
#include "sim/answer/fields.hpp"

namespace lockstep {
namespace {

struct OperatorInfo {
  std::string_view text;
  Assertion::Operator op;
};
// Two letters before one, so that ">=" is not read as ">".
constexpr std::array kOperators{OperatorInfo{">=", Assertion::Operator::at_least},
                                OperatorInfo{"<=", Assertion::Operator::at_most},
                                OperatorInfo{"==", Assertion::Operator::equal},
                                OperatorInfo{">", Assertion::Operator::above},
                                OperatorInfo{"<", Assertion::Operator::below}};

/// Names with dots between them.
bool is_path(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_0123456789.";
  return !text.empty() && text.find_first_not_of(kLetters) == std::string_view::npos &&
         text.front() != '.' && text.back() != '.' && text.find("..") == std::string_view::npos;
}

/// A member of an object, or the element of a list with this index or whose first member is this
/// name, as in "waterfall.pipeline_bubble.share". Null if there is none.
const nlohmann::ordered_json* step_into(const nlohmann::ordered_json& from,
                                        const std::string& name) {
  if (from.is_object()) {
    const auto member = from.find(name);
    return member == from.end() ? nullptr : &*member;
  }
  if (!from.is_array()) return nullptr;
  for (const nlohmann::ordered_json& element : from) {
    if (element.is_object() && !element.empty() && element.front() == name) return &element;
  }
  if (name.empty() || name.size() > 6 ||
      name.find_first_not_of("0123456789") != std::string::npos) {
    return nullptr;
  }
  const std::size_t index = std::stoul(name);
  return index < from.size() ? &from[index] : nullptr;
}

/// Energy and money, which scenarios do not write with units.
struct BoundUnit {
  std::string_view of, symbol;  ///< of numbers in this unit
  double factor;                ///< of it in one of these
};
constexpr std::array kBoundUnits{
    BoundUnit{"J", "J", 1},        BoundUnit{"J", "kJ", 1e3},      BoundUnit{"J", "MJ", 1e6},
    BoundUnit{"J", "kWh", 3.6e6},  BoundUnit{"J", "MWh", 3.6e9},   BoundUnit{"J", "GWh", 3.6e12},
    BoundUnit{"kWh", "kWh", 1},    BoundUnit{"kWh", "MWh", 1e3},   BoundUnit{"kWh", "GWh", 1e6},
    BoundUnit{"USD", "USD", 1},    BoundUnit{"USD", "k USD", 1e3}, BoundUnit{"USD", "M USD", 1e6},
    BoundUnit{"USD", "B USD", 1e9}};

/// What scenarios write numbers of a unit with, and one of the unit in its base unit.
struct BoundDimension {
  std::string_view unit;
  Dimension dimension;
  double base;
};
constexpr std::array kBoundDimensions{BoundDimension{"s", Dimension::time, 1},
                                      BoundDimension{"B", Dimension::data, 1},
                                      BoundDimension{"GiB", Dimension::data, 1073741824},
                                      BoundDimension{"B/s", Dimension::data_rate, 1},
                                      BoundDimension{"W", Dimension::power, 1},
                                      BoundDimension{"FLOP/s", Dimension::flops_rate, 1},
                                      BoundDimension{"TFLOP/s", Dimension::flops_rate, 1e12}};

/// The units that a bound on a number in `unit` may have, as a list; empty: none.
std::string bound_units(std::string_view unit) {
  const auto* const of = std::ranges::find(kBoundDimensions, unit, &BoundDimension::unit);
  if (of != kBoundDimensions.end()) return unit_list(of->dimension);
  std::vector<std::string_view> symbols;
  for (const BoundUnit& each : kBoundUnits) {
    if (each.of == unit) symbols.push_back(each.symbol);
  }
  return listed(std::span<const std::string_view>(symbols));
}

/// A number and what stands behind it; nothing: it is no number.
struct WrittenBound {
  double number = 0;
  std::string unit;
};
std::optional<WrittenBound> written_bound(std::string_view text) {
  const std::string copy(text);
  const std::size_t length = std::min(copy.find_first_not_of("0123456789.eE+-"), copy.size());
  const std::string digits = copy.substr(0, length);
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (length == 0 || end != digits.c_str() + length || !std::isfinite(value)) return std::nullopt;
  return WrittenBound{value, std::string(trimmed(std::string_view(copy).substr(length)))};
}

/// In the unit of the number that the path ends at; nothing: no number, or another unit.
std::optional<double> parse_bound(std::string_view text, std::string_view path) {
  const std::optional<WrittenBound> written = written_bound(text);
  if (!written) return std::nullopt;
  if (written->unit.empty()) return written->number;
  const std::string_view unit = unit_at(path);
  if (unit.empty()) {
    return written->unit == "%" ? std::optional(written->number / 100) : std::nullopt;
  }
  const auto* const of = std::ranges::find(kBoundDimensions, unit, &BoundDimension::unit);
  if (of != kBoundDimensions.end()) {
    const auto value = parse_quantity(text, of->dimension);
    if (const double* const base = std::get_if<double>(&value)) return *base / of->base;
    return std::nullopt;
  }
  for (const BoundUnit& each : kBoundUnits) {
    if (each.of == unit && each.symbol == written->unit) return written->number * each.factor;
  }
  return std::nullopt;
}

/// FIELD, operator and what is behind it, with nothing checked.
struct BoundParts {
  std::string field;
  Assertion::Operator op = Assertion::Operator::at_least;
  std::string bound;
};
std::optional<BoundParts> parts_of(std::string_view text) {
  for (const OperatorInfo& info : kOperators) {
    const std::size_t at = text.find(info.text);
    if (at == std::string::npos) continue;
    return BoundParts{.field = std::string(trimmed(text.substr(0, at))),
                      .op = info.op,
                      .bound = std::string(trimmed(text.substr(at + info.text.size())))};
  }
  return std::nullopt;
}

bool holds(Assertion::Operator op, double value, double bound) {
  switch (op) {
    case Assertion::Operator::at_least:
      return value >= bound;
    case Assertion::Operator::at_most:
      return value <= bound;
    case Assertion::Operator::above:
      return value > bound;
    case Assertion::Operator::below:
      return value < bound;
    case Assertion::Operator::equal:
      return value == bound;
  }
  return false;
}

/// As many digits as show that the bound is missed, at least six.
int digits_that_miss(const Assertion& assertion, double value) {
  constexpr int kLeast = 6, kMost = 17;
  const bool at_bound = value == assertion.bound;
  for (int digits = kLeast; digits < kMost && !at_bound; ++digits) {
    const double shown = std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr);
    if (shown != assertion.bound && !holds(assertion.op, shown, assertion.bound)) return digits;
  }
  return kLeast;
}

}  // namespace

const nlohmann::ordered_json* member_at(const nlohmann::ordered_json& result,
                                        std::string_view path) {
  const nlohmann::ordered_json* at = &result;
  while (!path.empty() && at != nullptr) {
    const std::size_t dot = path.find('.');
    at = step_into(*at, std::string(path.substr(0, dot)));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return at;
}

std::string_view operator_text(Assertion::Operator op) {
  return std::ranges::find(kOperators, op, &OperatorInfo::op)->text;
}

std::string assertion_form(std::string_view text) {
  const std::optional<BoundParts> parts = parts_of(text);
  const std::optional<WrittenBound> written =
      parts && is_path(parts->field) ? written_bound(parts->bound) : std::nullopt;
  if (written && !written->unit.empty()) {
    if (unit_at(parts->field).empty()) {
      return fmt::format("a number, or one with %: the name {} ends in no unit, as \"step_s\" does",
                         in_quotes(parts->field));
    }
    const std::string units = bound_units(unit_at(parts->field));
    return units.empty() ? fmt::format("a number without a unit for {}", in_quotes(parts->field))
                         : fmt::format("a number, or one with a unit that {} can have: {}",
                                       in_quotes(parts->field), units);
  }
  return "FIELD OPERATOR NUMBER with an operator of >=, <=, >, <, ==, such as \"mfu>=0.40\"";
}

std::optional<Assertion> try_assertion(const std::string& text) {
  const std::optional<BoundParts> parts = parts_of(text);
  if (!parts || !is_path(parts->field)) return std::nullopt;
  const std::optional<double> bound = parse_bound(parts->bound, parts->field);
  if (!bound) return std::nullopt;
  return Assertion{text, parts->field, parts->op, twelve_digits(*bound)};
}

bool is_null_at(const nlohmann::ordered_json& result, std::string_view path) {
  const nlohmann::ordered_json* const at = member_at(result, path);
  return at != nullptr && at->is_null();
}

std::optional<double> number_at(const nlohmann::ordered_json& result, std::string_view path) {
  const nlohmann::ordered_json* const at = member_at(result, path);
  if (at == nullptr) return std::nullopt;
  if (at->is_boolean()) return at->get<bool>() ? 1 : 0;
  if (!at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::vector<std::string> number_fields(const nlohmann::ordered_json& result) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : result.items()) {
    if (value.is_number()) fields.push_back(name);
  }
  return fields;
}

std::optional<std::string> missed_by(const Assertion& assertion, double value) {
  if (holds(assertion.op, value, assertion.bound)) return std::nullopt;
  const double off = value - assertion.bound;
  std::string by = fmt::format("{} by {}", off > 0 ? "above" : "below", significant(std::abs(off)));
  if (off == 0) by = "exactly at the bound";
  if (off != 0 && assertion.bound != 0) {
    by += fmt::format(" ({} %)", significant(100 * std::abs(off / assertion.bound)));
  }
  return fmt::format("{}: {} is {}, {}", assertion.text, assertion.field,
                     significant(value, digits_that_miss(assertion, value)), by);
}

}  // namespace lockstep
