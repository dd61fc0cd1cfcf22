// Optimiser, weights and activations on the host.
#include "models/layer/offload.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/memory.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

Scenario offloading(const std::vector<std::string>& set) {
  constexpr std::string_view kText = R"({
    "model": "llama2_7b", "cluster": {"node": "dgx_a100_80gb", "nodes": 1},
    "parallelism": {"data": 8, "sharding": "zero2"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096},
    "recompute": "full", "stack": {"preset": "deepspeed"}})";
  static const PresetStore presets;
  return read_scenario("offload.json", kText, presets, {set});
}
double host_exposed(const StepReport& report) {
  return report.seconds[static_cast<std::size_t>(Bucket::host_exposed)];
}
const std::string kZero3 = "parallelism.sharding=zero3";

}  // namespace

TEST_CASE(
    "offload: a pass waits for what its copies take beyond it, and for nothing on fast links") {
  for (const std::string_view link : {"0.5 GB/s", "5 GB/s", "450 GB/s"}) {
    CAPTURE(link);
    const Scenario s = offloading({R"(offload={"optimiser": 1, "activation_layers": 16})",
                                   "cluster.node.host.bandwidth=\"10 TB/s\"",
                                   "cluster.node.gpu.pcie_bandwidth=" + std::string(link)});
    const Scenario none = offloading({"cluster.node.gpu.pcie_bandwidth=" + std::string(link)});
    const auto layer = [](const Scenario& of) {
      return make_pieces(workload_context(of, Placement{placement_spec(of)})).layers[0];
    };
    const Piece moved = layer(s), kept = layer(none);
    const Bytes saved = 0.5 * saved_per_layer(s.job, s.stack);  // 16 of 32 layers
    const Bytes gradients{2 * kept.weights.all / 8};
    const std::array<Seconds, 2> copies{saved / host_copy_rate(s.node),
                                        std::max(saved, gradients) / host_copy_rate(s.node)};
    const std::array passes{Pass::forward, Pass::backward};
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Seconds beyond = std::max(Seconds{}, copies[i] - kept.cost(passes[i]).total());
      CHECK(moved.cost(passes[i]).copies.base_units() == doctest::Approx(beyond.base_units()));
    }
    const StepReport report = simulate_step(s), without = simulate_step(none);
    CHECK((host_exposed(report) > 0) == (link == "0.5 GB/s" || link == "5 GB/s"));
    CHECK(host_exposed(without) == 0);
    CHECK(report.step_s >= without.step_s + host_exposed(report));
  }
}

TEST_CASE("offload: what leaves the GPU is on the host") {
  const Scenario none = offloading({}), all = offloading({"offload.optimiser=1"}),
                 half = offloading({"offload.optimiser=50 %"});
  const auto peak = [](const Scenario& s) { return peak_memory(s.job, s.stack, 0); };
  const double parameters = total_parameters(none.job.model) / 8;
  CHECK(peak(none).host == Bytes{});
  CHECK(peak(all).optimiser == Bytes{});
  CHECK(peak(half).optimiser.base_units() ==
        doctest::Approx(0.5 * peak(none).optimiser.base_units()));
  CHECK(peak(all).host.base_units() == doctest::Approx(16 * parameters).epsilon(1e-3));
  CHECK(peak(half).host.base_units() == doctest::Approx(0.5 * peak(all).host.base_units()));
  // Activations: all but those of two layers, one at work and one on its way.
  const Scenario kept = offloading({"recompute=none"});
  const Scenario moved = offloading({"recompute=none", "offload.activation_layers=32"});
  const Bytes left = peak(moved).activations;
  CHECK(left.base_units() ==
        doctest::Approx(2 * saved_per_layer(kept.job, kept.stack).base_units()));
  CHECK(peak(moved).host.base_units() == doctest::Approx(peak(kept).activations.base_units()));
}

