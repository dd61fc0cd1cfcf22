#include "sim/answer/fields.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct NameEnd {
  std::string_view end, unit;
};
// Longer ends before those that they end in.
constexpr std::array kNameEnds{
    NameEnd{"_bytes_per_s", "B/s"},
    NameEnd{"_bytes_per_day", "B/day"},
    NameEnd{"_w_per_s", "W/s"},
    NameEnd{"_mw_per_s", "MW/s"},
    NameEnd{"tokens_per_s_per_gpu", "tokens/s"},
    NameEnd{"tokens_per_s_per_user", "tokens/s"},
    NameEnd{"tokens_per_s", "tokens/s"},
    NameEnd{"requests_per_s", "1/s"},
    NameEnd{"tflops_per_gpu_causal", "TFLOP/s"},
    NameEnd{"tflops_per_gpu", "TFLOP/s"},
    NameEnd{"flops_per_gpu", "FLOP/s"},
    NameEnd{"peak_flops", "FLOP/s"},
    NameEnd{"joules_per_token", "J"},
    NameEnd{"joules_per_output_token", "J"},
    NameEnd{"joules", "J"},
    NameEnd{"usd_per_gpu_hour", "USD/h"},
    NameEnd{"usd_per_hour", "USD/h"},
    NameEnd{"usd_per_held_gpu_hour", "USD/h"},
    NameEnd{"usd_per_saved_hour", "USD/h"},
    NameEnd{"usd_per_month", "USD/month"},
    NameEnd{"usd_per_kwh", "USD/kWh"},
    NameEnd{"usd_per_node", "USD"},
    NameEnd{"usd_per_million_tokens", "USD"},
    NameEnd{"usd_per_million_output_tokens", "USD"},
    NameEnd{"usd_per_trillion_tokens", "USD"},
    NameEnd{"usd_per_eflop", "USD"},
    NameEnd{"gpu_hours", "h"},
    NameEnd{"saved_hours", "h"},
    NameEnd{"tonnes_co2", "t"},
    NameEnd{"co2_t", "t"},
    NameEnd{"celsius", "degC"},
    NameEnd{"_gib_least", "GiB"},
    NameEnd{"_gib_most", "GiB"},
    NameEnd{"_s_p05", "s"},
    NameEnd{"_s_p95", "s"},
    NameEnd{"_usd_p05", "USD"},
    NameEnd{"_usd_p95", "USD"},
    NameEnd{"_s_low", "s"},
    NameEnd{"_s_high", "s"},
    NameEnd{"_low_s", "s"},
    NameEnd{"_high_s", "s"},
    NameEnd{"seconds", "s"},
    NameEnd{"bytes", "B"},
    NameEnd{"_gib", "GiB"},
    NameEnd{"_kwh", "kWh"},
    NameEnd{"_usd", "USD"},
    NameEnd{"usd", "USD"},
    NameEnd{"_w", "W"},
    NameEnd{"_j", "J"},
    NameEnd{"_s", "s"},
};

/// What the end of a number's name says.
std::string_view name_unit(std::string_view name) {
  for (const NameEnd& known : kNameEnds) {
    if (name.ends_with(known.end)) return known.unit;
  }
  return {};
}

Json value_type(const FieldInfo& field) {
  const auto type = [&](const char* name) -> Json {
    if (!field.nullable) return {{"type", name}};
    return {{"type", {name, "null"}}};
  };
  switch (field.kind) {
    case FieldKind::number:
      return type("number");
    case FieldKind::integer:
      return type("integer");
    case FieldKind::flag:
      return type("boolean");
    case FieldKind::text:
      if (!field.constant.empty()) return {{"const", field.constant}};
      return type("string");
    case FieldKind::texts:
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
    case FieldKind::numbers:
      return {{"type", "array"}, {"items", {{"type", "number"}}}};
    case FieldKind::named_numbers:
      return {{"type", "object"}, {"additionalProperties", {{"type", "number"}}}};
    case FieldKind::object: {
      Json object = object_schema(field.members);
      if (field.nullable) object["type"] = {"object", "null"};
      return object;
    }
    case FieldKind::objects:
      return {{"type", "array"}, {"items", object_schema(field.members)}};
    case FieldKind::named_objects:
      return {{"type", "object"}, {"additionalProperties", object_schema(field.members)}};
    case FieldKind::any:
      break;
  }
  return Json::object();
}

std::string described(const FieldInfo& field) {
  if (!field.successor.empty()) return "An old name of \"" + field.successor + "\".";
  const std::string_view unit = field.unit();
  return field.sentence + (unit.empty() ? "" : " Unit: " + std::string(unit) + ".");
}

}  // namespace

std::string_view FieldInfo::unit() const {
  if (!is_number() && kind != FieldKind::numbers && kind != FieldKind::named_numbers) return {};
  return name_unit(name);
}

std::string FieldInfo::title() const {
  std::string out = name;
  for (const NameEnd& known : kNameEnds) {
    if (known.end.starts_with('_') && !unit().empty() && out.ends_with(known.end)) {
      out.resize(out.size() - known.end.size());
      break;
    }
  }
  std::ranges::replace(out, '_', ' ');
  // nccl-tests' own word is of its tables.
  if (const std::size_t bus = out.find("busbw"); bus != std::string::npos) {
    out.replace(bus, 5, "bus bandwidth");
  }
  // "MFU causal", "TTFT p99".
  constexpr std::array<std::string_view, 9> kAcronyms{"mfu", "hfu", "ttft", "tpot", "itl",
                                                      "pue", "kv",  "usd",  "nic"};
  const std::size_t first = std::min(out.find(' '), out.size());
  if (std::ranges::find(kAcronyms, std::string_view(out).substr(0, first)) != kAcronyms.end()) {
    for (std::size_t i = 0; i < first; ++i) out[i] = static_cast<char>(out[i] - 'a' + 'A');
  }
  return out;
}

const FieldInfo* field_at(std::span<const FieldInfo> fields, std::string_view path) {
  const std::size_t dot = path.find('.');
  for (const FieldInfo& field : fields) {
    if (field.name != path.substr(0, dot)) continue;
    if (dot == std::string_view::npos) return &field;
    std::string_view rest = path.substr(dot + 1);
    if (field.kind == FieldKind::objects || field.kind == FieldKind::named_objects) {
      const std::size_t next = rest.find('.');
      if (next == std::string_view::npos) return nullptr;
      rest = rest.substr(next + 1);
    }
    return field_at(field.members, rest);
  }
  return nullptr;
}

std::string_view unit_at(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const std::string_view own = name_unit(path.substr(dot + 1));
  if (!own.empty() || dot == std::string_view::npos) return own;
  const std::string_view around = path.substr(0, dot);
  return name_unit(around.substr(around.rfind('.') + 1));
}

nlohmann::ordered_json object_schema(std::span<const FieldInfo> fields) {
  Json properties = Json::object(), required = Json::array();
  for (const FieldInfo& field : fields) {
    Json property = value_type(field);
    property["description"] = described(field);
    if (!field.successor.empty()) property["deprecated"] = true;
    if (field.always) required.push_back(field.name);
    properties[field.name] = std::move(property);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

}  // namespace lockstep
