#include "sim/scenario/parallelism_json.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/source_tree.hpp"

using namespace lockstep;
using LayoutJson = nlohmann::ordered_json;

TEST_CASE("parallelism_json: it has the keys of the schema, in its order") {
  const LayoutJson schema =
      LayoutJson::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/scenario.schema.json"));
  std::vector<std::string> of_schema, written;
  for (const auto& [key, value] :
       schema.at("properties").at("parallelism").at("properties").items())
    of_schema.push_back(key);
  const LayoutJson all = parallelism_json(Parallelism{});
  for (const auto& [key, value] : all.items()) written.push_back(key);
  CHECK(written == of_schema);
}

TEST_CASE("written_parallelism: what it writes reads back to the same layout") {
  int read = 0;
  for (const std::string& path : test::source_files({"scenarios"})) {
    if (!path.ends_with(".json") || path.ends_with("schema.json")) continue;
    const std::string file = LOCKSTEP_SOURCE_DIR "/" + path;
    LayoutJson scenario = LayoutJson::parse(read_text_file(file));
    if (!scenario.contains("parallelism") || scenario.contains("rl")) continue;
    CAPTURE(path);
    const Parallelism layout =
        read_scenario(file, scenario.dump(), test::presets()).job.parallelism;
    LayoutJson written = written_parallelism(layout);
    // A path in the answer starts from where the program ran, in a scenario from its folder.
    if (written.contains("schedule_file")) {
      written["schedule_file"] = scenario["parallelism"]["schedule_file"];
    }
    scenario["parallelism"] = written;
    const Parallelism again = read_scenario(file, scenario.dump(), test::presets()).job.parallelism;
    CHECK(parallelism_json(again) == parallelism_json(layout));
    CHECK(again.layers_per_stage == layout.layers_per_stage);
    ++read;
  }
  CHECK(read > 15);
}
