#include "sim/answer/assertion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/trimmed.hpp"

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

std::optional<double> parse_bound(std::string text) {
  const bool percent = !text.empty() && text.back() == '%';
  if (percent) text = std::string(trimmed(std::string_view(text).substr(0, text.size() - 1)));
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string::npos) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !std::isfinite(value)) return std::nullopt;
  return percent ? value / 100 : value;
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

std::string_view assertion_form() {
  return "FIELD OPERATOR NUMBER with an operator of >=, <=, >, <, ==, such as \"mfu>=0.40\"";
}

std::optional<Assertion> try_assertion(const std::string& text) {
  for (const OperatorInfo& info : kOperators) {
    const std::size_t at = text.find(info.text);
    if (at == std::string::npos) continue;
    const std::string field(trimmed(std::string_view(text).substr(0, at)));
    const auto bound =
        parse_bound(std::string(trimmed(std::string_view(text).substr(at + info.text.size()))));
    if (!is_path(field) || !bound) break;
    return Assertion{text, field, info.op, twelve_digits(*bound)};
  }
  return std::nullopt;
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
  return fmt::format("{}: {} is {}, {}", assertion.text, assertion.field, significant(value, 6),
                     by);
}

}  // namespace lockstep
