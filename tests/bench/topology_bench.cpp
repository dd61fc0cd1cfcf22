// What `topology show` says of a drawn fat tree of three layers: distances, cuts, ways, single
// points of failure. NICs per second.
#include <benchmark/benchmark.h>
#include <cstdint>

#include "topologies/analysis/analysis.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {
namespace {

/// Leaves, spines and cores of 64 ports, four nodes of eight NICs to a leaf.
void analysis(benchmark::State& state) {
  constexpr int kNics = 8, kLeafPorts = 32;
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.levels = 3;
  spec.leaf_ports_down = kLeafPorts;
  spec.pod_leaves = kLeafPorts;
  const Fabric fabric(spec, static_cast<int>(state.range(0)), kNics, gigabits_per_second(400));
  const DrawnFabric drawn = drawn_fabric(graph_of(fabric), "a builder");
  for ([[maybe_unused]] const auto _ : state) {
    benchmark::DoNotOptimize(analyse(drawn).average_distance);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * kNics);
}

BENCHMARK(analysis)->Arg(2048)->Arg(16384)->Arg(131072)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep
