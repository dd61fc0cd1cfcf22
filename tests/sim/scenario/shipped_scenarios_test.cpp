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

TEST_CASE(
    "shipped scenarios: a name with a folder, or a path of the tree, has the installed name") {
  for (const auto& [written, meant] :
       {std::pair{"serving/llama3-70b-h100-chat", "llama3-70b-h100-chat"},
        {"llama3-70b-h100-chat.json", "llama3-70b-h100-chat"},
        {"no-scenarios/llama3-405b-16k.json", "llama3-405b-16k"},
        {"comm/allreduce-dgxh10", "allreduce-dgxh100"}}) {
    CAPTURE(written);
    const Ran ran = lockstep_with({"run", written});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.ends_with("or a name of lockstep list scenarios. Did you mean \"" +
                            std::string(meant) + "\"?\n"));
  }
}

TEST_CASE("shipped scenarios: examples name what runs in a tree and installed alike") {
  const PresetStore presets;
  std::size_t named = 0;
  for (const Command* const command : commands()) {
    for (const std::string_view example : command->spec->examples) {
      CAPTURE(example);
      CHECK(example.find("scenarios/") == std::string_view::npos);
    }
    for (const ShippedScenario& each : shipped_scenarios(presets)) {
      for (const std::string_view example : command->spec->examples) {
        named +=
            (" " + std::string(example) + " ").find(" " + each.name + " ") != std::string::npos;
      }
    }
  }
  CHECK(named >= 40);
  CHECK(lockstep_with({"--help"}).out.find("scenarios/") == std::string::npos);
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
