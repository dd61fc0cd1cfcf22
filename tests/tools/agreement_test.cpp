// Commands that answer the same question give the same answer.
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/memory.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

nlohmann::json answer(const std::vector<std::string>& args) {
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

/// The value of a column in the only line of a CSV file.
std::string csv_value(const std::string& file, const std::string& column) {
  std::ifstream in(file);
  std::string names, values, name, value;
  REQUIRE(std::getline(in, names));
  REQUIRE(std::getline(in, values));
  std::istringstream name_cells(names), value_cells(values);
  while (std::getline(name_cells, name, ',') && std::getline(value_cells, value, ',')) {
    if (name == column) return value;
  }
  FAIL("no column ", column, " in ", names);
  return {};
}

/// The same document with the members of every object in reverse order.
nlohmann::ordered_json reversed(const nlohmann::ordered_json& from) {
  if (from.is_array()) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& element : from) out.push_back(reversed(element));
    return out;
  }
  if (!from.is_object()) return from;
  std::vector<std::pair<std::string, nlohmann::ordered_json>> members;
  for (const auto& [key, value] : from.items()) members.emplace_back(key, reversed(value));
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    out[member->first] = std::move(member->second);
  }
  return out;
}

}  // namespace

TEST_CASE("agreement: run, sweep and compare of random jobs, and any order of their keys") {
  constexpr int kScenarios = 20;
  const std::uint64_t seed = test::test_seed() + 2;
  CAPTURE(seed);
  test::RandomScenarios scenarios{seed, {.most_nodes = 8}};
  for (int i = 0; i < kScenarios; ++i) {
    (void)scenarios.next();
    CAPTURE(scenarios.text());
    const test::TemporaryFolder folder;
    const std::string file = folder.write("job.json", scenarios.text());
    const nlohmann::json run = answer({"run", file, "--allow-oom", "--format", "json"});

    const auto document = nlohmann::ordered_json::parse(scenarios.text());
    const std::string turned = folder.write("turned.json", reversed(document).dump());
    const nlohmann::json of_turned = answer({"run", turned, "--allow-oom", "--format", "json"});
    CHECK(of_turned.at("step_s") == run.at("step_s"));
    CHECK(of_turned.at("waterfall") == run.at("waterfall"));

    const std::string sweep = folder.write(
        "sweep.json", fmt::format(R"({{"scenario": "job.json", "axes": [{{"at": "/batch/tokens",
                         "name": "tokens", "values": [{}]}}]}})",
                                  document.at("batch").at("tokens").get<int>()));
    const std::string csv = folder.path() + "/sweep.csv";
    const Ran swept =
        lockstep_with({"sweep", sweep, "-o", folder.path() + "/sweep.db", "--csv", csv});
    REQUIRE_MESSAGE(swept.exit == Exit::ok, swept.err);
    if (run.at("memory_fits") == true) {
      CHECK(std::stod(csv_value(csv, "step_s")) ==
            doctest::Approx(run.at("step_s").get<double>()).epsilon(1e-11));
      CHECK(std::stod(csv_value(csv, "mfu")) ==
            doctest::Approx(run.at("mfu").get<double>()).epsilon(1e-11));
    }
  }
}

}  // namespace lockstep
