// `lockstep replay` and the exports of `lockstep run`, as a person calls them.
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/sim/trace/pytorch/recorded_pair.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::string_view kExported = R"({
  "model": "llama2_7b",
  "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
  "parallelism": {"tensor": 2, "pipeline": 2, "data": 2},
  "batch": {"sequences": 8, "micro": 1, "tokens": 2048}
})";

nlohmann::json json_of(const Ran& ran) {
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("lockstep replay: what run exports as Chakra takes the same time again") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write("step.json", kExported);
  const std::string traces = folder.path() + "/traces";
  const nlohmann::json run = json_of(
      lockstep_with({"run", scenario, "--chakra", traces, "--allow-oom", "--format", "json"}));
  CHECK(std::filesystem::exists(traces + "/step.7.et"));
  const nlohmann::json replay = json_of(lockstep_with(
      {"replay", traces, "--node", "dgx_h100", "--fabric", "ideal", "--format", "json"}));
  CHECK(replay["ranks"] == 8);
  // Half a per cent: trace_of_step_test.cpp says what may differ.
  CHECK(replay["step_s"].get<double>() ==
        doctest::Approx(run["step_s"].get<double>()).epsilon(0.005));
  double parts = 0;
  for (const char* part : {"compute", "exposed_communication", "waiting", "idle"}) {
    parts += replay[std::string("mean_") + part + "_s"].get<double>();
  }
  CHECK(parts == doctest::Approx(replay["step_s"].get<double>()));
  CHECK(replay["rank_times"].size() == 8);

  // Twice the bandwidth of everything on the other GPU: no slower.
  const nlohmann::json faster =
      json_of(lockstep_with({"replay", traces, "--node", "dgx_b200", "--recorded-on",
                             "h100_sxm5_80gb", "--format", "json"}));
  CHECK(faster["mean_compute_s"].get<double>() < 0.6 * replay["mean_compute_s"].get<double>());

  const std::string timeline = folder.path() + "/timeline.json";
  CHECK(lockstep_with({"replay", traces, "--node", "dgx_h100", "--trace", timeline}).exit ==
        Exit::ok);
  std::ifstream file(timeline);
  CHECK(nlohmann::json::parse(file)["traceEvents"].size() >
        replay["trace_nodes"].get<std::size_t>());
}

TEST_CASE("lockstep replay: a GOAL schedule, as table, JSON and CSV, with an assertion") {
  const TemporaryFolder folder;
  const std::string goal =
      folder.write("plan.goal",
                   "num_ranks 2\nrank 0 { l1: calc 1000; l2: send 8b to 1; l2 requires l1 }\n"
                   "rank 1 { recv 8b from 0 }\n");
  const std::vector<std::string> words{"replay", goal, "--node", "dgx_h100"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return lockstep_with(all);
  };
  CHECK(with({}).out.find("step time") != std::string::npos);
  CHECK(with({"--format", "csv"}).out.starts_with("rank,compute_s,"));
  CHECK(json_of(with({"--format", "json"}))["messages"] == 1);
  CHECK(with({"--assert", "step_s<1"}).exit == Exit::ok);
  CHECK(with({"--assert", "step_s<1e-9"}).exit == Exit::assertion_missed);
}

TEST_CASE("lockstep replay: execution traces of PyTorch beside Kineto's, here and on another GPU") {
  const TemporaryFolder folder;
  for (int rank = 0; rank < 2; ++rank) {
    RecordedPair pair(rank);
    // 4.4 TFLOP, and a small product that only moves its matrices; no name says so.
    pair.op("aten::mm", 0, 10, {{10, {8192, 32768}}, {11, {32768, 8192}}}, {{12, {8192, 8192}}});
    pair.kernel("fused_0", 2, 10, 6000, 7);
    pair.op("aten::mm", 20, 10, {{12, {8192, 8192}}, {13, {8192, 8}}}, {{14, {8192, 8}}});
    pair.kernel("fused_1", 22, 6010, 60, 7);
    folder.write("et_" + std::to_string(rank) + ".json", pair.operators());
    folder.write("kineto_" + std::to_string(rank) + ".json", pair.kineto());
  }
  const auto step = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"replay", folder.path(), "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(lockstep_with(words));
  };
  const nlohmann::json same = step({"--node", "dgx_h100"});
  CHECK(same["ranks"] == 2);
  CHECK(same["step_s"].get<double>() == doctest::Approx(6070e-6).epsilon(1e-9));
  const nlohmann::json other = step({"--node", "dgx_b200", "--recorded-on", "h100_sxm5_80gb"});
  // By the presets: 989.4 -> 2250 TFLOP/s dense in BF16, 3.35 -> 8 TB/s.
  CHECK(other["mean_compute_s"].get<double>() ==
        doctest::Approx(6000e-6 * 989.4 / 2250 + 60e-6 * 3.35 / 8).epsilon(0.01));
  // Volta has no BF16: 125 TFLOP/s dense in FP16, 0.9 TB/s.
  const nlohmann::json older = step({"--node", "dgx_h100", "--recorded-on", "v100_sxm2_32gb"});
  CHECK(older["mean_compute_s"].get<double>() ==
        doctest::Approx(6000e-6 * 125 / 989.4 + 60e-6 * 0.9 / 3.35).epsilon(0.01));
}

TEST_CASE("lockstep replay: a mistake is one line, with status 2") {
  const TemporaryFolder folder;
  const std::string goal = folder.write("plan.goal", "num_ranks 9\nrank 0 { calc 1 }\n");
  const std::string scenario = folder.write("step.json", kExported);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"replay"}, "lockstep replay: no trace; usage: lockstep replay TRACE... [options]\n"},
      {{"replay", goal},
       "lockstep replay: no cluster to replay on; give --node NAME or --cluster FILE\n"},
      {{"replay", goal, "--node", "dgx_h100"},
       goal + ": found 1 ranks; allowed: the 9 that num_ranks says\n"},
      {{"replay", goal, "--node", "dgx_h100", "--from", "goat"},
       "--from: found \"goat\"; allowed: chakra, chakra-json, kineto, goal, pytorch. Did you mean "
       "goal?\n"}};
  for (const auto& [words, line] : mistakes) {
    const Ran ran = lockstep_with(words);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err == line);
    CHECK(ran.out.empty());
  }
  std::string nine = "num_ranks 9\n";
  for (int r = 0; r < 9; ++r) nine += "rank " + std::to_string(r) + " { calc 1 }\n";
  const std::string more = folder.write("nine.goal", nine);
  CHECK(lockstep_with({"replay", more, "--cluster", scenario}).err ==
        scenario + "#/cluster/nodes: found 1; allowed: at least 2, since the trace has 9 ranks\n");
}
