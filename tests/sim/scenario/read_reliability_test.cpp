// Failure rates and logs: what counts as what, and which mistakes are named.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"
#include "sim/scenario/run_spec.hpp"
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
  const std::vector<FailureMode> failing = failing_modes(run, node, 42, 336, FabricSpec{});
  const std::uint32_t counts[] = {336, 336, 84, 42, 11, 6, 3, 1};
  for (std::size_t i = 0; i < failing.size(); ++i) CHECK(failing[i].components == counts[i]);
  // Two spare nodes fail with the others, with all that is in them.
  node.gpus = 8;
  const std::vector<FailureMode> more = failing_modes(run, node, 42, 336, FabricSpec{}, 2);
  const std::uint32_t more_counts[] = {352, 352, 88, 44, 11, 6, 3, 1};
  for (std::size_t i = 0; i < more.size(); ++i) CHECK(more[i].components == more_counts[i]);
}

TEST_CASE("reliability: failures of cables are divided by the cables that were observed") {
  const RunSpec run = run_with("t.json", R"({
    "observed": {"gpus": 640, "cables": 500, "time": "10 d"},
    "modes": [{"name": "a", "component": "cable", "count": 2, "effect": "crash"}]})");
  CHECK(mean_s(run.reliability.modes[0]) == doctest::Approx(10 * kSecondsPerDay * 500 / 2));
  CHECK(std::ranges::count(run.assumptions,
                           "run.reliability: a: no node goes down (\"scope\" not given)") == 1);
  const auto problem = [](const char* observed) -> std::string {
    try {
      (void)run_with("t.json",
                     std::string(R"({)") + observed +
                         R"("modes": [{"name": "a", "component": "cable", "count": 2}]})");
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(problem(R"("observed": {"gpus": 640, "time": "10 d"}, )") ==
        R"(t.json#/reliability/modes/0/count: found 2; allowed: "mean_time", or "cables" in )"
        R"("observed" to divide by)");
  CHECK(problem("") == R"(t.json#/reliability/modes/0/count: found 2; allowed: "mean_time", as )"
                       R"(there is no "observed" to divide by)");
}

TEST_CASE("reliability: another word for the failures is told how they are said") {
  try {
    (void)run_with("t.json", R"({"mttf": "3 h"})");
    FAIL("it was taken");
  } catch (const InputError& error) {
    CHECK(error.problem().pointer == "/reliability");
    CHECK(error.problem().found == "the unknown key \"mttf\" and no \"modes\"");
    CHECK(error.problem().allowed.find("lockstep list reliability") != std::string::npos);
  }
  // What it says works: a GPU of 16,384 every 3 h.
  const auto run = run_with("t.json", R"({"observed": {"gpus": 16384, "time": "3 h"},
      "modes": [{"name": "GPU", "component": "gpu", "count": 1}]})");
  CHECK(mean_s(run.reliability.modes[0]) == doctest::Approx(3 * 3600.0 * 16384));
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

TEST_CASE("reliability: what a rack, a switch or a feed carries goes down with it") {
  const std::string domains = R"(, "nodes_per_switch": 8, "nodes_per_feed": 64)";
  const auto scope_of = [&](const std::string& component, const std::string& more) {
    const RunSpec run = run_with("t.json",
                                 R"({"modes": [{"name": "m", "mean_time": "1 d", "component": ")" +
                                     component + "\"" + more + "}]}",
                                 domains);
    return run.reliability.modes.at(0).mode.scope;
  };
  CHECK(scope_of("rack", "") == FailureScope::rack);
  CHECK(scope_of("switch", "") == FailureScope::switch_nodes);
  CHECK(scope_of("feed", "") == FailureScope::feed);
  CHECK(scope_of("gpu", "") == FailureScope::node);
  CHECK(scope_of("cable", "") == FailureScope::process);
  CHECK(scope_of("job", "") == FailureScope::node);
  CHECK(scope_of("feed", R"(, "scope": "node")") == FailureScope::node);
  CHECK(scope_of("gpu", R"(, "scope": "rack")") == FailureScope::rack);
}

TEST_CASE("reliability: every default that decides goodput is among the assumptions") {
  const auto assumes = [](const RunSpec& run, const std::string& text) {
    CAPTURE(text);
    CHECK(std::ranges::count(run.assumptions, text) == 1);
  };
  const RunSpec open = run_with("t.json", R"({"observed": {"gpus": 640, "time": "10 d"}, "modes": [
    {"name": "rack trips", "component": "rack", "count": 1},
    {"name": "GPU", "component": "gpu", "mean_time": "9 d"}]})",
                                R"(, "spares": {"warm": 2}, "recovery": {"restarts": "5 min"})");
  assumes(open, "run.reliability: rack trips: all nodes of the rack go down (\"scope\" not given)");
  assumes(open, "run.reliability: GPU: one node goes down (\"scope\" not given)");
  assumes(open, "run.reliability: rack trips, GPU: the job crashes (\"effect\" not given)");
  assumes(open, "run.nodes_per_rack: 4 (not given)");
  assumes(open, "run.checkpoint: none, so that every failure starts the run again (not given)");
  assumes(open, "run.spares.hot: none (not given)");
  assumes(open,
          "run.reliability.observed: 8 gpus_per_node, 8 nics_per_node, 2 cpus_per_node, 4 "
          "nodes_per_rack, 32 nodes_per_switch, 64 nodes_per_feed (not given)");
  assumes(open,
          "run.recovery: 30 s to detect a crash, 10 min to detect a hang, 2 min to diagnose, never "
          "the wrong node, 3 s more to restart for each 1,000 ranks (not given)");
  const RunSpec said = run_with("t.json", R"({"modes": [{"name": "GPU", "component": "gpu",
    "mean_time": "1e12 s", "scope": "node", "effect": "crash", "replaced": 1}]})",
                                R"(, "nodes_per_rack": 8,
    "checkpoint": {"interval": "1 h", "storage_share": 0.1,
                   "storage": {"write": "1 GB/s", "read": "1 GB/s"}},
    "spares": {"hot": 1, "repair": "1 d", "crews": 0},
    "recovery": {"detects_crash": 1, "detects_hang": 1, "diagnoses": 1, "misdiagnosed": 0,
                 "restarts": 1, "restarts_per_thousand_ranks": 0})");
  CHECK(said.assumptions == std::vector<std::string>{});
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
