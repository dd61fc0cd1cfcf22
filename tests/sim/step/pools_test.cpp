// Jobs on several kinds of node: limits, laws of balance, folding, messages.
#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/spec/partition.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/tune.hpp"
#include "sim/step/pool_memory.hpp"
#include "sim/step/step.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kTwoKinds = R"({
  "model": "llama2_7b",
  "cluster": {
    "pools": [{"node": "dgx_h100", "nodes": 1}, {"node": "dgx_a100_80gb", "nodes": 1}],
    "across": "data", "fabric": "rail_optimised"},
  "parallelism": {"tensor": 4, "sharding": "zero1"},
  "batch": {"sequences": 64, "tokens": 4096}
})";

using Sets = std::vector<std::string>;

Scenario two_kinds(const Sets& set = {}) {
  static const PresetStore presets;
  return read_scenario("two.json", kTwoKinds, presets, {.set = set});
}
Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}
double step_of(const Sets& set = {}) { return simulate_step(two_kinds(set)).step_s; }

const std::string kSlow = R"(cluster={"node": "dgx_a100_80gb", "nodes": 2, "fabric": "ideal"})";
const std::string kFast = R"(cluster={"node": "dgx_h100", "nodes": 2, "fabric": "ideal"})";
const std::string kSame =
    R"(cluster.pools=[{"node": "dgx_h100", "nodes": 1}, {"node": "dgx_h100", "nodes": 1}])";
/// Alike, but not to be seen from how they are written: two pools of one kind.
const std::string kAlike =
    R"(cluster.pools=[{"node": "dgx_h100", "nodes": 1},
                      {"node": {"preset": "dgx_h100"}, "nodes": 1}])";
const Sets kStages{"cluster.across=pipeline", "parallelism.pipeline=4"};

}  // namespace

TEST_CASE("pools: two of one kind are the job on that kind") {
  const std::string ideal = R"(cluster.fabric="ideal")";
  for (const Sets& cut : {Sets{}, kStages}) {
    const StepReport one = simulate_step(two_kinds({kFast, cut.empty() ? "about=" : cut[1]}));
    CHECK(two_kinds(with(cut, {kSame})).pools.empty());
    const StepReport same = simulate_step(two_kinds(with(cut, {ideal, kSame})));
    CHECK(same.step_s == one.step_s);
    CHECK(same.seconds == one.seconds);
    const Scenario alike = two_kinds(with(cut, {ideal, kAlike}));
    REQUIRE(alike.pools.size() == 2);
    const StepReport two = simulate_step(alike);
    CHECK(two.step_s == one.step_s);
    CHECK(two.mfu_full == one.mfu_full);
    for (std::size_t b = 0; b < kBuckets; ++b) {
      CHECK(two.seconds[b] == test::near(one.seconds[b]).epsilon(1e-12));
    }
    CHECK(check_memory(alike).peak.needed() ==
          check_memory(two_kinds({kFast, cut.empty() ? "about=" : cut[1]})).peak.needed());
  }
}

TEST_CASE("pools: equal parts of the batch take as long as on the slower kind alone") {
  CHECK(step_of({"cluster.fabric=ideal"}) == step_of({kSlow}));
  CHECK(step_of({"cluster.fabric=ideal"}) > 2 * step_of({kFast}));
  const StepReport r = simulate_step(two_kinds());
  CHECK(r.pacing_pool == 1);
  CHECK(r.pools[0].waiting_s > 0.5 * r.step_s);
  CHECK(r.pools[1].waiting_s < 0.01 * r.step_s);
}

TEST_CASE("pools: folded is unfolded, and each pool's GPU-seconds add up") {
  const std::string nics =
      R"(cluster.pools=[{"node": "dgx_h100", "nodes": 3},
          {"node": {"preset": "dgx_h100", "nic_bandwidth": "100 Gb/s"}, "nodes": 5}])";
  const std::string boundary =
      R"(cluster.pools=[{"node": "dgx_h100", "nodes": 3}, {"node": "dgx_a100_80gb", "nodes": 1}])";
  const std::vector<Sets> jobs{
      {},
      kStages,
      with(kStages, {"parallelism.layers_per_stage=balanced"}),
      {"batch.micro_batches=balanced"},
      {boundary, "batch.micro_batches=[10,9,8,11,7,9,5,5]"},
      {boundary, "cluster.across=pipeline", "parallelism.pipeline=4", "parallelism.tensor=2"},
      {nics, "batch.sequences=128"},
      {nics, "cluster.across=pipeline", "parallelism.pipeline=8", "parallelism.virtual_stages=2"},
      {boundary, "parallelism.sharding=zero3"},
      {boundary, "stragglers=[{\"gpu\": 9, \"slowdown\": 1.5}]", "batch.micro_batches=balanced"},
  };
  for (const Sets& set : jobs) {
    CAPTURE(set.empty() ? "equal" : set.front() + (set.size() > 1 ? " " + set[1] : ""));
    const Scenario scenario = two_kinds(set);
    const StepReport folded = simulate_step(scenario);
    const StepReport unfolded = simulate_step(scenario, {.folding = Folding::unfolded});
    // Shares of a link that are equal on paper differ in their last bits.
    CHECK(folded.step_s == test::near(unfolded.step_s).epsilon(1e-9));
    CHECK(folded.actors_simulated <= unfolded.actors_simulated);
    int gpus = 0;
    double sum = 0;
    for (std::size_t i = 0; i < folded.pools.size(); ++i) {
      const PoolReport& pool = folded.pools[i];
      gpus += pool.gpus;
      sum += pool.gpus * std::accumulate(pool.seconds.begin(), pool.seconds.end(), 0.0);
      CHECK(pool.waiting_s == test::near(unfolded.pools[i].waiting_s).epsilon(1e-9));
    }
    CHECK(gpus == scenario.gpus());
    CHECK(sum / gpus == test::near(folded.step_s).epsilon(1e-9));
  }
}

TEST_CASE("balanced batch: the harmonic law of speeds") {
  // What a micro batch takes, start and end of the step aside.
  const auto slope = [](const std::string& cluster, const std::string& micro) {
    return (step_of({cluster, micro, "batch.sequences=1024"}) -
            step_of({cluster, micro, "batch.sequences=512"})) /
           512;
  };
  const std::string even = "batch.micro=1", balanced = "batch.micro_batches=balanced";
  const double fast = slope(kFast, even), slow = slope(kSlow, even);
  const double both = slope("cluster.fabric=ideal", balanced);
  // Half of the GPUs each: of a step's sequences a GPU of either kind does its speed's part.
  const double law = 2 / (1 / fast + 1 / slow);
  CHECK(both == test::near(law).epsilon(0.005));  // a micro batch of 180
  const Scenario s = two_kinds({balanced, "batch.sequences=1024"});
  CHECK(std::accumulate(s.micro_batches.begin(), s.micro_batches.end(), 0) == 1024);
  const double ratio = static_cast<double>(s.micro_batches.front()) / s.micro_batches.back();
  CHECK(ratio == test::near(slow / fast).epsilon(0.02));
}

TEST_CASE("uneven batch: tokens are counted once, and no better split is near the balanced one") {
  const Scenario balanced = two_kinds({"batch.micro_batches=balanced"});
  const StepReport best = simulate_step(balanced);
  CHECK(best.tokens_per_step == 64 * 4096.0);
  CHECK(best.model_flops_full == simulate_step(two_kinds()).model_flops_full);
  const int fast = balanced.micro_batches.front();
  for (const int moved : {-2, -1, 1, 2}) {
    const std::string split = "batch.micro_batches=[" + std::to_string(fast + moved) + "," +
                              std::to_string(32 - fast - moved) + "]";
    CHECK(step_of({split}) >= 0.999 * best.step_s);
  }
  // A replica with a slow GPU gets less, on equal nodes too.
  const Scenario slow = two_kinds(
      {kFast, "batch.micro_batches=balanced", R"(stragglers=[{"gpu": 5, "slowdown": 3}])"});
  CHECK(slow.micro_batches == std::vector<int>{20, 6, 19, 19});
}

TEST_CASE("balanced layers: the best of all splits of two stages, within memory") {
  const Sets stages{"cluster.across=pipeline", "parallelism.pipeline=2", "cluster.fabric=ideal"};
  const Scenario balanced = two_kinds(with(stages, {"parallelism.layers_per_stage=balanced"}));
  double best = 1e9;
  int best_layers = 0;
  for (int first = 1; first < 32; ++first) {
    const std::string split = "parallelism.layers_per_stage=[" + std::to_string(first) + "," +
                              std::to_string(32 - first) + "]";
    const double step = step_of(with(stages, {split}));
    if (step < best) best = step, best_layers = first;
  }
  const std::vector<int>& split = balanced.job.parallelism.layers_per_stage;
  CHECK(split == std::vector<int>{best_layers, 32 - best_layers});
  CHECK(split.front() > split.back());
  // Where it has little memory, the fast kind holds what fits.
  const std::string small =
      R"(cluster.pools=[
          {"node": {"preset": "dgx_h100", "gpu": {"hbm_capacity": "24 GB"}}, "nodes": 1},
                        {"node": "dgx_a100_80gb", "nodes": 1}])";
  const Scenario tight =
      two_kinds(with(stages, {small, "batch.micro=2", "parallelism.layers_per_stage=balanced"}));
  const std::vector<int> fits = tight.job.parallelism.layers_per_stage;
  CHECK(fits.front() < split.front());
  CHECK(check_memory(tight).fits);
  const std::string one_more = "parallelism.layers_per_stage=[" + std::to_string(fits.front() + 1) +
                               "," + std::to_string(fits.back() - 1) + "]";
  CHECK_FALSE(check_memory(two_kinds(with(stages, {small, "batch.micro=2", one_more}))).fits);
}

TEST_CASE("pools: peaks add up, prices are a mean, and memory is each kind's own") {
  const Scenario s = two_kinds();
  const StepReport r = simulate_step(s);
  CHECK(r.peak_flops_per_gpu == test::near((989.4e12 + 312e12) / 2).epsilon(1e-3));
  CHECK(r.mfu_full == test::near(r.model_flops_full / r.step_s / (16 * r.peak_flops_per_gpu)));
  const std::string priced =
      R"(cluster.pools=[{"node": {"preset": "dgx_h100", "usd_per_gpu_hour": 4}, "nodes": 3},
                        {"node": {"preset": "dgx_h100", "usd_per_gpu_hour": 2}, "nodes": 1}])";
  CHECK(two_kinds({priced}).usd_per_gpu_hour == 3.5);
  CHECK_FALSE(s.usd_per_gpu_hour);
  const std::string small =
      R"(cluster.pools=[{"node": "dgx_h100", "nodes": 1},
                        {"node": {"preset": "dgx_a100_80gb", "gpu": {"hbm_capacity": "8 GB"}},
                         "nodes": 1}])";
  const Scenario tight = two_kinds({small});
  const std::vector<PoolMemory> memory = pool_memory(tight);
  CHECK(memory[0].fits());
  CHECK_FALSE(memory[1].fits());
  CHECK(tightest_pool(memory) == 1);
  CHECK_FALSE(check_memory(tight).fits);
}

TEST_CASE("pools: what passes between kinds goes at the slower NIC") {
  // Two stages, and nothing to hide messages behind: each is on the critical path.
  const auto exposed = [](const std::string& first, const std::string& second) {
    const auto pool = [](const std::string& rate) {
      return R"({"node": {"preset": "dgx_h100", "nic_bandwidth": ")" + rate + R"("}, "nodes": 1})";
    };
    return simulate_step(two_kinds({"cluster.pools=[" + pool(first) + "," + pool(second) + "]",
                                    "cluster.across=pipeline", "parallelism.pipeline=2",
                                    "parallelism.tensor=8", "batch.sequences=1"}))
        .seconds[static_cast<std::size_t>(Bucket::pipeline_exposed)];
  };
  const double slow = exposed("50 Gb/s", "50 Gb/s"), fast = exposed("400 Gb/s", "400 Gb/s");
  CHECK(slow > 4 * fast);
  CHECK(exposed("50 Gb/s", "400 Gb/s") == slow);
  CHECK(exposed("400 Gb/s", "50 Gb/s") == slow);
}

