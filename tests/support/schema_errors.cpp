#include "tests/support/schema_errors.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

class Validator {
 public:
  explicit Validator(const Json& root) : root_(root) {}

  void check(const Json& schema, const Json& value, const std::string& at,
             std::vector<std::string>& errors) const {
    if (const auto ref = schema.find("$ref"); ref != schema.end()) {
      const Json::json_pointer pointer(ref->get<std::string>().substr(1));
      return check(root_.at(pointer), value, at, errors);
    }
    if (const auto one = schema.find("oneOf"); one != schema.end()) {
      return check_one_of(*one, value, at, errors);
    }
    if (const auto constant = schema.find("const");
        constant != schema.end() && *constant != value) {
      errors.push_back(at + ": is not " + constant->dump());
    }
    if (const auto type = schema.find("type"); type != schema.end() && !is_of(*type, value)) {
      errors.push_back(at + ": is " + value.type_name() + ", not " + type->dump());
      return;
    }
    if (value.is_object()) check_object(schema, value, at, errors);
    const auto items = schema.find("items");
    if (!value.is_array() || items == schema.end()) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      check(*items, value[i], at + "/" + std::to_string(i), errors);
    }
  }

 private:
  static bool is_of(const Json& type, const Json& value) {
    if (type.is_array()) {
      return std::ranges::any_of(type, [&](const Json& each) { return is_of(each, value); });
    }
    const auto name = type.get<std::string>();
    if (name == "integer") return value.is_number_integer();
    return name == value.type_name();
  }
  void check_one_of(const Json& schemas, const Json& value, const std::string& at,
                    std::vector<std::string>& errors) const {
    int fitting = 0;
    std::vector<std::string> nearest;
    for (const Json& schema : schemas) {
      std::vector<std::string> of_this;
      check(schema, value, at, of_this);
      if (of_this.empty()) ++fitting;
      if (nearest.empty() || of_this.size() < nearest.size()) nearest = std::move(of_this);
    }
    if (fitting > 1) errors.push_back(at + ": fits several schemas");
    if (fitting == 0) errors.insert(errors.end(), nearest.begin(), nearest.end());
  }
  void check_object(const Json& schema, const Json& value, const std::string& at,
                    std::vector<std::string>& errors) const {
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) {
        errors.push_back(at + ": lacks " + key.get<std::string>());
      }
    }
    const Json properties = schema.value("properties", Json::object());
    const Json others = schema.value("additionalProperties", Json(true));
    for (const auto& [key, member] : value.items()) {
      std::string place = at;
      place += "/" + key;
      if (const auto known = properties.find(key); known != properties.end()) {
        check(*known, member, place, errors);
      } else if (others.is_object()) {
        check(others, member, place, errors);
      } else if (!others.get<bool>()) {
        errors.push_back(place + ": is no member");
      }
    }
  }

  const Json& root_;
};

}  // namespace

std::vector<std::string> schema_errors(const Json& schema, const Json& value) {
  std::vector<std::string> errors;
  Validator(schema).check(schema, value, "", errors);
  return errors;
}

}  // namespace lockstep::test
