// The hold model: take out the next event and push it again, later. `items_per_second` is holds.
#include <array>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <memory>

#include "sim/core/event_queue.hpp"
#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kDelays = 65536;  // in cache, so that the queue is measured, not the streams
using Delays = std::array<std::uint64_t, kDelays>;

std::unique_ptr<Delays> exponential_delays() {
  auto delays = std::make_unique<Delays>();
  RandomStream random({.seed = 1});
  for (std::uint64_t& delay : *delays)
    delay = 1 + to_step_time(1e-3 * Seconds{random.exponential()}).ps;
  return delays;
}
/// A millisecond each, but for 64 ticks: steps in lockstep with little jitter.
std::unique_ptr<Delays> near_delays() {
  auto delays = std::make_unique<Delays>();
  RandomStream random({.seed = 1});
  for (std::uint64_t& delay : *delays) delay = 1'000'000'000 + random.below(64);
  return delays;
}
/// 16 durations only: large groups of equal times.
std::unique_ptr<Delays> few_delays() {
  auto delays = std::make_unique<Delays>();
  RandomStream random({.seed = 1});
  for (std::uint64_t& delay : *delays) delay = 1'000'000ULL * (1 + random.below(16));
  return delays;
}

void hold(benchmark::State& state, std::unique_ptr<Delays> (*make_delays)()) {
  const auto delays = make_delays();
  std::uint64_t x = 88172645463325252ULL;  // xorshift64: a nanosecond a draw
  const auto delay = [&] {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return StepTime{(*delays)[x % kDelays]};
  };
  EventQueue queue;
  const auto pending = static_cast<std::uint32_t>(state.range(0));
  const auto hold_once = [&] {
    const Event event = queue.pop();
    queue.push(event.at + delay(), event.kind, event.subject);
  };
  for (std::uint32_t i = 0; i < pending; ++i) queue.push(delay(), 0, i);
  for (std::uint32_t i = 0; i < 2 * pending; ++i) hold_once();
  while (state.KeepRunning()) hold_once();
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(hold, exponential, exponential_delays)
    ->RangeMultiplier(10)
    ->Range(1000, 10'000'000);
BENCHMARK_CAPTURE(hold, near, near_delays)->Arg(1'000'000);
BENCHMARK_CAPTURE(hold, few, few_delays)->Arg(1'000'000);

}  // namespace
}  // namespace lockstep
