// Failure rates and logs: what counts as what, and which mistakes are named.
#include <doctest/doctest.h>
#include <string>

#include "models/input/input_error.hpp"
#include "sim/run/run_spec.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

constexpr double kSecondsPerDay = 86400;

RunSpec run_with(const std::string& file, const std::string& reliability,
                 const std::string& more = "") {
  static const PresetStore presets;
  const std::string text = R"({"duration": "1 d", "reliability": )" + reliability + more + "}";
  return read_run_spec(JsonCursor::parse(file, text), presets);
}

std::string problem_of_log(const std::string& csv, const std::string& modes = "") {
  const test::TemporaryFolder folder;
  folder.write("log.csv", csv);
  try {
    (void)run_with(folder.path() + "/s.json", R"({"log": "log.csv")" + modes + "}");
  } catch (const InputError& error) {
    const std::string what = error.what();
    return what.substr(what.find("log.csv"));
  }
  return {};
}

double mean_s(const ReliabilityMode& of) { return of.mode.mean_time.base_units(); }

}  // namespace

TEST_CASE(
    "reliability: a count is divided by what was observed, each component by its own number") {
  const RunSpec run = run_with("t.json", R"({
    "observed": {"gpus": 640, "gpus_per_node": 8, "nics_per_node": 4, "cpus_per_node": 2,
                 "nodes_per_rack": 4, "nodes_per_switch": 16, "nodes_per_feed": 40, "time": "10 d"},
    "modes": [{"name": "a", "component": "gpu", "count": 2},
              {"name": "b", "component": "nic", "count": 2},
              {"name": "c", "component": "cpu", "count": 2},
              {"name": "d", "component": "node", "count": 2},
              {"name": "e", "component": "rack", "count": 2},
              {"name": "f", "component": "switch", "scope": "switch", "count": 2},
              {"name": "g", "component": "feed", "scope": "feed", "count": 2},
              {"name": "h", "component": "job", "count": 2}]})",
                               R"(, "nodes_per_switch": 8, "nodes_per_feed": 20)");
  const auto& modes = run.reliability.modes;
  const double components[] = {640, 320, 160, 80, 20, 5, 2, 1};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    CHECK(mean_s(modes[i]) == doctest::Approx(10 * kSecondsPerDay * components[i] / 2));
  }
  NodeSpec node;
  node.nics = 8;
  const std::vector<FailureMode> failing = failing_modes(run, node, 42, 336);
  const std::uint32_t counts[] = {336, 336, 84, 42, 11, 6, 3, 1};
  for (std::size_t i = 0; i < failing.size(); ++i) CHECK(failing[i].components == counts[i]);
}

TEST_CASE("reliability: a mode of switches or feeds asks how many nodes they have") {
  for (const char* of : {"switch", "feed"}) {
    const std::string mode = std::string(R"({"modes": [{"name": "a", "mean_time": "1 d",
      "component": ")") + of +
                             R"("}]})";
    try {
      (void)run_with("t.json", mode);
      FAIL("read without nodes_per_" << of);
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find(std::string("nodes_per_") + of) != std::string::npos);
    }
  }
}

TEST_CASE("reliability: a log's failures, in order, with modes of its own or of the scenario") {
  const test::TemporaryFolder folder;
  folder.write(
      "log.csv",
      "# kept by hand\ntime_h,node,mode\n\n12,n7,GPU\n1.5,n3,\"switch, leaf\"\r\n48,n1,GPU\n");
  const std::string file = folder.path() + "/s.json";
  const ReliabilitySpec own = run_with(file, R"({"log": "log.csv"})").reliability;
  REQUIRE(own.modes.size() == 2);
  CHECK(own.modes[0].mode.name == "GPU");
  CHECK(own.modes[1].mode.name == "switch, leaf");
  CHECK(own.modes[0].mode.effect == FailureEffect::crash);
  REQUIRE(own.log.size() == 3);
  CHECK(own.log[0].at == to_run_time(Seconds{5400}));
  CHECK(own.log[0].mode == 1);
  CHECK(own.log[2].at == to_run_time(Seconds{2 * kSecondsPerDay}));
  CHECK(mean_s(own.modes[0]) == doctest::Approx(kSecondsPerDay));

  const ReliabilitySpec given = run_with(file, R"({"log": "log.csv", "modes": [
    {"name": "switch, leaf", "effect": "hang", "scope": "process"}, {"name": "GPU"}]})")
                                    .reliability;
  CHECK(given.modes[0].mode.effect == FailureEffect::hang);
  CHECK(given.log[0].mode == 0);
}

TEST_CASE("reliability: mistakes in a log are named with their line") {
  CHECK(problem_of_log("time_h,what\n1,GPU\n")
            .starts_with("log.csv:1: found \"time_h,what\"; allowed: a heading with \"mode\""));
  CHECK(problem_of_log("time_h,mode\n-1,GPU\n")
            .starts_with("log.csv:2: found \"-1\"; allowed: a time"));
  CHECK(problem_of_log("time_h,mode\n1 h,GPU\n").starts_with("log.csv:2: found \"1 h\""));
  CHECK(problem_of_log("time_h,mode\n1\n").starts_with("log.csv:2: found \"1\"; allowed: as many"));
  CHECK(problem_of_log("time_h,mode\n").find("at least one failure") != std::string::npos);
  CHECK(problem_of_log("time_h,mode\n1,\n").find("the name of a mode") != std::string::npos);
  CHECK(problem_of_log("time_h,mode\n1,\"GPU\\q\"\n").find("a line of CSV") != std::string::npos);
  const std::string unknown =
      problem_of_log("time_h,mode\n1,GPV\n", R"(, "modes": [{"name": "GPU"}])");
  CHECK(unknown == "log.csv:2: found \"GPV\"; allowed: GPU. Did you mean \"GPU\"?");
}

}  // namespace lockstep
