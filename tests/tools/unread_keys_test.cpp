// No command takes a scenario file with a key that it does not know.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Objects of every kind that the commands share.
const Json& scenario_of_objects() {
  static const Json scenario = Json::parse(R"({
    "model": {"preset": "llama3_8b"},
    "cluster": {
      "node": {"preset": "dgx_h100", "gpu": {"preset": "h100_sxm5_80gb", "gemm": {}, "memory": {}},
               "chassis": {"preset": "hgx_hopper_air"}, "transport": {"preset": "infiniband"},
               "host": {"memory": "2 TB", "bandwidth": "600 GB/s"}},
      "nodes": 2,
      "fabric": {"preset": "rail_optimised", "transport": {"preset": "infiniband"}}},
    "parallelism": {"sharding": "zero1"},
    "batch": {"sequences": 64, "tokens": 4096},
    "recompute": {"modules": ["core_attention"]},
    "offload": {},
    "frozen": {},
    "stack": {"preset": "megatron_core", "elementwise": {}, "communication": {}, "memory": {},
              "offload": {}},
    "training": {"tokens": 1e10},
    "price": {"usd_per_gpu_hour": 2},
    "power": {"facility": {"preset": "liquid"}, "smoothing": {}},
    "cost": {"usd_per_kwh": 0.1},
    "stragglers": [{"gpu": 0, "slowdown": 1.5}],
    "expect": {"mfu": 0.4},
    "run": {
      "reliability": {"modes": [{"name": "crash", "component": "node", "mean_time": "90 d"}]},
      "checkpoint": {"to": "storage", "interval": "30 min",
                     "storage": {"write": "20 GB/s", "read": "20 GB/s"}},
      "recovery": {"restarts": "5 min"},
      "spares": {"hot": 1}}
  })");
  return scenario;
}

/// Pointers of all objects in `json`.
void collect_objects(const Json& json, const std::string& pointer, std::vector<std::string>& out) {
  if (json.is_object()) {
    out.push_back(pointer);
    for (const auto& [key, member] : json.items()) {
      collect_objects(member, pointer + "/" + key, out);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      collect_objects(json[i], pointer + "/" + std::to_string(i), out);
    }
  }
}

Json with_typo(const Json& scenario, const std::string& pointer) {
  Json out = scenario;
  out[Json::json_pointer(pointer)]["bogus"] = 1;
  return out;
}

void check_refused(const std::vector<std::string>& args, const std::string& pointer) {
  const test::Ran ran = test::lockstep_with(args);
  CAPTURE(args[0]);
  CAPTURE(pointer);
  CAPTURE(ran.err);
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK(ran.err.find("#" + pointer + "/bogus: found the unknown key \"bogus\"") !=
        std::string::npos);
}

}  // namespace

TEST_CASE(
    "an unknown key anywhere in a scenario is an error in every command that takes the file") {
  const test::TemporaryFolder folder;
  const std::string sound = folder.write("sound.json", scenario_of_objects().dump());
  const std::string sweep =
      folder.write("sweep.json",
                   R"({"scenario": "s.json", "axes": [{"at": "/batch/micro", "values": [1, 2]}]})");
  std::vector<std::string> pointers;
  collect_objects(scenario_of_objects(), "", pointers);
  REQUIRE(pointers.size() > 25);
  for (const std::string& pointer : pointers) {
    const std::string file =
        folder.write("s.json", with_typo(scenario_of_objects(), pointer).dump());
    check_refused({"run", file}, pointer);
    check_refused({"tune", file}, pointer);
    check_refused({"compare", file, sound}, pointer);
    check_refused({"compare", sound, file}, pointer);
    check_refused({"sweep", sweep, "-o", folder.path() + "/results.db"}, pointer);
  }
}

TEST_CASE("plan: an unknown key anywhere in its scenarios is an error") {
  const test::TemporaryFolder folder;
  Json scenario = scenario_of_objects();
  for (const char* key : {"training", "expect"}) scenario.erase(key);  // the plan's own
  std::vector<std::string> pointers;
  collect_objects(scenario, "", pointers);
  for (const std::string& pointer : pointers) {
    for (const bool shared : {true, false}) {
      const Json typo = with_typo(scenario, pointer);
      const Json plan{
          {"training", {{"tokens", 1e10}}},
          {"scenario", shared ? typo : Json{{"model", "llama3_8b"}}},
          {"candidates",
           {{{"name", "own"}, {"pay", "own"}, {"scenario", shared ? Json::object() : typo}}}}};
      check_refused({"plan", folder.write("plan.json", plan.dump())},
                    (shared ? "/scenario" : "/candidates/0/scenario") + pointer);
    }
  }
}

}  // namespace lockstep
