#include <utility>

#include <nlohmann/json.hpp>

#include "sim/answer/answer.hpp"
#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json version_schema() {
  return {{"type", "string"}, {"description", "Version of the program that wrote the answer."}};
}

/// An answer of a kind, as the program prints it.
Json answer_schema(AnswerKind kind) {
  Json out = object_schema(answer_fields(kind));
  Json properties{{"lockstep_version", version_schema()}};
  properties.update(out["properties"]);
  out["properties"] = std::move(properties);
  return out;
}

Json error_schema() {
  const auto text = [](const char* description) -> Json {
    return {{"type", {"string", "null"}}, {"description", description}};
  };
  const Json parts{{"place", text("The file and the JSON pointer, or the option.")},
                   {"found", text("What was found there.")},
                   {"allowed", text("What is allowed.")},
                   {"nearest", text("The nearest name that is allowed.")}};
  const Json names{"place", "found", "allowed", "nearest"};
  const Json other{{"type", "object"},
                   {"properties", parts},
                   {"required", names},
                   {"additionalProperties", false}};
  Json error{{"type", "object"},
             {"properties", parts},
             {"required", names},
             {"additionalProperties", false}};
  error["properties"]["message"] = {{"type", "string"},
                                    {"description", "All of it, a line for each mistake."}};
  error["properties"]["also"] = {
      {"type", "array"}, {"description", "Further mistakes in the same file."}, {"items", other}};
  for (const char* name : {"message", "also"}) error["required"].push_back(name);
  return {{"type", "object"},
          {"properties",
           {{"lockstep_version", version_schema()},
            {"schema",
             {{"const", std::string(kResultSchema)},
              {"description", "Version of the names in this error."}}},
            {"error", std::move(error)}}},
          {"required", {"lockstep_version", "schema", "error"}},
          {"additionalProperties", false}};
}

}  // namespace

nlohmann::ordered_json result_schema() {
  Json kinds = Json::array(), definitions = Json::object();
  for (const AnswerKind kind : kAnswerKinds) {
    const std::string name(name_of(kind));
    definitions[name] = answer_schema(kind);
    kinds.push_back({{"$ref", "#/$defs/" + name}});
  }
  definitions["error"] = error_schema();
  kinds.push_back({{"$ref", "#/$defs/error"}});
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", std::string(kResultSchema)},
          {"description",
           "What `lockstep run --format json` prints: the answer to a scenario of one step, of a "
           "run, of several jobs, of reinforcement learning or of a queue, or an error. Generated "
           "from the "
           "tables of sim/answer; the number in the title rises when a name or its meaning "
           "changes."},
          {"oneOf", std::move(kinds)},
          {"$defs", std::move(definitions)}};
}

}  // namespace lockstep
