// A step with replicas folded against the same step with every replica on its own.
#include <cmath>
#include <cstddef>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep {
namespace {

// Shares of a link that are equal on paper differ in their last bits with the number of flows that
// are added up; ends then move by a tick.
constexpr double kFoldingRounding = 1e-9;

void check_equal(const StepReport& folded, const StepReport& unfolded) {
  CHECK(std::abs(folded.step_s - unfolded.step_s) <= kFoldingRounding * unfolded.step_s);
  for (std::size_t b = 0; b < kBuckets; ++b) {
    CAPTURE(buckets()[b].name);
    CHECK(std::abs(folded.seconds[b] - unfolded.seconds[b]) <= kFoldingRounding * unfolded.step_s);
  }
}

void check_random_scenarios(std::uint64_t seed, int count,
                            const test::RandomScenarioOptions& options) {
  test::hold("folding", seed, count, options, [](const Scenario& scenario, const std::string&) {
    const StepReport folded = simulate_step(scenario);
    CHECK(folded.method == StepMethod::exact);
    check_equal(folded, simulate_step(scenario, {.folding = Folding::unfolded}));
  });
}

}  // namespace

TEST_CASE("folding: the same step as unfolded, on fabrics that look different from everywhere") {
  const PresetStore presets;
  for (const std::string_view fabric : {
           R"({"kind": "fat_tree", "leaf_ports_down": 8, "faults": [{"switch": "spine 1"}]})",
           R"({"kind": "rail_optimised", "leaf_ports_down": 2, "routing": "adaptive",
               "faults": [{"cable": "leaf 1 to spine 0", "rate": 0.25}]})",
           R"({"kind": "rail_only", "leaf_ports_down": 2, "pxn": true})",
           R"({"kind": "dragonfly", "leaf_ports_down": 8, "group_switches": 2,
               "routing": "adaptive"})",
           R"({"kind": "dragonfly_plus", "leaf_ports_down": 8, "group_switches": 2})",
           R"({"kind": "torus", "torus": [4, 2]})",
           R"({"kind": "fat_tree", "leaf_ports_down": 8, "planes": 2})",
           R"({"kind": "fat_tree", "leaf_ports_down": 8, "routing": "minhop"})",
           R"({"kind": "torus", "routing": "ecmp", "queue_pairs": 2})",
       }) {
    CAPTURE(fabric);
    const std::string text = R"({"model": "llama2_70b",
      "cluster": {"node": "dgx_h100", "nodes": 8, "fabric": )" +
                             std::string(fabric) + R"(},
      "parallelism": {"tensor": 4, "pipeline": 4, "data": 4},
      "batch": {"sequences": 32, "tokens": 4096}, "recompute": "full"})";
    const Scenario scenario = read_scenario("drawn.json", text, presets);
    const StepReport folded = simulate_step(scenario);
    CHECK(folded.method == StepMethod::exact);
    check_equal(folded, simulate_step(scenario, {.folding = Folding::unfolded}));
    CHECK(simulate_step(scenario).step_s == folded.step_s);
  }
}

TEST_CASE("folding: the same step as unfolded where layers exchange across nodes, stages alike") {
  const PresetStore presets;
  // Llama's layers over two and four nodes by tensor and context; DeepSeek's experts over four.
  for (const std::string_view job : {
           R"("model": "llama2_70b", "parallelism": {"tensor": 16, "pipeline": 4, "data": 2})",
           R"("model": "llama2_70b",
              "parallelism": {"tensor": 4, "context": 4, "pipeline": 4, "data": 2})",
           R"("model": "llama2_70b",
              "parallelism": {"tensor": 8, "context": 2, "pipeline": 8, "data": 1})",
           R"("model": "mixtral_8x7b",
              "parallelism": {"tensor": 4, "expert": 8, "pipeline": 4, "data": 8})",
       }) {
    for (const std::string_view fabric : {
             R"({"kind": "fat_tree", "levels": 3, "leaf_ports_down": 16, "pod_leaves": 2,
                 "leaf_oversubscription": 2, "spine_oversubscription": 2})",
             R"({"kind": "rail_optimised", "levels": 3, "leaf_ports_down": 2, "pod_leaves": 16,
                 "leaf_oversubscription": 2, "spine_oversubscription": 2})",
             R"({"kind": "rail_optimised", "levels": 2, "leaf_ports_down": 4, "pxn": false})",
         }) {
      CAPTURE(job);
      CAPTURE(fabric);
      const std::string text = R"({"cluster": {"node": "dgx_h100", "nodes": 16, "fabric": )" +
                               std::string(fabric) + "}, " + std::string(job) +
                               R"(, "batch": {"sequences": 32, "tokens": 4096}})";
      const Scenario scenario = read_scenario("alike.json", text, presets);
      const StepReport folded = simulate_step(scenario);
      CHECK(folded.method == StepMethod::exact);
      check_equal(folded, simulate_step(scenario, {.folding = Folding::unfolded}));
    }
  }
}

TEST_CASE("folding: the same step as unfolded, on symmetric routes") {
  check_random_scenarios(test::test_seed(), 60, {});
}

TEST_CASE("folding: the same step as unfolded with one slow GPU, on symmetric routes") {
  check_random_scenarios(test::test_seed(), 60, {.straggler = true});
}

TEST_CASE("folding: the same step as unfolded, on fabrics of every kind and on unlike nodes") {
  constexpr auto kEvery = test::RandomFabrics::every;
  check_random_scenarios(test::test_seed(), 60, {.fabrics = kEvery, .most_nodes = 16});
  check_random_scenarios(test::test_seed(), 60, {.pools = true, .most_nodes = 16});
}

}  // namespace lockstep
