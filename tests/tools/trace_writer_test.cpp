#include "tools/views/traces/trace_writer.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <string>
#include <vector>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "models/base/output_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace lockstep;

namespace {

// Four stages, two replicas, eight micro batches each.
StepReport simulated(bool unfold) {
  const PresetStore presets;
  const Scenario scenario = read_scenario("small.json", R"({
    "model": "megatron_1_7b",
    "cluster": {"node": "dgx_a100_80gb", "nodes": 1},
    "parallelism": {"pipeline": 4, "data": 2, "sharding": "zero1"},
    "batch": {"sequences": 16, "micro": 1, "tokens": 2048},
    "precision": "bf16", "recompute": "none", "stack": "megatron_core"})",
                                          presets);
  return simulate_step(scenario, {.folding = unfold ? Folding::unfolded : Folding::automatic,
                                  .record_timeline = true,
                                  .keep_actors = true});
}
constexpr int kMicroBatches = 8;

nlohmann::json trace_of(const StepReport& report) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/trace.json";
  OutputFile file(path);
  write_trace(file, report, "a \"title\"");
  file.commit();
  return nlohmann::json::parse(std::ifstream(path));
}

struct Slice {
  std::string name;
  double start_us, duration_us;
};
using Row = std::pair<int, int>;  // process, thread
std::map<Row, std::vector<Slice>> rows_of(const nlohmann::json& trace) {
  std::map<Row, std::vector<Slice>> rows;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    rows[{event["pid"], event["tid"]}].push_back({event["name"], event["ts"], event["dur"]});
  }
  return rows;
}

std::map<int, std::string> process_names(const nlohmann::json& trace) {
  std::map<int, std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") names[event["pid"]] = event["args"]["name"];
  }
  return names;
}

}  // namespace

TEST_CASE("trace: a process per stage, or per stage and replica when unfolded, in their order") {
  CHECK(process_names(trace_of(simulated(false))) ==
        std::map<int, std::string>{{0, "step"},
                                   {1, "stage 0 (2 replicas alike)"},
                                   {2, "stage 1 (2 replicas alike)"},
                                   {3, "stage 2 (2 replicas alike)"},
                                   {4, "stage 3 (2 replicas alike)"}});
  const auto unfolded = process_names(trace_of(simulated(true)));
  CHECK(unfolded.size() == 9);
  CHECK(unfolded.at(1) == "stage 0 replica 0");
  CHECK(unfolded.at(8) == "stage 3 replica 1");
}

TEST_CASE("trace: slices of a row follow each other, within the step, and every row has a name") {
  const StepReport report = simulated(true);
  const nlohmann::json trace = trace_of(report);
  CHECK(trace["otherData"]["title"] == "a \"title\"");
  std::size_t slices = 0, names = 0;
  constexpr double kTick = 1e-6;  // microseconds: a picosecond
  for (const auto& [row, list] : rows_of(trace)) {
    if (row.first == 0) continue;
    double last_end = 0;
    for (const Slice& slice : list) {
      CHECK(slice.start_us >= last_end - kTick);
      last_end = slice.start_us + slice.duration_us;
    }
    CHECK(last_end <= report.step_s * 1e6 + kTick);
    slices += list.size();
  }
  CHECK(slices == report.timeline.size());
  for (const auto& event : trace["traceEvents"]) names += event["name"] == "thread_name" ? 1 : 0;
  CHECK(names == rows_of(trace).size() - 1);
}

TEST_CASE("trace: a stage's passes add up to its compute, and at most the waits for data more") {
  const StepReport report = simulated(false);
  const auto rows = rows_of(trace_of(report));
  for (const StageReport& stage : report.stages) {
    CAPTURE(stage.stage);
    double passes_s = 0;
    int passes = 0;
    for (const Slice& slice : rows.at({stage.stage + 1, 0})) {
      if (slice.name != "forward" && slice.name != "backward") continue;
      passes_s += slice.duration_us * 1e-6;
      ++passes;
    }
    CHECK(passes == 2 * kMicroBatches);
    const double compute_s = kMicroBatches * (stage.forward_s + stage.backward_s);
    const double waits_s = stage.seconds[static_cast<std::size_t>(Bucket::data_exposed)];
    CHECK(passes_s >= compute_s - 1e-9);
    CHECK(passes_s <= compute_s + waits_s + 1e-9);
  }
}

TEST_CASE("trace: times are exact to the picosecond, and what is not known is left out") {
  StepReport report;
  report.step_s = 1e-5;
  report.folded = true;
  report.actors.resize(1);
  report.timeline = {{.actor = 0,
                      .stream = 0,
                      .kind = 0,
                      .micro_batch = 3,
                      .chunk = -1,
                      .start = {1'000'001},
                      .end = {12'345'678}}};
  const test::TemporaryFolder folder;
  OutputFile file(folder.path() + "/t.json");
  write_trace(file, report, "t");
  file.commit();
  std::ifstream in(folder.path() + "/t.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  CHECK(text.find("\"ts\":1.000001,\"dur\":11.345677,") != std::string::npos);
  CHECK(text.find("\"args\":{\"micro_batch\":3}}") != std::string::npos);
}
