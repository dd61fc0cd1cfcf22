#include "sim/scenario/declared_members.hpp"

#include <cassert>
#include <utility>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Makes `schema` that of an object without members.
Json& empty_object(Json& schema) {
  schema["type"] = "object";
  schema["properties"] = Json::object();
  schema["additionalProperties"] = false;
  return schema;
}

Json named_preset(std::string_view sentence, std::string_view kind) {
  return {{"description", std::string(sentence) + ": lockstep list " + std::string(kind)},
          {"type", "string"}};
}

}  // namespace

DeclaredMembers::DeclaredMembers(Json& schema, Extent extent, QuantityBounds bounds)
    : schema_(&schema), extent_(extent), bounds_(bounds) {
  if (!schema.contains("properties")) empty_object(schema);
}

DeclaredMembers DeclaredMembers::writing(Json& object) {
  DeclaredMembers out;
  out.written_ = &object;
  if (object.is_null()) object = Json::object();
  return out;
}

void DeclaredMembers::write(Key key, const Json& value) const {
  if (!value.is_null()) (*written_)[std::string(key.name)] = value;
}
void DeclaredMembers::write(Key key, double value) const { write(key, Json(value)); }
void DeclaredMembers::write(Key key, int value) const { write(key, Json(value)); }
void DeclaredMembers::write(Key key, bool value) const { write(key, Json(value)); }
void DeclaredMembers::write(Key key, std::string_view value) const {
  if (!value.empty()) write(key, Json(value));
}
Json& DeclaredMembers::object_in(Key key) const { return (*written_)[std::string(key.name)]; }
Json& DeclaredMembers::item_in(Key key) const {
  return (*written_)[std::string(key.name)].emplace_back();
}

Json& DeclaredMembers::property(Key key, std::string_view sentence) const {
  assert(schema_ != nullptr);
  if (key.required && extent_ == Extent::whole) (*schema_)["required"].push_back(key.name);
  Json& out = (*schema_)["properties"][std::string(key.name)];
  assert(out.is_null());  // a key is declared once
  if (!sentence.empty()) out["description"] = sentence;
  return out;
}

void DeclaredMembers::describe(Key key, const ValueType& type, std::string_view sentence) const {
  property(key, sentence).update(schema_of(type, bounds_));
}

Json& DeclaredMembers::describe_object(Key key, std::string_view sentence) const {
  return empty_object(property(key, sentence));
}

Json& DeclaredMembers::describe_list(Key key, std::size_t most, std::string_view sentence,
                                     std::string_view item_sentence) const {
  Json& out = property(key, sentence);
  out["type"] = "array";
  out["items"] = Json::object();
  if (!item_sentence.empty()) out["items"]["description"] = item_sentence;
  out["maxItems"] = most;
  return empty_object(out["items"]);
}

Json& DeclaredMembers::describe_preset(Key key, std::string_view kind, std::string_view sentence,
                                       std::string_view object_sentence) const {
  Json& out = property(key, sentence);
  out["anyOf"] = {named_preset("Name of a preset", kind), {{"description", object_sentence}}};
  Json& object = empty_object(out["anyOf"][1]);
  object["properties"]["preset"] = named_preset("Preset to start from", kind);
  return object;
}

}  // namespace lockstep