TEST_CASE("offload: weights that live on the host are kept beside the optimiser's, of full width") {
  const Scenario s = offloading({R"(offload={"optimiser": 1})"});
  TrainingJob job = s.job;
  StackSpec stack = s.stack;
  const auto beside = [&](double parameter_bytes) {
    stack.offload.parameter_bytes = parameter_bytes;
    job.offload.parameters = false;
    const Bytes without = host_states(job, stack, 1000);
    job.offload.parameters = true;
    return host_states(job, stack, 1000) - without;
  };
  CHECK(beside(2) == Bytes{2000});
  CHECK(beside(1) == Bytes{1000});
  CHECK(beside(4) == Bytes{});  // the optimiser's own are what comes up
}

TEST_CASE("offload: no published run with its optimiser on the host says how far off one is") {
  const PresetStore presets;
  const auto known = [&](const std::vector<std::string>& set) {
    return interval_of(offloading(set), presets).known;
  };
  const std::string stack = "stack=\"megatron_core\"";
  CHECK(known({stack}) != SoftwareKnown::none);
  CHECK(known({stack, "offload.optimiser=0.5"}) == SoftwareKnown::none);
}

TEST_CASE("offload: the host's Adam takes what CPU-Adam was measured to take") {
  // 10 billion weights on the two processors of a DGX-2: 2.57 s (arXiv:2101.06840).
  const PresetStore presets;
  TrainingJob job;
  job.offload.optimiser = 1;
  const NodeSpec& node = presets.node("dgx2_v100");
  OffloadPolicy policy = presets.stack("deepspeed", "").spec.offload;
  const Seconds on_gpu{0.5};
  CHECK(offloaded_step(job, policy, node, 1e10, on_gpu).base_units() ==
        doctest::Approx(2.57).epsilon(0.02));
  const Seconds beside = offloaded_step(job, policy, node, 1e10, on_gpu);
  policy.overlaps_step = false;
  CHECK(offloaded_step(job, policy, node, 1e10, on_gpu) > beside);
  // Eight GPUs have an eighth of the host's memory bandwidth each.
  policy.overlaps_step = true;
  job.parallelism.data = 8;
  CHECK(offloaded_step(job, policy, node, 1e10 / 8, on_gpu).base_units() ==
        doctest::Approx(beside.base_units()));
  job.offload.optimiser = 0;
  CHECK(offloaded_step(job, policy, node, 1e10, on_gpu) == on_gpu);
}

TEST_CASE(
    "offload: copies reach what pinned memory is seen to reach, and share the host's memory") {
  // Usual rates of copies of pinned memory over 16 lanes, GB/s: what PCIe 3.0, 4.0 and 5.0 could
  // carry, and between what copies are measured.
  struct Lanes {
    double carried, least, most;
  };
  NodeSpec node;
  node.gpus = 8;
  node.host = HostSpec{};
  node.host->bandwidth = gigabytes_per_second(8 * 1000);
  for (const Lanes& lanes : {Lanes{15.75, 12, 13}, Lanes{31.5, 25, 26}, Lanes{63, 50, 55}}) {
    node.gpu.pcie_bandwidth = gigabytes_per_second(lanes.carried);
    CHECK(host_copy_rate(node) >= gigabytes_per_second(lanes.least));
    CHECK(host_copy_rate(node) <= gigabytes_per_second(lanes.most));
  }
  // A link of 1 TB/s for each of eight GPUs in front of 200 GB/s: an eighth of these.
  node.gpu.pcie_bandwidth = gigabytes_per_second(1000);
  node.host->bandwidth = gigabytes_per_second(200);
  CHECK(host_copy_rate(node) == gigabytes_per_second(25));
  CHECK(copy_time({.down = Bytes{50e9}, .up = Bytes{10e9}}, node) == Seconds{2});
}

TEST_CASE("offload: GPU and host do their parts of the optimiser's step side by side") {
  // One GPU, and a host of 100 GB/s behind a far faster link. A quarter of 4e9 weights is the
  // host's: 4 GB of gradients come down in 40 ms, 2 GB of weights go up in 20 ms, and Adam moves 32
  // GB at half of the memory's rate, in 640 ms.
  NodeSpec node;
  node.gpus = 1;
  node.gpu.pcie_bandwidth = gigabytes_per_second(10'000);
  node.host = HostSpec{};
  node.host->bandwidth = gigabytes_per_second(100);
  TrainingJob job;
  job.offload.optimiser = 0.25;
  OffloadPolicy policy;
  const auto step_s = [&](double on_gpu_s) {
    return offloaded_step(job, policy, node, 4e9, Seconds{on_gpu_s}).base_units();
  };
  CHECK(step_s(0.1) == doctest::Approx(0.04 + 0.64 + 0.02));
  policy.overlaps_step = true;
  CHECK(step_s(0.1) == doctest::Approx(0.64));
  // Three quarters are left to a GPU that takes 4 s for all of it: it is the slower one.
  CHECK(step_s(4) == doctest::Approx(3));
  // Gradients that left in the backward pass need no time here, nor weights that stay there.
  policy.overlaps_step = false;
  policy.gradients_in_backward = true;
  CHECK(step_s(0.1) == doctest::Approx(0.64 + 0.02));
  job.offload.parameters = true;
  CHECK(step_s(0.1) == doctest::Approx(0.64));
}

TEST_CASE("offload: memory of LLaMA 7B on eight A800 with DeepSpeed is as published") {
  // https://gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a: GB reserved at the peak.
  struct Offloaded {
    std::vector<std::string> set;
    double published;
  };
  const std::array rows{Offloaded{{"offload.optimiser=1"}, 16.9},
                        Offloaded{{kZero3, "batch.micro=2"}, 20.4},
                        Offloaded{{kZero3, "batch.micro=2", "offload.optimiser=1"}, 9.4}};
  for (const Offloaded& row : rows) {
    const Scenario s = offloading(row.set);
    const Bytes needed = peak_memory(s.job, s.stack, 0).needed();
    CHECK(double{needed / gibibytes(1)} == doctest::Approx(row.published).epsilon(0.12));
  }
}

TEST_CASE(
    "offload: weights that come up for their passes need zero3 and a link that is fast enough") {
  const std::string weights = R"(offload={"optimiser": 1, "parameters": true})";
  const std::vector<std::string> slow{kZero3, weights, "cluster.node.gpu.pcie_bandwidth=1 GB/s"};
  const StepReport exposed = simulate_step(offloading(slow));
  CHECK(host_exposed(exposed) > 0.1 * exposed.step_s);
  CHECK(host_exposed(simulate_step(offloading({kZero3, weights}))) < 0.01 * exposed.step_s);
  // Nothing comes up in the step itself.
  const Scenario states = offloading({kZero3, "offload.optimiser=1"});
  CHECK(plan_step(offloading({kZero3, weights})).stages[0].optimiser <=
        plan_step(states).stages[0].optimiser);
}

TEST_CASE("offload: mistakes are refused where they are") {
  struct Mistake {
    std::vector<std::string> set;
    std::string_view pointer, says;
  };
  const std::array mistakes{
      Mistake{{R"(offload={"optimiser": 1, "parameters": true})"},
              "#/offload/parameters",
              "false, unless sharding is zero3"},
      Mistake{{kZero3, "offload.parameters=true"},
              "#/offload/parameters",
              "false, unless optimiser is 1"},
      Mistake{{"offload.activation_layers=33"}, "#/offload/activation_layers", "at most 32"},
      Mistake{{"offload.optimizer=1"}, "#/offload/optimizer", "Did you mean \"optimiser\"?"},
      Mistake{{"offload.optimiser=2"}, "#/offload/optimiser", "allowed"},
      Mistake{{"offload.optimiser=1", R"(cluster.node.host.memory="80 GB")"},
              "#/offload",
              "at most 80 GB (memory of dgx_a100_80gb)"},
      Mistake{{"offload.optimiser=1", "cluster.node=grand_teton_h100"},
              "#/offload",
              "a node preset with \"host\""}};
  for (const Mistake& mistake : mistakes) {
    std::string problem = "none";
    try {
      (void)offloading(mistake.set);
    } catch (const InputError& error) {
      problem = error.what();
    }
    CAPTURE(problem);
    CHECK(problem.find(mistake.pointer) != std::string::npos);
    CHECK(problem.find(mistake.says) != std::string::npos);
  }
}

}  // namespace lockstep
