// Profiles in lockstep comm --measured and in lockstep run of several jobs.
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFabric =
    R"({"gpu": "h100_sxm5_80gb", "network": {"node": "dgx_h100"},
        "collectives": [{"op": "all_reduce", "nodes": 2, "gpus_per_node": 8, "size": 1048576,
                         "time": "123 us"}]})";

constexpr std::string_view kStudy =
    R"({"cluster": {"node": "dgx_h100", "nodes": 2},
        "collective": {"op": ["all_reduce", "all_gather"], "sizes": [1048576, 1073741824]}})";

Json comm_json(const std::string& scenario, std::vector<std::string> more) {
  std::vector<std::string> args{"comm", scenario, "--format", "json"};
  args.insert(args.end(), more.begin(), more.end());
  const test::Ran ran = test::lockstep_with(args);
  REQUIRE(ran.exit == Exit::ok);
  return Json::parse(ran.out);
}

}  // namespace

TEST_CASE("comm --measured: a collective takes the time that was measured, others their law") {
  const test::TemporaryFolder folder;
  const std::string scenario = folder.write("comm.json", kStudy);
  const std::string fabric = folder.write("fabric.profile.json", kFabric);
  const Json law = comm_json(scenario, {});
  const Json measured = comm_json(scenario, {"--measured", fabric});
  const auto time = [](const Json& study, std::size_t row) {
    return study["rows"][row]["time_s"].get<double>();
  };
  CHECK(time(measured, 0) == test::near(123e-6));
  CHECK(time(law, 0) != test::near(123e-6));
  // Ten octaves off, and another operation.
  for (const std::size_t row : {1U, 2U, 3U}) CHECK(time(measured, row) == time(law, row));
  const double busbw = measured["rows"][0]["busbw_bytes_per_s"];
  CHECK(busbw == test::near(1048576 / 123e-6 * 2 * 15 / 16));
  CHECK(measured["assumptions"].dump().find("collectives: as " + fabric + " measured them") !=
        std::string::npos);
}

TEST_CASE("comm --measured: what a profile cannot say is one line") {
  const test::TemporaryFolder folder;
  const std::string fabric = folder.write("fabric.profile.json", kFabric);
  const auto error = [&](std::string_view scenario) {
    const std::string file = folder.write("s.json", scenario);
    const test::Ran ran = test::lockstep_with({"comm", file, "--measured", fabric});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error(R"({"cluster": {"node": "dgx_h100", "nodes": 2},
                  "collective": {"op": "all_reduce", "algorithm": "ring"}})")
            .find("#/collective/algorithm: found \"ring\"; allowed: no such key with --measured") !=
        std::string::npos);
  CHECK(error(R"({"cluster": {"node": "dgx_a100_80gb", "nodes": 2},
                  "collective": {"op": "all_reduce"}})")
            .find("#/gpu: found \"h100_sxm5_80gb\"; allowed: the card of the scenario") !=
        std::string::npos);
  CHECK(error(R"({"cluster": {"node": "dgx_h100", "nodes": 2}, "traffic": []})") ==
        "lockstep comm: --measured is about collectives, not traffic\n");
}

TEST_CASE("run --profile: several jobs on one fabric take what was measured") {
  const std::string scenario = LOCKSTEP_SOURCE_DIR "/scenarios/congestion/two-jobs-one-spine.json";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"run", scenario, "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    return test::lockstep_with(args);
  };
  const test::Ran law = run({}), measured = run({"--profile", "h100_sxm5_published"});
  REQUIRE(law.exit == Exit::ok);
  REQUIRE(measured.exit == Exit::ok);
  const Json by_law = Json::parse(law.out), by_profile = Json::parse(measured.out);
  for (std::size_t job = 0; job < by_law["jobs"].size(); ++job) {
    const double ratio = by_profile["jobs"][job]["alone_s"].get<double>() /
                         by_law["jobs"][job]["alone_s"].get<double>();
    CAPTURE(ratio);
    CHECK(ratio != 1);
    CHECK(ratio > 0.8);
    CHECK(ratio < 1.25);
  }
  CHECK(measured.out.find("as h100_sxm5_published measured them") != std::string::npos);
  const test::Ran other = run({"--profile", "gh200_published"});
  CHECK(other.exit == Exit::bad_input);
  CHECK(other.err.starts_with("gh200_published#/gpu: found"));
}

}  // namespace lockstep