TEST_CASE("pools: what does not fit together is refused at its place") {
  struct Case {
    Sets set;
    std::string pointer, allowed;
  };
  const std::string v100 =
      R"(cluster.pools=[{"node": "dgx_h100", "nodes": 1}, {"node": "dgx_v100", "nodes": 1}])";
  const std::vector<Case> cases{
      {{v100}, "/cluster/pools/1/node", "a node of 8 NIC ports"},
      {{"cluster.pools=[]"}, "/cluster/pools", "a pool of nodes at least"},
      {{"cluster.node=dgx_h100"}, "/cluster/node", "no such key beside \"pools\""},
      {{"cluster.across=tensor"}, "/cluster/across", "pipeline, data"},
      {{R"(cluster={"node": "dgx_h100", "across": "data"})"}, "/cluster/across", "no such key"},
      {{"parallelism.tensor=16"}, "/cluster/pools", "whole groups of 16 GPUs"},
      {{"precision=fp8"}, "/precision", "a100_sxm4_80gb has no other"},
      {{"rl={}"}, "/rl", "no such key beside \"cluster.pools\": "},
      {{"batch.micro_batches=[9,9]"}, "/batch/micro_batches", "64 sequences in all"},
      {{"batch.micro_batches=[30,2,0]"}, "/batch/micro_batches/2", "from 1"},
      {{"batch.micro_batches=[30,1,1]"}, "/batch/micro_batches", "4 elements (data), or 2 (pools)"},
      {{"batch.micro_batches=balance"}, "/batch/micro_batches", "\"balanced\""},
      {{"batch.micro_batches=[20,12]", "parallelism.sharding=zero3"},
       "/batch/micro_batches",
       "sharding is zero3"},
      {{"batch.micro_batches=[20,12]", "parallelism.sharding=zero2"},
       "/batch/micro_batches",
       "sharding is zero2"},
      {{"batch.micro_batches=balanced", "batch.sequences=3"},
       "/batch/sequences",
       "leaves each of 4 replicas a micro batch"},
      {with(kStages, {"parallelism.layers_per_stage=balanced", "parallelism.virtual_stages=2"}),
       "/parallelism/layers_per_stage", "several chunks"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.set.front());
    InputProblem problem;
    try {
      (void)two_kinds(c.set);
    } catch (const InputError& error) {
      problem = error.problem();
    }
    CHECK(problem.pointer == c.pointer);
    CHECK_MESSAGE(problem.allowed.find(c.allowed) != std::string::npos, problem.allowed);
  }
  CHECK_THROWS_AS((void)tune(two_kinds(), {}), InputError);
}

TEST_CASE("balanced layers: a stage with a slow GPU gets fewer layers") {
  // Two stages of equal GPUs, one of the first's three times as slow, and 32 layers of 202 million
  // weights. The output projection, of 131 million, is two thirds of a layer: 3 x 8 against 24 +
  // 2/3 is the best, as 3 x 9 would take 27.
  const Scenario s = two_kinds({kFast, "parallelism.pipeline=2", "parallelism.tensor=8",
                                "parallelism.layers_per_stage=balanced",
                                R"(stragglers=[{"gpu": 5, "slowdown": 3}])"});
  CHECK(s.job.parallelism.layers_per_stage == std::vector<int>{8, 24});
}

TEST_CASE("balanced batch: replicas whose pipeline fills more slowly get less for that too") {
  // Two replicas of four stages of eight layers; the first is half as fast throughout. A stage
  // takes 1, the last 1.08 with the output projection, so that n micro batches take n x 1.08 + 3,
  // and twice that in the slow one. Of 33, 10 take 27.6 and 23 take 27.8; any other way takes
  // longer.
  std::string slow;
  for (int gpu = 0; gpu < 16; ++gpu) {
    if (gpu / 2 % 2 == 1) continue;  // tensor-parallel pairs of the replicas, in turn
    slow += (slow.empty() ? "" : ", ") + std::string(R"({"gpu": )") + std::to_string(gpu) +
            R"(, "slowdown": 2})";
  }
  const Scenario s =
      two_kinds({kFast, "parallelism.pipeline=4", "parallelism.tensor=2", "batch.sequences=33",
                 "batch.micro_batches=balanced", "stragglers=[" + slow + "]"});
  CHECK(s.micro_batches == std::vector<int>{10, 23});
}

TEST_CASE("balanced layers: tokens predicted beside the next weigh on the last stage") {
  // Each has a layer of 202 million weights, an output projection of 131 and a product of 34 that
  // joins it: 1.81 layers. Of 32 + 4 x 1.81 + 0.65 the last of two stages gets half, 19.9: twelve
  // layers, or 19.9 in all.
  const Scenario s = two_kinds({kFast, "parallelism.pipeline=2", "parallelism.tensor=8",
                                "parallelism.layers_per_stage=balanced", "stack=megatron_core",
                                R"(model={"preset": "llama2_7b", "predicted_tokens": 4})"});
  CHECK(s.job.parallelism.layers_per_stage == std::vector<int>{20, 12});
}

}  // namespace lockstep
