#include "models/workload/operations.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/workload/flops.hpp"
#include "sim/scenario/read_scenario.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kJob = R"({
  "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
  "parallelism": {"tensor": 4, "pipeline": 1, "data": 2},
  "batch": {"sequences": 2, "tokens": 8192}, "recompute": "none", "stack": "megatron_core"})";

Scenario scenario(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return read_scenario("job.json", kJob, presets, {set});
}
WorkloadContext context(const Scenario& s) {
  return {s.job, s.node, s.stack, s.transport, s.job.parallelism.tensor};
}

Flops useful(const std::vector<Operation>& operations) {
  Flops sum;
  for (const Operation& o : operations) sum += o.useful;
  return sum;
}
std::vector<Operation> of_phase(const std::vector<Operation>& operations, Phase phase) {
  std::vector<Operation> chosen;
  for (const Operation& o : operations) {
    if (o.phase == phase) chosen.push_back(o);
  }
  return chosen;
}

}  // namespace

TEST_CASE("operations: useful FLOP of all GPUs add up to the model FLOP of the step") {
  for (const int tensor : {1, 2, 4, 8}) {
    CAPTURE(tensor);
    const Scenario s =
        scenario({"parallelism.tensor=" + std::to_string(tensor),
                  "parallelism.data=" + std::to_string(8 / tensor), "batch.sequences=8"});
    const WorkloadContext c = context(s);
    const Flops gpu = s.job.model.layers * useful(layer_operations(c)) +
                      useful(embedding_operations(c)) + useful(head_operations(c));
    const Flops all = static_cast<double>(s.job.batch.sequences) * tensor * gpu;
    CHECK(all / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("operations: full recompute repeats each operation of a layer's forward pass") {
  for (const char* sequence : {"true", "false"}) {
    CAPTURE(sequence);
    const Scenario s =
        scenario({"recompute=full", std::string("parallelism.sequence=") + sequence});
    const std::vector<Operation> all = layer_operations(context(s));
    const std::vector<Operation> forward = of_phase(all, Phase::forward);
    const std::vector<Operation> again = of_phase(all, Phase::recompute);
    REQUIRE(forward.size() == again.size());
    for (std::size_t i = 0; i < forward.size(); ++i) {
      CAPTURE(forward[i].name);
      CHECK(again[i].name == forward[i].name);
      CHECK(again[i].time == forward[i].time);
      CHECK(again[i].useful == Flops{});
    }
    CHECK(of_phase(head_operations(context(s)), Phase::recompute).empty());
  }
}

TEST_CASE(
    "operations: selective recompute repeats unfused attention, and nothing of a flash kernel") {
  const Scenario flash = scenario({"recompute=selective"});
  CHECK(of_phase(layer_operations(context(flash)), Phase::recompute).empty());
  const Scenario unfused = scenario({"recompute=selective", "stack.attention=unfused"});
  const auto again = of_phase(layer_operations(context(unfused)), Phase::recompute);
  REQUIRE(again.size() == 1);
  CHECK(again[0].kind == OperationKind::attention);
}

TEST_CASE("operations: a product's backward pass has its FLOP twice, attention's too") {
  const Scenario s = scenario();
  const std::vector<Operation> all = layer_operations(context(s));
  const Flops forward = useful(of_phase(all, Phase::forward));
  CHECK(useful(of_phase(all, Phase::backward)) / forward == doctest::Approx(2).epsilon(1e-12));
}

TEST_CASE("operations: without tensor parallelism nothing is exchanged, with it every block is") {
  const auto collectives = [](const Scenario& s) {
    int count = 0;
    for (const Operation& o : layer_operations(context(s))) {
      count += o.kind == OperationKind::collective && o.phase == Phase::forward ? 1 : 0;
    }
    return count;
  };
  CHECK(collectives(
            scenario({"parallelism.tensor=1", "parallelism.data=8", "batch.sequences=8"})) == 0);
  CHECK(collectives(scenario({"parallelism.sequence=true"})) == 4);   // gather, scatter, 2 blocks
  CHECK(collectives(scenario({"parallelism.sequence=false"})) == 2);  // all-reduce
}

TEST_CASE("phase_cost: takes every operation of its direction once") {
  const Scenario s = scenario({"recompute=full"});
  const WorkloadContext c = context(s);
  const std::vector<Operation> all = layer_operations(c);
  for (const bool backward : {false, true}) {
    CAPTURE(backward);
    Seconds sum;
    for (const Operation& o : all) {
      if ((o.phase != Phase::forward) == backward) sum += o.time;
    }
    const PhaseCost cost = phase_cost(all, backward, 0, c);
    CHECK(cost.total() / sum == doctest::Approx(1).epsilon(1e-12));
    CHECK(cost.launch == Seconds{});
  }
}

TEST_CASE("phase_cost: a pass takes at least the launch time of its kernels") {
  const Scenario s = scenario({"stack.launch_interval=\"1 ms\""});
  const WorkloadContext c = context(s);
  const std::vector<Operation> all = layer_operations(c);
  const Seconds bare = phase_cost(all, false, 0, c).total();
  const double just_hidden = bare / Seconds{1e-3};
  CHECK(phase_cost(all, false, 0.99 * just_hidden, c).total() == bare);
  CHECK(phase_cost(all, false, 2 * just_hidden, c).total() / bare == doctest::Approx(2));
}

}  // namespace lockstep
