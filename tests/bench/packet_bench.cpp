// Packets through the referee: how many transmissions a second each link layer simulates.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/base/text_file.hpp"
#include "sim/referee/referee.hpp"

namespace lockstep {
namespace {

/// A permutation of 16 MiB messages over 32 ports, two levels 2:1, as the referee's file has it.
PacketNetwork permutation(bool spray) {
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/packet_referee.json";
  const std::string_view name =
      spray ? "permutation, 2 levels 2:1, spray" : "permutation, 2 levels 2:1, ecmp";
  for (const RefereeCase& of : read_referee_cases(file, read_text_file(file))) {
    if (of.name == name) return packet_network(of);
  }
  return {};
}

void referee(benchmark::State& state, std::size_t layer, bool spray) {
  const PacketNetwork network = permutation(spray);
  std::uint64_t hops = 0;
  for ([[maybe_unused]] const auto step : state) {
    hops += referee_layers()[layer].run(network, gigabits_per_second(400)).packet_hops;
  }
  state.counters["packet_hops"] =
      benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(referee, credit_ecmp, 0, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(referee, credit_spray, 0, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(referee, pfc_ecmp, 1, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(referee, dcqcn_ecmp, 2, false)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep
