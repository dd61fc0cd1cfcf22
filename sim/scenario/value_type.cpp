#include "sim/scenario/value_type.hpp"

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json reference(std::string_view name) { return {{"$ref", "#/$defs/" + std::string(name)}}; }

/// A bound as people write it: whole where it is.
Json bound(double value) {
  constexpr double kExact = 1e15;
  const auto whole = static_cast<std::int64_t>(value >= -kExact && value <= kExact ? value : 0);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

/// Adds the bounds to a schema of numbers.
Json bounded(Json out, const Interval& allowed) {
  out[allowed.above_low ? "exclusiveMinimum" : "minimum"] = bound(allowed.low);
  out["maximum"] = bound(allowed.high);
  if (!allowed.or_zero) return out;
  return {{"anyOf", {{{"const", 0}}, std::move(out)}}};
}

Json number_schema(const Interval& allowed) { return bounded({{"type", "number"}}, allowed); }

/// A type of its own; the bounds hold for what is written as a number.
Json quantity_schema(const ValueType& type, QuantityBounds bounds) {
  Json out = reference(quantity_name(type.dimension));
  if (bounds == QuantityBounds::said) out.update(bounded(Json::object(), type.allowed));
  return out;
}

Json list_schema(const ValueType& type, QuantityBounds bounds) {
  Json out{{"type", "array"}, {"items", schema_of(*type.items, bounds)}};
  if (type.fewest > 0) out["minItems"] = type.fewest;
  out["maxItems"] = type.most;
  return out;
}

}  // namespace

std::string_view quantity_name(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "time";
    case Dimension::data:
      return "data";
    case Dimension::data_rate:
      return "data_rate";
    case Dimension::flops_rate:
      return "compute_rate";
    case Dimension::power:
      return "power";
    case Dimension::count:
      return "count";
    case Dimension::share:
      return "share";
  }
  assert(false);
  return {};
}

Json schema_of(const ValueType& type, QuantityBounds bounds) {
  switch (type.kind) {
    case ValueType::Kind::text:
      return {{"type", "string"}};
    case ValueType::Kind::boolean:
      return {{"type", "boolean"}};
    case ValueType::Kind::integer:
      return {{"type", "integer"}, {"minimum", type.low}, {"maximum", type.high}};
    case ValueType::Kind::number:
      return number_schema(type.allowed);
    case ValueType::Kind::quantity:
      return quantity_schema(type, bounds);
    case ValueType::Kind::choice: {
      Json out{{"enum", Json::array()}};
      for (const std::string_view name : type.names) out["enum"].push_back(name);
      return out;
    }
    case ValueType::Kind::list:
      return list_schema(type, bounds);
    case ValueType::Kind::shared:
      return reference(type.text);
    case ValueType::Kind::written:
      return Json::parse(type.text);
  }
  assert(false);
  return {};
}

}  // namespace lockstep
