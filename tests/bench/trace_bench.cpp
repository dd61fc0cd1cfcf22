// A trace of 1,024 ranks and two million nodes: matched and replayed, and read from Chakra's bytes.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/formats/read_chakra.hpp"
#include "sim/trace/formats/write_chakra.hpp"
#include "sim/trace/replay_trace.hpp"
#include "sim/trace/trace_of_step.hpp"

namespace lockstep {
namespace {

const PresetStore& trace_presets() {
  static const PresetStore presets;
  return presets;
}

/// Llama 2 70B on 128 DGX H100: tensor and data parallel collectives, pipeline messages.
const Scenario& traced_scenario() {
  static const Scenario scenario = read_scenario("bench.json", R"({
    "model": "llama2_70b",
    "cluster": {"node": "dgx_h100", "nodes": 128, "fabric": "rail_optimised"},
    "parallelism": {"tensor": 8, "pipeline": 8, "data": 16, "sharding": "zero1"},
    "batch": {"sequences": 4096, "micro": 1, "tokens": 4096}})",
                                                 trace_presets());
  return scenario;
}
const Trace& large_trace() {
  static const Trace trace = trace_of_step(traced_scenario());
  return trace;
}

void trace_replay(benchmark::State& state) {
  const JsonCursor root = JsonCursor::parse(
      "bench", R"({"cluster": {"node": "dgx_h100", "nodes": 128, "fabric": "rail_optimised"}})");
  const Cluster cluster = read_cluster(root.at("cluster"), trace_presets());
  const Trace& trace = large_trace();
  const TraceMatches matches = match(trace);
  for (auto _ : state) {
    benchmark::DoNotOptimize(replay_trace(trace, matches, cluster).end);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.size()));
}
BENCHMARK(trace_replay)->Unit(benchmark::kMillisecond);

void trace_match(benchmark::State& state) {
  const Trace& trace = large_trace();
  for (auto _ : state) benchmark::DoNotOptimize(match(trace).calls.size());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(trace.size()));
}
BENCHMARK(trace_match)->Unit(benchmark::kMillisecond);

void trace_read_chakra(benchmark::State& state) {
  const std::string bytes = write_chakra(large_trace(), 0);
  const TraceReadOptions options{
      .gpu = traced_scenario().node.gpu,
      .groups = read_trace_groups("comm_groups.json", write_trace_groups(large_trace()))};
  std::size_t nodes = 0;
  for (auto _ : state) nodes += read_chakra("bench.0.et", 0, bytes, options).nodes.size();
  state.SetItemsProcessed(static_cast<std::int64_t>(nodes));
}
BENCHMARK(trace_read_chakra)->Unit(benchmark::kMillisecond);

/// The same job with 64 sequences as GOAL, where collectives are messages: as a trace, and
/// replayed.
void goal_replay(benchmark::State& state) {
  const std::string job = R"({
    "model": "llama2_70b",
    "cluster": {"node": "dgx_h100", "nodes": 128, "fabric": "rail_optimised"},
    "parallelism": {"tensor": 8, "pipeline": 8, "data": 16, "sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})";
  const JsonCursor root = JsonCursor::parse("bench.json", job);
  const Cluster cluster = read_cluster(root.at("cluster"), trace_presets());
  std::string text;
  write_goal(trace_of_step(read_scenario("bench.json", job, trace_presets())),
             [&](std::string_view part) { text += part; });
  std::size_t nodes = 0;
  for (auto _ : state) {
    const Trace trace = read_goal_in_order("bench.goal", text, [](std::size_t) {}).value();
    benchmark::DoNotOptimize(replay_trace(trace, match(trace), cluster).end);
    nodes += trace.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(nodes));
}
BENCHMARK(goal_replay)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep
