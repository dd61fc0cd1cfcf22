// Traffic scenarios from the parsed scenario to the last end, topology and routes included.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <string>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_traffic.hpp"
#include "sim/traffic/simulate_traffic.hpp"

namespace lockstep {
namespace {

/// Items: messages or, where one variable stands for a pattern, its pairs.
void traffic(benchmark::State& state, const std::string& name) {
  const PresetStore presets;
  const std::string file = "scenarios/comm/" + name + ".json";
  const TrafficScenario scenario =
      read_traffic(file, read_text_file(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file), presets);
  double items = 0, last_end = 0;
  while (state.KeepRunning()) {
    TrafficSimulation simulation(scenario);
    simulation.run();
    const TrafficReport report = simulation.report(0);
    const EntryReport& entry = report.entries.front();
    items += std::max(static_cast<double>(entry.messages), entry.pairs);
    last_end = report.end_s;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(items));
  state.counters["last_end_s"] = last_end;
}

BENCHMARK_CAPTURE(traffic, permutation_8192, "permutation-8192")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, permutation_8192_mixed, "permutation-8192-mixed")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, permutation_32768, "permutation-32768")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, ten_flows_8192, "ten-flows-8192")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, rings_64x64, "rings-64x64")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, all_to_all_256, "all-to-all-256")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, all_to_all_4096, "all-to-all-4096")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(traffic, allreduce_131072, "allreduce-131072")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep
