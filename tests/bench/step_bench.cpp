// One step of Llama 3 405B, folded and with every rank on its own: passes of actors per second.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <string>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

/// 128 GPUs a replica; the batch grows with the replicas, so that each does the same.
Scenario llama(std::int64_t gpus) {
  const PresetStore presets;
  const std::int64_t replicas = gpus / 128;
  return load_scenario(
      LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json", presets,
      {{"parallelism.data=" + std::to_string(replicas), "cluster.nodes=" + std::to_string(gpus / 8),
        "batch.sequences=" + std::to_string(16 * replicas)}});
}

void step(benchmark::State& state, bool unfold) {
  const Scenario scenario = llama(state.range(0));
  std::uint64_t items = 0;
  for ([[maybe_unused]] const auto _ : state) {
    items +=
        simulate_step(scenario, {.folding = unfold ? Folding::unfolded : Folding::automatic}).items;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(items));
}

BENCHMARK_CAPTURE(step, folded, false)
    ->Arg(16384)
    ->Arg(131072)
    ->Arg(1048576)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(step, unfolded, true)
    ->Arg(16384)
    ->Arg(131072)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
}  // namespace lockstep
