// scenarios/scenario.schema.json against the reader: the same keys, choices and bounds.
#include <array>
#include <cstdio>
#include <doctest/doctest.h>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/spec_schemas.hpp"
#include "tests/support/mixer_examples.hpp"
#include "tests/support/same_schema.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Every object that a scenario can have, so that each can be given an unknown key.
const Json& full_scenario() {
  static const Json full = [] {
    Json out = Json::parse(R"({
    "model": {"preset": "gpt3_175b", "experts": {"count": 8, "per_token": 2, "ffn": 64},
      "latent_attention": {"key_value_rank": 64, "nope_dim": 64, "rope_dim": 32, "value_dim": 64},
      "low_rank": {"query_rank": 64, "output_groups": 8, "output_rank": 64},
      "vision_parameters": 1e9,
      "tower": {"layers": 1, "hidden": 64, "heads": 4, "ffn": 64, "patches": 16},
      "layers": 2, "pattern": "aa",
      "kinds": [{"letter": "a", "mixer": "convolution",
        "index": {"keys": 64, "heads": 4, "dim": 32},
        "convolution": {"in": 64, "out": 64, "kernel": 3}}]},
    "lora": {"rank": 8, "modules": ["qkv"]},
    "recompute": {"modules": ["mlp_up", "fused_attention"]},
    "offload": {},
    "frozen": {},
    "routing": {},
    "cluster": {
      "node": {"preset": "dgx_h100", "gpu": {
        "preset": "h100_sxm5_80gb", "gemm": {}, "memory": {}, "power": {},
        "attention": {"flash1": {}, "flash2": {}, "flash3": {}, "cudnn": {},
          "unfused": {"launch": 0, "efficiency": 0.5, "ramp_tokens": 1, "backward_ratio": 2}}},
        "chassis": {"preset": "hgx_hopper_air"}, "host": {},
        "transport": {"preset": "infiniband"}},
      "fabric": {"preset": "rail_optimised", "transport": {"preset": "infiniband"},
        "faults": [{"cables_missing": 1}]}},
    "parallelism": {},
    "batch": {"sequences": 8, "tokens": 64},
    "stack": {"preset": "megatron_core", "allow": ["schedules.zb_v"], "elementwise": {},
      "communication": {}, "memory": {}, "offload": {},
      "learnt": [{"gpu": "h100_sxm5_80gb", "experts": false, "adapters": false, "log_level": 0,
        "deviation": 0.1, "prior": 0.1, "steps": 1, "fewest_gpus": 8, "most_gpus": 8,
        "models": []}]},
    "training": {"tokens": 1e12},
    "price": {"usd_per_gpu_hour": 2},
    "power": {"facility": {"preset": "liquid"}, "smoothing": {"stagger": {}}},
    "cost": {},
    "stragglers": [{"gpu": 0, "slowdown": 2}],
    "expect": {}
  })");
    test::add_mixer_numbers(out["model"]);
    return out;
  }();
  return full;
}

const Json& schema() {
  static const Json document =
      Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/scenario.schema.json"));
  return document;
}

/// The same on nodes of two kinds: what a place of the schema is tried in.
const Json& scenario_with(const std::string& pointer) {
  static const Json pools = [] {
    Json out = full_scenario();
    const Json pool{{"node", "dgx_h100"}, {"nodes", 1}};
    out["cluster"] = {{"pools", {pool, {{"node", "dgx_h200"}, {"nodes", 1}}}}, {"across", "data"}};
    for (const char* key : {"power", "cost"}) out.erase(key);  // not for several kinds
    return out;
  }();
  const bool of_pools =
      pointer.starts_with("/cluster/pools") || pointer.starts_with("/cluster/across");
  return of_pools ? pools : full_scenario();
}

/// Of one that may be of several types: none.
std::string type_of(const Json& node) {
  const auto type = node.find("type");
  return type != node.end() && type->is_string() ? type->get<std::string>() : std::string();
}

/// Follows $ref, and takes the object among alternatives.
const Json& resolved(const Json& node) {
  if (node.contains("$ref")) {
    return resolved(schema().at(Json::json_pointer(node["$ref"].get<std::string>().substr(1))));
  }
  if (node.contains("anyOf")) {
    for (const Json& alternative : node["anyOf"]) {
      if (type_of(resolved(alternative)) == "object") return resolved(alternative);
    }
  }
  return node;
}

/// Objects of the schema by where they are in a scenario ("/cluster/node"), and other values.
struct Places {
  std::map<std::string, const Json*> objects;
  std::map<std::string, const Json*> values;
};

void collect(const Json& node, const std::string& pointer, Places& out) {
  const Json& here = resolved(node);
  if (type_of(here) == "object") {
    out.objects[pointer] = &here;
    for (const auto& [key, member] : here.at("properties").items()) {
      if (pointer.empty() && key == "run") continue;  // tests/sim/run/run_schema_test.cpp
      if (pointer == "/cluster/pools/0" && key == "node") continue;  // as /cluster/node
      if (pointer.empty() && key == "rl") continue;  // tests/sim/scenario/read_rl_test.cpp
      collect(member, pointer + "/" + key, out);
    }
  } else if (type_of(here) == "array") {
    collect(here.at("items"), pointer + "/0", out);
  } else {
    out.values[pointer] = &here;
  }
}

const Places& places() {
  static const Places all = [] {
    Places out;
    collect(schema(), "", out);
    return out;
  }();
  return all;
}

/// What the reader says about the full scenario with one value put in.
InputProblem problem_with(const std::string& pointer, const Json& value) {
  static const PresetStore presets;
  Json scenario = scenario_with(pointer);
  scenario[Json::json_pointer(pointer)] = value;
  try {
    (void)read_draft("plan.json", scenario.dump(), presets);
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

std::set<std::string> split_list(const std::string& list) {
  std::set<std::string> names;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(", ", start), list.size());
    names.insert(list.substr(start, end - start));
    start = end + 2;
  }
  return names;
}

std::string as_json_number(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", value);
  return buffer.data();
}

}  // namespace

TEST_CASE("schema: every object has exactly the keys that the reader knows") {
  CHECK(places().objects.size() > 15);
  for (const auto& [pointer, object] : places().objects) {
    CAPTURE(pointer);
    CHECK(object->value("additionalProperties", true) == false);
    REQUIRE(scenario_with(pointer).contains(Json::json_pointer(pointer)));
    const InputProblem problem = problem_with(pointer + "/zzz", 1);
    CHECK(problem.pointer == pointer + "/zzz");
    const std::set<std::string> read = split_list(problem.allowed);
    // An error lists forty names and counts the others.
    std::size_t listed = 0, others = 0;
    for (const std::string& key : read) {
      CAPTURE(key);
      if (key.starts_with("and ") && key.ends_with(" more")) {
        others = static_cast<std::size_t>(std::stoi(key.substr(4)));
        continue;
      }
      ++listed;
      CHECK_MESSAGE(object->at("properties").contains(key), "the schema lacks it");
    }
    CHECK(listed + others == object->at("properties").size());
    for (const auto& [key, member] : object->at("properties").items()) {
      CAPTURE(key);
      if (read.contains(key)) continue;
      REQUIRE_MESSAGE(others > 0, "the reader does not know it");
      // A list of lists is no member's value.
      const InputProblem about = problem_with(pointer + "/" + key, Json::parse("[[[]]]"));
      CHECK_MESSAGE(about.allowed != problem.allowed, "the reader does not know it");
    }
  }
}

TEST_CASE("schema: what it requires, the reader requires") {
  int required = 0;
  for (const auto& [pointer, object] : places().objects) {
    for (const Json& key : object->value("required", Json::array())) {
      Json without = scenario_with(pointer).at(Json::json_pointer(pointer));
      without.erase(key.get<std::string>());
      CAPTURE(pointer);
      CAPTURE(key);
      const InputProblem problem = problem_with(pointer, without);
      CHECK(problem.found.starts_with("an object without " + in_quotes(key.get<std::string>())));
      ++required;
    }
  }
  CHECK(required > 5);
}

TEST_CASE("schema: what the readers declare is what it says, word for word") {
  Json written = schema();
  // What chooses the values that the other members change; and rules between members.
  for (const char* const choosing :
       {"/properties/model/anyOf/1/properties/huggingface",
        "/properties/stack/anyOf/1/properties/release",
        "/properties/stack/anyOf/1/properties/allow", "/$defs/transport/anyOf/1/properties/preset",
        "/$defs/storage/anyOf/1/properties/preset", "/$defs/storage/anyOf/1/anyOf",
        "/$defs/reliability/anyOf", "/properties/cluster/anyOf/1/anyOf",
        "/properties/expect/dependentRequired"}) {
    const Json::json_pointer place(choosing);
    REQUIRE_MESSAGE(written.contains(place), choosing);
    written.at(place.parent_pointer()).erase(place.back());
  }
  for (const char* const of_file : {"$schema", "title"}) written.erase(of_file);
  const Json declared = spec_schemas(PresetStore{});
  CHECK(declared.size() == 6);
  for (const auto& [place, object] : declared.items()) {
    Json of_file = written.at(Json::json_pointer(place));
    if (place.empty()) of_file.erase("$defs");
    of_file.erase("description");
    test::check_same_schema(place, object, of_file);
  }
}

TEST_CASE("schema: every value has the choices and bounds of the reader") {
  int choices = 0, bounds = 0;
  for (const auto& [pointer, value] : places().values) {
    CAPTURE(pointer);
    if (value->contains("enum")) {
      std::set<std::string> names;
      for (const Json& name : value->at("enum")) names.insert(name.get<std::string>());
      const InputProblem problem = problem_with(pointer, "zzz");
      CHECK(problem.pointer == pointer);
      CHECK(split_list(problem.allowed) == names);
      ++choices;
    }
    if (value->contains("maximum")) {
      const bool whole = value->at("type") == "integer";
      const double high = value->at("maximum").get<double>();
      const std::string rule = std::string(whole ? "a whole number" : "a number") + " from " +
                               as_json_number(value->at("minimum").get<double>()) + " to " +
                               as_json_number(high);
      const InputProblem problem = problem_with(pointer, high * 2 + 1);
      CHECK(problem.pointer == pointer);
      if (whole && high >= 1e9) continue;
      CHECK(problem.allowed == rule);
      ++bounds;
    }
  }
  CHECK(choices > 5);
  CHECK(bounds > 40);
}

TEST_CASE("schema: a quantity takes the units that the parser takes, and no others") {
  const std::map<std::string, Dimension> dimensions{
      {"time", Dimension::time},           {"data", Dimension::data},
      {"data_rate", Dimension::data_rate}, {"compute_rate", Dimension::flops_rate},
      {"power", Dimension::power},         {"share", Dimension::share},
      {"count", Dimension::count}};
  for (const auto& [name, dimension] : dimensions) {
    CAPTURE(name);
    const Json& text = schema().at("$defs").at(name).at("anyOf").at(1);
    const std::regex pattern(text.at("pattern").get<std::string>());
    for (const std::span<const Unit> table : {units(), unit_words()}) {
      for (const Unit& unit : table) {
        CAPTURE(unit.symbol);
        const std::string quantity = "1.5e3 " + std::string(unit.symbol);
        const bool read = std::holds_alternative<double>(parse_quantity(quantity, dimension));
        CHECK(std::regex_match(quantity, pattern) == read);
      }
    }
    CHECK_FALSE(std::regex_match("1.5 furlongs", pattern));
  }
}

}  // namespace lockstep
