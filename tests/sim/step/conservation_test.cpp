// What goes into a step comes out of it: work, bytes, memory, of random jobs.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>

#include "sim/laws/step_books.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep {
namespace {

constexpr test::RandomScenarioOptions kAnyFabric{
    .fabrics = test::RandomFabrics::every, .straggler = true, .most_nodes = 12};
constexpr test::RandomScenarioOptions kUnlikeNodes{.pools = true, .most_nodes = 12};

// --- bytes and work ----------------------------------------------------------------------------

/// The law of the product, on a job that was drawn.
template <void (*kHold)(const Scenario&, LawBook&)>
void check_books(const Scenario& scenario, const std::string&) {
  LawBook book;
  kHold(scenario, book);
  for (const LawBreak& each : book.breaks()) {
    FAIL_CHECK(each.what << ": found " << each.found << ", expected " << each.expected);
  }
}

// --- memory ------------------------------------------------------------------------------------

void check_memory_of(const Scenario& scenario, const std::string&) {
  const StepReport report = simulate_step(scenario);
  Bytes most;
  for (const StageReport& stage : report.stages) {
    const MemoryBreakdown& m = stage.memory;
    for (const Bytes part : {m.weights, m.gradients, m.optimiser, m.activations, m.logits,
                             m.communication, m.framework, m.cached, m.host}) {
      CHECK(part >= Bytes{});
    }
    CHECK(m.total() == m.weights + m.gradients + m.optimiser + m.activations + m.logits +
                           m.communication + m.framework + m.cached);
    CHECK(m.needed() <= m.total());
    most = std::max(most, m.total());
  }
  CHECK(report.peak_memory.total() == most);
  // The pool that decides is the one with least to spare.
  const MemoryVerdict verdict = check_memory(scenario);
  bool all_fit = true;
  for (const PoolMemory& pool : pool_memory(scenario)) all_fit = all_fit && pool.fits();
  CHECK(verdict.fits == all_fit);
  CHECK(verdict.fits == (verdict.peak.needed() <= verdict.usable));
}

}  // namespace

TEST_CASE("every step: the bytes that its plan sends are those that its links carry") {
  test::hold("bytes", test::test_seed() + 21, 50, kAnyFabric, check_books<hold_bytes>);
  test::hold("bytes", test::test_seed() + 22, 30, kUnlikeNodes, check_books<hold_bytes>);
}

TEST_CASE("every step: all of the model's work is done, once") {
  test::hold("work", test::test_seed() + 23, 50, kAnyFabric, check_books<hold_work>);
  test::hold("work", test::test_seed() + 24, 30, kUnlikeNodes, check_books<hold_work>);
}

TEST_CASE("every step: memory is the sum of its parts, and the fullest GPU decides") {
  test::hold("memory", test::test_seed() + 25, 30, kAnyFabric, check_memory_of);
  test::hold("memory", test::test_seed() + 26, 30, kUnlikeNodes, check_memory_of);
}

}  // namespace lockstep
