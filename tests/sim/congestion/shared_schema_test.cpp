// scenarios/congestion.schema.json against the reader: the same keys, and the same of them
// required.
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json sound_scenario() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 8, "fabric": "fat_tree"},
    "jobs": [{"name": "a", "nodes": {"count": 4}, "model": "llama3_8b",
              "batch": {"sequences": 32, "tokens": 8192}}],
    "background": [{"name": "b", "from": {"first": 4, "count": 2}, "to": [6], "size": "1 GB"}],
    "events": [{"at": "0 s", "fault": {"switch": "spine 0"}}]
  })");
}

InputProblem problem_of(const Json& scenario) {
  static const PresetStore presets;
  try {
    (void)read_shared_scenario(JsonCursor::parse("t.json", scenario.dump()), presets);
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

/// Where an object is in a scenario, and in the schema.
struct Place {
  std::string scenario, schema;
};
const std::vector<Place>& places() {
  static const std::vector<Place> all{{"", ""},
                                      {"/jobs/0", "/properties/jobs/items"},
                                      {"/background/0", "/properties/background/items"},
                                      {"/background/0/from", "/$defs/nodes/anyOf/1"},
                                      {"/events/0", "/properties/events/items"}};
  return all;
}

Json schema() {
  return Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/congestion.schema.json"));
}

}  // namespace

TEST_CASE("congestion schema: every object has exactly the keys that the reader knows") {
  CHECK(problem_of(sound_scenario()).found.empty());
  for (const Place& place : places()) {
    CAPTURE(place.scenario);
    Json scenario = sound_scenario();
    scenario[Json::json_pointer(place.scenario + "/zzz")] = 1;
    const InputProblem problem = problem_of(scenario);
    CHECK(problem.pointer == place.scenario + "/zzz");
    const std::string read = ", " + problem.allowed + ",";
    std::size_t keys = 0;
    const Json object = schema().at(Json::json_pointer(place.schema));
    for (const auto& [key, member] : object.at("properties").items()) {
      CAPTURE(key);
      CHECK(read.find(", " + key + ",") != std::string::npos);
      keys += key.size() + 2;
    }
    CHECK(read.size() == keys + 1);
  }
}

TEST_CASE("congestion schema: what it requires, the reader requires") {
  for (const Place& place : places()) {
    const Json object = schema().at(Json::json_pointer(place.schema));
    for (const Json& key : object.at("required")) {
      CAPTURE(place.scenario);
      CAPTURE(key);
      Json scenario = sound_scenario();
      scenario.at(Json::json_pointer(place.scenario)).erase(key.get<std::string>());
      CHECK(problem_of(scenario).found.starts_with("an object without " +
                                                   in_quotes(key.get<std::string>())));
    }
  }
}

}  // namespace lockstep
