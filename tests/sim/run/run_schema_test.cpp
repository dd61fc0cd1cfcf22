// "run" in scenarios/scenario.schema.json against its reader: the same keys, and the same required.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json sound_run() {
  return Json::parse(R"({
    "duration": "10 d",
    "reliability": {"observed": {"gpus": 8, "time": "1 d"},
                    "modes": [{"name": "a", "component": "gpu", "count": 1}]},
    "checkpoint": {"interval": "1 h", "storage": {"write": "1 GB/s", "read": "1 GB/s"}},
    "data": {"bytes_per_token": 4, "storage": {"write": "1 GB/s", "read": "1 GB/s"}},
    "recovery": {},
    "spares": {}
  })");
}

InputProblem problem_of_run(const Json& run) {
  static const PresetStore presets;
  try {
    (void)read_run_spec(JsonCursor::parse("t.json", run.dump()), presets);
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

struct Place {
  std::string run, schema;
};
const std::vector<Place>& run_places() {
  static const std::vector<Place> all{
      {"", "/properties/run"},
      {"/reliability", "/$defs/reliability"},
      {"/reliability/observed", "/$defs/reliability/properties/observed"},
      {"/reliability/modes/0", "/$defs/reliability/properties/modes/items"},
      {"/checkpoint", "/$defs/checkpoint"},
      {"/checkpoint/storage", "/$defs/storage/anyOf/1"},
      {"/data", "/properties/run/properties/data"},
      {"/recovery", "/properties/run/properties/recovery"},
      {"/spares", "/properties/run/properties/spares"}};
  return all;
}

Json scenario_schema() {
  return Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/scenario.schema.json"));
}

}  // namespace

TEST_CASE("run schema: every object has exactly the keys that the reader knows") {
  CHECK(problem_of_run(sound_run()).found.empty());
  for (const Place& place : run_places()) {
    CAPTURE(place.run);
    Json run = sound_run();
    // Keys that are known only with others.
    if (place.run == "/reliability/modes/0") {
      run["reliability"]["modes"][0]["effect"] = "slow";
      run["reliability"]["modes"][0]["slowdown"] = 2;
      run["reliability"]["modes"][0]["found_after"] = 2;
    }
    if (place.run == "/checkpoint") {
      run["checkpoint"]["to"] = "local";
      run["checkpoint"]["drive"] = "1 GB/s";
      run["checkpoint"].erase("storage");
    }
    run[Json::json_pointer(place.run + "/zzz")] = 1;
    const InputProblem problem = problem_of_run(run);
    CHECK(problem.pointer == place.run + "/zzz");
    const std::string read = ", " + problem.allowed + ",";
    const Json object = scenario_schema().at(Json::json_pointer(place.schema));
    std::size_t known = 0;
    for (const auto& [key, member] : object.at("properties").items()) {
      CAPTURE(key);
      CHECK(read.find(", " + key + ",") != std::string::npos);
      known += key.size() + 2;
    }
    CHECK(read.size() == known + 1);
  }
}

TEST_CASE("run schema: what it requires, the reader requires") {
  // What is required of one of several forms stands in that form: rates without a log, storage as
  // the sum of its servers.
  std::vector<Place> places = run_places();
  places.push_back({"/reliability", "/$defs/reliability/anyOf/0"});
  places.push_back({"/reliability/modes/0", "/$defs/reliability/anyOf/0/properties/modes/items"});
  places.push_back({"/checkpoint/storage", "/$defs/storage/anyOf/1/anyOf/1"});
  int required = 0;
  for (const Place& place : places) {
    const Json object = scenario_schema().at(Json::json_pointer(place.schema));
    for (const Json& key : object.value("required", Json::array())) {
      CAPTURE(place.run);
      CAPTURE(key);
      Json run = sound_run();
      run.at(Json::json_pointer(place.run)).erase(key.get<std::string>());
      CHECK(problem_of_run(run).found.starts_with("an object without " +
                                                  in_quotes(key.get<std::string>())));
      ++required;
    }
  }
  CHECK(required >= 9);
}

}  // namespace lockstep
