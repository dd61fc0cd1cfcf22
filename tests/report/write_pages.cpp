// Writes the sample pages into a folder: report_pages FOLDER.
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/sample_reports.hpp"
#include "tests/support/sample_run.hpp"
#include "tests/tools/ran.hpp"
#include "tools/console/options.hpp"
#include "tools/lockstep/topology_input.hpp"
#include "tools/views/comm/collective_page.hpp"
#include "tools/views/compare/compare_page.hpp"
#include "tools/views/plan/plan_page.hpp"
#include "tools/views/report/congestion_page.hpp"
#include "tools/views/report/points_page.hpp"
#include "tools/views/report/run_page.hpp"
#include "tools/views/report/step_page.hpp"
#include "tools/views/report/topology_page.hpp"
#include "tools/views/vary/advice_section.hpp"
#include "tools/views/vary/vary_page.hpp"

using namespace lockstep;

namespace {

constexpr std::uint32_t kTrajectories = 50;

/// Everything that a long run's page can show.
std::string whole_run() {
  const test::SampleRun sample = test::sample_run();
  CampaignResult result = test::simulate_sample(sample, kTrajectories);
  test::add_optimum(result, kTrajectories);
  return run_page(result);
}

/// Sums alone: neither timeline, power nor optimum; names that HTML has to escape.
std::string bare_run() {
  const test::SampleRun sample = test::sample_run();
  CampaignResult result = test::simulate_sample(sample, 1);
  result.summary.modes.front().name = "<b>fault & \"quote\"</b>";
  result.typical.reset();
  result.power.reset();
  result.bill.reset();
  result.projections.clear();
  return run_page(result);
}

/// Points of twelve kinds, more than there are colours, predicted in two ways.
std::string points() {
  constexpr int kPoints = 240, kKinds = 12;
  PointTable table;
  table.what = "kernels";
  for (int i = 0; i < kPoints; ++i) {
    const double measured = 1 + i * i, predicted = measured * (0.4 + 0.01 * (i % 120));
    for (const char* by : {"law", "others"}) {
      table.points.push_back({{{"kind", fmt::format("kind {}", i % kKinds)},
                               {"shape", fmt::format("{} x {}", i, i)},
                               {"by", by}},
                              measured,
                              predicted,
                              predicted / measured - 1});
    }
  }
  table.summary = {summarise("all, by law", table.points)};
  return points_page(table, "sample.profile.json");
}

/// The 70B example with a limit that some candidates miss; names that HTML has to escape.
std::string plan() {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/plans/train-70b-15t-tokens.json";
  const std::vector<std::string> set{"samples=60", "/candidates/2/name=own <b>GB200</b>"};
  const PlanSpec spec = read_plan(file, read_text_file(file), test::presets(), set);
  const PlanReport report = evaluate_plan(spec, {});
  return plan_page({spec, report});
}

/// Experts over eight nodes, on a fabric with a dead cable and a slow NIC.
std::string step() {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/qwen3-30b-experts-8-nodes.json";
  const std::vector<std::string> set{
      R"(cluster.fabric.faults=[{"cable": ["leaf 0", "spine 0"]},
                                {"nic": "node 3 nic 1", "rate": 0.5}])",
      "about=<b>a step</b> (github:pytorch/torchtitan@b5bcd76c66d0:benchmarks/"
      "llama3_h100_202412_torchtitan.md)"};
  RunResult result{
      .scenario = read_scenario(file, read_text_file(file), test::presets(), {.set = set}),
      .report = {},
      .memory = {}};
  result.memory = check_memory(result.scenario);
  result.report = simulate_step(
      result.scenario,
      {.record_timeline = true, .keep_actors = true, .explain_links = true, .draw_fabric = true});
  result.full_fabric = on_full_fabric(result.scenario);
  result.written = std::make_shared<const nlohmann::ordered_json>(
      nlohmann::ordered_json{{"about", "<b>"}, {"price", {{"usd_per_gpu_hour", 2}}}});
  const Advice advice{.file = file,
                      .goal = &advice_goals().front(),
                      .numbers = {{"step_s", 2}},
                      .changes = {{{"<b>wider", {"a.b=2"}}, {{"step_s", 1.5}}, 0.33, 0.1, 0.5},
                                  {{"no witness", {"c=1"}}, {{"step_s", 2.5}}, -0.2}},
                      .refused = {{{"too wide", {"d=9"}}, "<b>does not divide"}}};
  return step_page(result, {.presets = &test::presets(),
                            .add_advice = [&advice](Page& page) { add_advice(page, advice); }});
}

/// Two axes, a point without an answer, names that HTML has to escape.
std::string what_if() {
  Varied varied{.file = "a.json",
                .axes = {{"cluster.<b>nics", {"1", "2"}}, {"batch.micro", {"1", "<b>"}}},
                .points = {}};
  for (int i = 0; i < 4; ++i) {
    VariedPoint point{.values = {varied.axes[0].values[static_cast<std::size_t>(i / 2)],
                                 varied.axes[1].values[static_cast<std::size_t>(i % 2)]}};
    if (i == 3) {
      point.error = "<b>cannot be";
    } else {
      point.answer = {{"step_s", 2.0 - 0.1 * i},
                      {"step_s_low", 1.5},
                      {"step_s_high", 2.4},
                      {"mfu", 0.3 + 0.01 * i},
                      {"memory_fits", true}};
    }
    varied.points.push_back(std::move(point));
  }
  return vary_page(varied);
}

/// A fabric preset, drawn.
std::string fabric() {
  ParsedOptions options;
  options.positionals = {"show", "rail_optimised"};
  options.values["node"] = {"dgx_h100"};
  options.values["nodes"] = {"64"};
  DrawnFabric drawn = topology_input(options, test::presets()).fabric;
  drawn.about = "<b>rails";
  return topology_page(drawn, analyse(drawn));
}

/// Two operations on a fabric that holds the larger sizes back.
std::string collectives() {
  const JsonCursor root = JsonCursor::parse("comm.json", R"({"about": "<b>Collectives",
        "cluster": {"node": "dgx_h100", "nodes": 64, "fabric": "fat_tree_2_to_1"},
        "collective": {"op": ["all_reduce", "all_to_all"],
                       "sizes": {"from": "1 KiB", "to": "4 GiB", "factor": 4}}})");
  return collective_page(run_collective_study(root, test::presets()));
}

/// Writes a page with axes of numbers, of times and of chance.
void write_sweep(const std::filesystem::path& folder) {
  const std::string database = (folder / "sweep.db").string();
  std::filesystem::remove(database);
  const test::Ran ran = test::lockstep_with(
      {"sweep", LOCKSTEP_SOURCE_DIR "/scenarios/sweeps/checkpoint-interval.json", "--report",
       (folder / "sweep.html").string(), "-o", database});
  if (ran.exit != Exit::ok) throw std::runtime_error(ran.err);
}

/// Runs the program, which writes a page.
void write_by(const std::filesystem::path& folder, const std::string& name,
              std::vector<std::string> words) {
  words.insert(words.end(), {"--report", (folder / (name + ".html")).string()});
  const test::Ran ran = test::lockstep_with(words);
  if (ran.exit != Exit::ok) throw std::runtime_error(ran.err);
}

/// A recording of a GPU: a product, an all-reduce among two that nothing hides, a norm.
std::string recorded_trace(int rank, double product_ms, double reduce_ms) {
  const int first = rank / 2 * 2;
  const double norm_ms = product_ms + reduce_ms;
  return fmt::format(
      R"({{"distributedInfo": {{"rank": {0}, "world_size": 8}}, "traceEvents": [{{"ph": "M"}},
      {{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": {1}, "args": {{"stream": 7}}}},
      {{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": {1}, "dur": {2},
        "args": {{"stream": 8, "Collective name": "allreduce", "In msg nelems": 1e8,
                 "Out msg nelems": 1e8, "dtype": "BFloat16", "Group size": 2,
                 "Process Group Name": "tp", "Process Group Ranks": "[{3}, {4}]"}}}},
      {{"ph": "X", "cat": "kernel", "name": "layer_norm", "ts": {5}, "dur": 10000,
        "args": {{"stream": 7}}}}]}})",
      rank, 1e3 * product_ms, 1e3 * reduce_ms, first, first + 1, 1e3 * norm_ms);
}

/// Four recorded ranks, of which one works longest, diagnosed and replayed.
void write_recordings(const std::filesystem::path& folder) {
  const std::filesystem::path traces = folder / "traces";
  std::filesystem::create_directories(traces);
  const std::string job = (folder / "recorded-job.json").string();
  std::ofstream(job, std::ios::binary) << R"({"model": "llama2_7b", "about": "<b>A job",
    "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
    "parallelism": {"tensor": 2, "data": 4},
    "batch": {"sequences": 8, "micro": 1, "tokens": 2048}})";
  for (int rank = 0; rank < 4; ++rank) {
    std::ofstream(traces / fmt::format("rank{}.json", rank), std::ios::binary)
        << recorded_trace(rank, rank == 2 ? 130 : 100, rank == 2 ? 20 : 50);
  }
  write_by(folder, "diagnosis", {"diagnose", job, traces.string()});
  write_by(folder, "replay", {"replay", traces.string(), "--node", "dgx_h100"});
}

