#include "models/base/write_json.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

template <class Value>
std::string written(const Value& value, int indent, JsonLetters letters) {
  return value.dump(indent, ' ', letters == JsonLetters::ascii, Value::error_handler_t::replace);
}

}  // namespace

std::string write_json(const nlohmann::ordered_json& value, int indent, JsonLetters letters) {
  return written(value, indent, letters);
}
std::string write_json(const nlohmann::json& value, int indent, JsonLetters letters) {
  return written(value, indent, letters);
}
std::string json_string(std::string_view text, JsonLetters letters) {
  return written(nlohmann::json(text), -1, letters);
}

}  // namespace lockstep
