#include "sim/answer/value.hpp"

#include <cassert>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
  Json operator()(std::monostate) const {
    assert(false);
    return nullptr;
  }
  Json operator()(NoValue) const { return nullptr; }
  Json operator()(bool flag) const { return flag; }
  Json operator()(std::int64_t whole) const { return whole; }
  Json operator()(double number) const { return twelve_digits(number); }
  Json operator()(const std::string& text) const { return text; }
  Json operator()(const Value::List& list) const {
    Json out = Json::array();
    for (const Value& element : list) out.push_back(element.json());
    return out;
  }
  Json operator()(const Value::Object& object) const {
    Json out = Json::object();
    for (const auto& [name, value] : object) out[name] = value.json();
    return out;
  }
  Json operator()(const std::shared_ptr<const Json>& document) const { return *document; }
};

}  // namespace

Value::Value(const std::vector<std::string>& texts) : of_(List(texts.begin(), texts.end())) {}
Value::Value(const std::vector<double>& numbers) : of_(List(numbers.begin(), numbers.end())) {}
Value::Value(const NamedNumbers& numbers) : of_(Object(numbers.begin(), numbers.end())) {}

Value::Value(AllDigits exact) : of_(std::make_shared<const Json>(exact.number)) {}

Value Value::document(nlohmann::ordered_json json) {
  Value out;
  out.of_ = std::make_shared<const Json>(std::move(json));
  return out;
}

std::optional<double> Value::number() const {
  if (const double* number = std::get_if<double>(&of_)) return *number;
  if (const std::int64_t* whole = std::get_if<std::int64_t>(&of_)) {
    return static_cast<double>(*whole);
  }
  if (const bool* flag = std::get_if<bool>(&of_)) return *flag ? 1 : 0;
  return std::nullopt;
}

nlohmann::ordered_json Value::json() const { return std::visit(ToJson{}, of_); }

}  // namespace lockstep