/// Two kinds of job that one stack was measured with.
void write_learnt(const std::filesystem::path& folder) {
  const std::string runs = (folder / "measured-steps.json").string();
  std::ofstream(runs, std::ios::binary) << R"([
    {"scenario": {"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
      "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 16, "tokens": 8192},
      "recompute": "full", "stack": "hf_trainer"}, "step": "5 s"},
    {"scenario": {"model": "llama3_8b", "cluster": {"node": "dgx_a100_80gb", "nodes": 2},
      "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 16, "tokens": 8192},
      "recompute": "full", "stack": "hf_trainer"}, "step": "9 s"}])";
  write_by(folder, "learnt", {"learn", runs});
}

/// The page of `lockstep run`, of a scenario that ships.
void write_answer(const std::filesystem::path& folder, const std::string& name,
                  const std::string& scenario, const std::vector<std::string>& more) {
  std::vector<std::string> words{"run", LOCKSTEP_SOURCE_DIR "/scenarios/" + scenario, "--report",
                                 (folder / (name + ".html")).string()};
  words.insert(words.end(), more.begin(), more.end());
  const test::Ran ran = test::lockstep_with(words);
  if (ran.exit != Exit::ok) throw std::runtime_error(ran.err);
}

/// A waterfall with a change that moves nothing.
std::string comparison() {
  using Json = nlohmann::ordered_json;
  return compare_page({.a = "a.json",
                       .b = "<b>.json",
                       .metric = "step_s",
                       .from = 2,
                       .to = 1.2,
                       .from_step = ComparedStep{2, 1.8, 2.2, "known"},
                       .changes = {{{{"/cluster/node", Json("a"), Json("<b>")}}, 1.5, -0.5, -0.4},
                                   {{{"/batch", Json(1), Json(2)}}, 1.2, -0.3},
                                   {{{"/price", Json(1), Json(2)}}, 1.2, 0}},
                       .notes = {"<b>note"}});
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::filesystem::path folder = words[1];
  const auto write_text = [&](const std::string& name, const std::string& html) {
    std::ofstream(folder / (name + ".html"), std::ios::binary) << html;
  };
  const auto write = [&](const std::string& name, const CongestionReport& report) {
    write_text(name, congestion_page(report));
  };
  try {
    std::filesystem::create_directories(folder);
    write("busy", test::busy_report());
    write("calm", test::calm_report());
    write("large", test::large_report(12, 4000, 3000, 1000));
    write("one-link", test::large_report(1, 1, 1, 0));
    write("empty", CongestionReport{.title = "Nothing",
                                    .about = {},
                                    .fabric = {},
                                    .jobs = {},
                                    .links = {},
                                    .transfers = {},
                                    .events = {},
                                    .notes = {}});
    write_text("run", whole_run());
    write_text("bare-run", bare_run());
    write_text("points", points());
    write_text("plan", plan());
    write_text("step", step());
    write_text("what-if", what_if());
    write_text("fabric", fabric());
    write_text("collectives", collectives());
    write_text("comparison", comparison());
    write_sweep(folder);
    write_recordings(folder);
    write_learnt(folder);
    write_by(
        folder, "rows",
        {"validate", "--rows", LOCKSTEP_SOURCE_DIR "/tests/reference/formats/published-rows.json"});
    write_answer(folder, "serving", "serving/deepseek-r1-b200-pools.json",
                 {"--set", "serving.load.requests=400"});
    write_by(folder, "filling",
             {"queue", "fill", LOCKSTEP_SOURCE_DIR "/scenarios/queue/fill-mixed-gpus.json"});
    write_answer(folder, "site", "site/curtailment-two-hours.json", {"--trajectories", "2"});
    write_answer(folder, "scaling", "llama3-405b-16k.json", {"--scaling", "2048,4096,16384"});
  } catch (const UsageError& problem) {  // built without the chart library
    fmt::print("skipped: {}\n", problem.what());
    return 0;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}\n", problem.what());
    return 1;
  }
}
