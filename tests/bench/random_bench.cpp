// Draws from one stream.
#include <benchmark/benchmark.h>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

template <typename Draw>
void draws(benchmark::State& state, Draw draw) {
  RandomStream random({.seed = 1});
  while (state.KeepRunning()) benchmark::DoNotOptimize(draw(random));
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(draws, uniform, [](RandomStream& random) { return random.uniform(); });
BENCHMARK_CAPTURE(draws, exponential, [](RandomStream& random) { return random.exponential(); });
BENCHMARK_CAPTURE(draws, normal, [](RandomStream& random) { return random.normal(); });

}  // namespace
}  // namespace lockstep
