// Scenarios that ship are found by name.
#include "sim/scenario/shipped_scenarios.hpp"

#include <doctest/doctest.h>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

TEST_CASE("shipped scenarios: every name is one file's, and each has a sentence") {
  const PresetStore presets;
  std::set<std::string> names;
  for (const ShippedScenario& each : shipped_scenarios(presets)) {
    CAPTURE(each.file);
    CHECK(names.insert(each.name).second);
    CHECK(each.sentence.ends_with('.') + each.sentence.ends_with('?') == 1);
    CHECK(scenario_path(each.name, presets) == each.file);
  }
  CHECK(names.contains("llama3-405b-16k"));
  CHECK(names.contains("allreduce-dgxh100"));
}

TEST_CASE("shipped scenarios: a path stays a path, and a typo has the nearest name") {
  const PresetStore presets;
  CHECK(scenario_path("-", presets) == "-");
  CHECK(scenario_path("none/such", presets) == "none/such");
  CHECK(scenario_path("such.json", presets) == "such.json");
  const Ran ran = lockstep_with({"run", "llama3-405-16k"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err ==
        "llama3-405-16k: found no such file, and no scenario of that name; allowed: a file, - for "
        "standard input, or a name of lockstep list scenarios. Did you mean "
        "\"llama3-405b-16k\"?\n");
}

TEST_CASE("shipped scenarios: each command takes those that are listed for it by name") {
  const Ran run = lockstep_with({"run", "gpt3-175b-selective", "--format", "json"});
  const Ran by_file = lockstep_with(
      {"run", LOCKSTEP_SOURCE_DIR "/scenarios/gpt3-175b-selective.json", "--format", "json"});
  REQUIRE(run.exit == Exit::ok);
  CHECK(Json::parse(run.out)["step_s"] == Json::parse(by_file.out)["step_s"]);
  CHECK(lockstep_with({"comm", "incast-32"}).exit == Exit::ok);
  CHECK(lockstep_with({"compare", "gpt-14.6b-1f1b", "gpt-14.6b-zb-h1"}).exit == Exit::ok);
  CHECK(lockstep_with({"sweep", "fabric-vs-parallelism", "--dry-run"}).exit == Exit::ok);
}

}  // namespace lockstep::test
