/// What the value of a member may be, as a JSON Schema says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/quantity.hpp"

namespace lockstep {

/// A type of value. It refers to the names and types that it is made of, which must outlive it.
struct ValueType {
  enum class Kind : std::uint8_t {
    text,
    boolean,
    integer,
    number,
    quantity,  ///< a number in base units, or a string with a unit
    choice,    ///< one of `names`
    list,      ///< `fewest` to `most` values of type `items`
    shared,    ///< one that the schema defines once, under "$defs"
    written,   ///< JSON Schema, as it stands
  };

  Kind kind = Kind::text;
  int low = 0, high = 0;  ///< of an integer
  Interval allowed = {};  ///< of a number or a quantity
  Dimension dimension = Dimension::time;
  std::span<const std::string_view> names = {};
  const ValueType* items = nullptr;
  std::size_t fewest = 0, most = 0;
  std::string_view text = {};  ///< name of a shared type, or the schema as it is written
};

constexpr ValueType text_type() { return {.kind = ValueType::Kind::text}; }
constexpr ValueType boolean_type() { return {.kind = ValueType::Kind::boolean}; }
constexpr ValueType integer_type(int low, int high) {
  return {.kind = ValueType::Kind::integer, .low = low, .high = high};
}
constexpr ValueType number_type(const Interval& allowed) {
  return {.kind = ValueType::Kind::number, .allowed = allowed};
}
constexpr ValueType quantity_type(Dimension dimension, const Interval& allowed) {
  return {.kind = ValueType::Kind::quantity, .allowed = allowed, .dimension = dimension};
}
constexpr ValueType choice_type(std::span<const std::string_view> names) {
  return {.kind = ValueType::Kind::choice, .names = names};
}
constexpr ValueType list_type(const ValueType& items, std::size_t most, std::size_t fewest = 0) {
  return {.kind = ValueType::Kind::list, .items = &items, .fewest = fewest, .most = most};
}
constexpr ValueType shared_type(std::string_view name) {
  return {.kind = ValueType::Kind::shared, .text = name};
}
constexpr ValueType written_type(std::string_view schema) {
  return {.kind = ValueType::Kind::written, .text = schema};
}

/// Whether a schema says the bounds of quantities, in base units, beside their shared type. The
/// files in scenarios/ do not.
enum class QuantityBounds : std::uint8_t { left_out, said };

/// The JSON Schema of the type; quantities are shared types that are called as `quantity_name()`.
nlohmann::ordered_json schema_of(const ValueType& type,
                                 QuantityBounds bounds = QuantityBounds::left_out);
/// "time", "data_rate", ...: the shared type of a quantity.
std::string_view quantity_name(Dimension dimension);

}  // namespace lockstep
