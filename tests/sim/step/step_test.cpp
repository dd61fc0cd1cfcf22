// What must hold in every simulated step.
#include "sim/step/step.hpp"

#include <cmath>
#include <cstddef>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/random_scenarios.hpp"

namespace lockstep {
namespace {

// Twelve buckets of doubles, weighted and added up over the actors.
constexpr double kRounding = 1e-12;
constexpr auto kStraggler = static_cast<std::size_t>(Bucket::straggler);

double sum(const BucketTimes& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}
bool none_negative(const BucketTimes& seconds) {
  for (const double s : seconds) {
    if (!(s >= -1e-15)) return false;
  }
  return true;
}

void check_adds_up(const StepReport& report) {
  const auto whole = doctest::Approx(report.step_s).epsilon(kRounding);
  CHECK(sum(report.seconds) == whole);
  CHECK(none_negative(report.seconds));
  for (const StageReport& stage : report.stages) CHECK(sum(stage.seconds) == whole);
  for (const ActorReport& actor : report.actors) CHECK(sum(actor.seconds) == whole);
}

void check_critical_path(const StepReport& report) {
  double seconds = 0, share = 0;
  for (const CriticalPathPart& part : report.critical_path) {
    CHECK(part.seconds > 0);
    seconds += part.seconds;
    share += part.share;
  }
  CHECK(seconds == doctest::Approx(report.step_s).epsilon(kRounding));
  CHECK(share == doctest::Approx(1).epsilon(kRounding));
}

/// Slices come sorted by actor, stream and start.
void check_timeline(const StepReport& report) {
  REQUIRE_FALSE(report.timeline.empty());
  bool in_order = true, apart = true, within = true;
  const TimelineSlice* last = nullptr;
  for (const TimelineSlice& slice : report.timeline) {
    in_order = in_order && slice.start <= slice.end;
    within = within && to_seconds(slice.end).base_units() <= report.step_s * (1 + kRounding);
    if (last != nullptr && last->actor == slice.actor && last->stream == slice.stream) {
      apart = apart && last->end <= slice.start;
    }
    last = &slice;
  }
  CHECK(in_order);
  CHECK(apart);
  CHECK(within);
}

Scenario llama(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return load_scenario(LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json", presets, {set});
}
std::vector<std::string> llama_replicas(int data) {
  return {"parallelism.data=" + std::to_string(data), "cluster.nodes=" + std::to_string(16 * data),
          "batch.sequences=" + std::to_string(16 * data)};
}

/// Two stages of two replicas on a node each; no replica's traffic meets another's.
Scenario small(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return read_scenario("small.json", R"({
    "model": {"layers": 8, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 32000},
    "cluster": {"node": "dgx_h100", "nodes": 4, "fabric": "ideal"},
    "parallelism": {"tensor": 8, "pipeline": 2, "data": 2, "virtual_stages": 1},
    "batch": {"sequences": 16, "tokens": 2048}})",
                       presets, {set});
}

}  // namespace

TEST_CASE("every step: buckets, critical path and timeline account for it, folded or not") {
  using test::RandomFabrics;
  const std::vector<test::RandomScenarioOptions> kinds{
      {.most_nodes = 16},
      {.straggler = true, .most_nodes = 16},
      {.fabrics = RandomFabrics::hashed, .most_nodes = 16},
      {.fabrics = RandomFabrics::hashed, .straggler = true, .most_nodes = 16},
      {.fabrics = RandomFabrics::every, .straggler = true, .most_nodes = 12},
      {.fabrics = RandomFabrics::every, .pools = true, .most_nodes = 12},
  };
  std::uint64_t seed = test::test_seed() + 1;
  for (const test::RandomScenarioOptions& options : kinds) {
    test::hold(
        "books of a step", seed++, 20, options, [](const Scenario& scenario, const std::string&) {
          for (const Folding folding : {Folding::automatic, Folding::unfolded}) {
            CAPTURE(folding);
            const StepReport report = simulate_step(
                scenario, {.folding = folding, .record_timeline = true, .keep_actors = true});
            check_adds_up(report);
            check_critical_path(report);
            check_timeline(report);
          }
        });
  }
}

TEST_CASE("critical path: with one stage passes wait for weights, and no message between stages") {
  const Scenario sharded = read_scenario("job.json", R"({
      "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
      "parallelism": {"sharding": "zero3"}, "batch": {"sequences": 64, "tokens": 1024},
      "recompute": "full"})",
                                         test::presets());
  const StepReport report = simulate_step(sharded);
  double gathers = 0;
  for (const CriticalPathPart& part : report.critical_path) {
    CHECK(part.what != "pipeline messages");
    if (part.what == "parameter gathers") gathers = part.seconds;
  }
  CHECK(gathers > 0.01);  // 3 ms before the first pass, the rest between passes
}

TEST_CASE("every step: runs each pass of each micro batch on every stage that it simulates") {
  const Scenario s = small();
  const StepReport folded = simulate_step(s);
  const StepReport unfolded = simulate_step(s, {.folding = Folding::unfolded});
  CHECK(folded.actors_simulated == 2);
  CHECK(folded.items == 2 * 8 * 2);
  CHECK(unfolded.actors_simulated == 2 * 2);
  CHECK(unfolded.items == 2 * folded.items);
}

TEST_CASE("every step: the same scenario gives the same report") {
  const StepReport once = simulate_step(llama()), again = simulate_step(llama());
  CHECK(once.step_s == again.step_s);
  CHECK(once.seconds == again.seconds);
  CHECK(once.events == again.events);
}

TEST_CASE("rates: MFU is model FLOP over what the GPUs could do in the step") {
  const StepReport r = simulate_step(llama());
  const double capacity = r.step_s * 16384 * r.peak_flops_per_gpu;
  CHECK(r.mfu_full == doctest::Approx(r.model_flops_full / capacity).epsilon(kRounding));
  CHECK(r.mfu_causal < r.mfu_full);
  CHECK(r.hfu == r.mfu_full);  // nothing is recomputed
  CHECK(r.tokens_per_s == doctest::Approx(2048.0 * 8192 / r.step_s).epsilon(kRounding));
  // The bucket of useful work is the causal MFU, seen from the other side. Each segment's compute
  // is rounded to a tick, of picoseconds in milliseconds.
  CHECK(r.seconds[0] / r.step_s == doctest::Approx(r.mfu_causal).epsilon(1e-8));
}

TEST_CASE("stragglers: none, no bucket, one that is not slow changes nothing") {
  const StepReport healthy = simulate_step(small());
  CHECK(healthy.seconds[kStraggler] == 0);
  const StepReport equal = simulate_step(small({R"(stragglers=[{"gpu": 3, "slowdown": 1}])"}));
  CHECK(equal.step_s == healthy.step_s);
  CHECK(equal.seconds[kStraggler] == doctest::Approx(0));
  for (std::size_t b = 0; b < kBuckets; ++b) {
    CHECK(equal.seconds[b] == doctest::Approx(healthy.seconds[b]).epsilon(kRounding));
  }
}

TEST_CASE("stragglers: the slower a GPU the slower the step, wherever it is") {
  for (const int gpu : {0, 7, 8, 21, 31}) {
    CAPTURE(gpu);
    StepReport last = simulate_step(small());
    for (const char* slowdown : {"1.01", "1.2", "2"}) {
      CAPTURE(slowdown);
      const StepReport slow = simulate_step(small(
          {"stragglers=[{\"gpu\": " + std::to_string(gpu) + ", \"slowdown\": " + slowdown + "}]"}));
      CHECK(slow.step_s > last.step_s);
      CHECK(slow.seconds[kStraggler] > last.seconds[kStraggler]);
      last = slow;
    }
  }
}

TEST_CASE("folding: costs the same for any number of replicas") {
  // Of rings all links of a kind carry the same. PAT's messages, of which each goes twice as far as
  // the one before, load the pods' uplinks unlike where pods are thin.
  const std::string thin = "cluster.fabric.spine_oversubscription=7";
  const std::string full = "cluster.fabric.spine_oversubscription=1";
  const auto with = [](int data, const std::string& pods) {
    std::vector<std::string> set = llama_replicas(data);
    set.push_back(pods);
    return simulate_step(llama(set));
  };
  const StepReport few = with(16, full);
  for (const int data : {128, 1024}) {
    CAPTURE(data);
    const StepReport many = with(data, full);
    CHECK(many.actors_simulated == few.actors_simulated);
    CHECK(many.items == few.items);
    CHECK(many.flows == few.flows);
    CHECK(with(data, thin).actors_simulated <= 4 * few.actors_simulated);
  }
}

TEST_CASE("folding: is never called exact where it mixes hashed paths") {
  test::RandomScenarios scenarios{test::test_seed() + 2,
                                  {.fabrics = test::RandomFabrics::hashed, .most_nodes = 16}};
  for (int i = 0; i < 10; ++i) {
    const Scenario scenario = scenarios.next();
    CAPTURE(scenarios.text());
    const StepReport folded = simulate_step(scenario, {.folding = Folding::folded});
    const bool in_one_domain = scenario.node.nvlink_domain >= scenario.gpus();
    if (in_one_domain || scenario.nodes == 1) continue;
    if (folded.replicas_simulated == folded.replicas) continue;
    CHECK(folded.method == StepMethod::folded);
    CHECK_FALSE(folded.band);
    CHECK_FALSE(folded.notes.empty());
    CHECK(simulate_step(scenario, {.folding = Folding::unfolded}).method == StepMethod::exact);
  }
}

TEST_CASE("fabric: the more oversubscribed, the slower a step whose replicas exchange across it") {
  double last = 0;
  for (const char* oversubscription : {"1", "4", "16"}) {
    const Scenario s =
        small({R"(cluster.fabric={"kind": "fat_tree", "leaf_ports_down": 8})",
               std::string("cluster.fabric.leaf_oversubscription=") + oversubscription});
    const double step = simulate_step(s).step_s;
    CHECK(step > last);
    last = step;
  }
}

}  // namespace lockstep
