#include "models/layer/operations.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/layer/flops.hpp"
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
  const Parallelism& par = s.job.parallelism;
  return {s.job, s.node, s.stack, s.transport, par.tensor, par.context, par.expert};
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

TEST_CASE("operations: the same with context parallelism, experts, latent attention and windows") {
  constexpr const char* kExperts =
      R"(model.experts={"count":16,"per_token":4,"ffn":1024,"shared_ffn":2048,"leading_dense":1})";
  constexpr const char* kLatent =
      R"(model.latent_attention={"query_rank":512,"key_value_rank":256,"nope_dim":64,"rope_dim":32,
                                 "value_dim":96})";
  for (const std::vector<std::string>& changes : std::vector<std::vector<std::string>>{
           {"parallelism.tensor=2", "parallelism.context=2"},
           {"parallelism.tensor=2", "parallelism.context=2",
            "parallelism.context_exchange=all_gather"},
           {"parallelism.tensor=2", "parallelism.context=2",
            "parallelism.context_exchange=all_to_all"},
           {"parallelism.tensor=4", kExperts},
           {"parallelism.tensor=2", "parallelism.data=4", "parallelism.expert=8",
            "parallelism.expert_tensor=1", kExperts},
           {"parallelism.tensor=4", "parallelism.expert=4", "parallelism.expert_tensor=2",
            kExperts},
           {"parallelism.tensor=2", "parallelism.data=4", kLatent},
           {"model.window=512", "model.window_interval=3"},
       }) {
    CAPTURE(changes.back());
    std::vector<std::string> set = changes;
    set.emplace_back("batch.sequences=8");
    const Scenario s = scenario(set);
    const Parallelism& par = s.job.parallelism;
    const WorkloadContext c = context(s);
    Flops gpu = useful(embedding_operations(c)) + useful(head_operations(c));
    for (int i = 0; i < s.job.model.layers; ++i) {
      gpu += useful(layer_operations(c, s.job.model.kind(i)));
    }
    const Flops all = static_cast<double>(s.job.batch.sequences) * par.tensor * par.context * gpu;
    CHECK(all / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("operations: one expert that every token goes to is an MLP") {
  const Scenario dense = scenario();
  const Scenario one = scenario(
      {R"(model.experts={"count":1,"per_token":1,"ffn":14336})", "parallelism.expert_tensor=4"});
  const auto time_of = [](const Scenario& s, std::string_view name, Phase phase) {
    for (const Operation& o : layer_operations(context(s), s.job.model.kind(0))) {
      if (o.name == name && o.phase == phase) return o.time;
    }
    return Seconds{};
  };
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    CHECK(time_of(one, "activation", phase) == time_of(dense, "activation", phase));
  }
  CHECK(time_of(one, "expert_up", Phase::forward) == time_of(dense, "mlp_up", Phase::forward));
  CHECK(time_of(one, "expert_down.weight_gradient", Phase::backward) ==
        time_of(dense, "mlp_down.weight_gradient", Phase::backward));
}

TEST_CASE("operations: the fullest rank's further tokens are waited for, and booked apart") {
  const std::vector<std::string> even{R"(model.experts={"count":16,"per_token":4,"ffn":4096})",
                                      "parallelism.tensor=1", "parallelism.data=8",
                                      "batch.sequences=8", "parallelism.expert=8"};
  std::vector<std::string> uneven = even;
  uneven.emplace_back("routing.imbalance=1.5");
  const Scenario a = scenario(even), b = scenario(uneven);
  const PhaseCost balanced =
      phase_cost(layer_operations(context(a), {.experts = true}), false, {}, context(a));
  const PhaseCost hot =
      phase_cost(layer_operations(context(b), {.experts = true}), false, {}, context(b));
  CHECK(balanced.imbalance == Seconds{});
  CHECK(hot.useful == balanced.useful);
  Seconds expert_work;
  for (const Operation& o : layer_operations(context(a), {.experts = true})) {
    const bool of_expert =
        o.name.starts_with("expert_") || o.name == "permute" || o.name == "activation";
    if (of_expert && o.phase == Phase::forward && o.kind != OperationKind::collective) {
      expert_work += o.time;
    }
  }
  CHECK(hot.imbalance / expert_work == doctest::Approx(0.5));
  CHECK((hot.compute() - balanced.compute()) / hot.imbalance == doctest::Approx(1));
}

TEST_CASE("operations: one copy of a token for each NVLink domain, D (1 - (1 - 1/D)^k) of k") {
  const std::vector<std::string> all{R"(model.experts={"count":64,"per_token":8,"ffn":1024})",
                                     "parallelism.tensor=1",
                                     "cluster.nodes=4",
                                     "parallelism.data=32",
                                     "batch.sequences=32",
                                     "parallelism.expert=32"};
  std::vector<std::string> once = all;
  once.emplace_back("parallelism.expert_dispatch=two_level");
  const auto network = [](const Scenario& s) {
    Bytes sum;
    WorkloadContext c = context(s);
    c.expert_groups = 8;
    for (const Operation& o : layer_operations(c, {.experts = true})) {
      if (o.name == "dispatch" && o.phase == Phase::forward) sum += o.network;
    }
    return sum;
  };
  const double reached = 4 * (1 - std::pow(0.75, 8));
  CHECK(network(scenario(once)) / network(scenario(all)) == doctest::Approx(reached / 8));
}

TEST_CASE("operations: Transformer Engine makes the products of experts one by one") {
  const std::vector<std::string> eight{R"(model.experts={"count":8,"per_token":8,"ffn":1024})",
                                       "parallelism.tensor=1", "parallelism.data=8",
                                       "batch.sequences=8", "batch.tokens=1536"};
  // One expert that gets as many rows as each of the eight.
  std::vector<std::string> one = eight;
  one[0] = R"(model.experts={"count":1,"per_token":1,"ffn":1024})";
  const auto time_of = [](std::vector<std::string> set, const char* stack) {
    set.push_back(std::string("stack=") + stack);
    const Scenario s = scenario(set);
    for (const Operation& o : layer_operations(context(s), {.experts = true})) {
      if (o.name == "expert_up" && o.phase == Phase::forward) return o.time;
    }
    return Seconds{};
  };
  CHECK(time_of(eight, "megatron_core") / time_of(one, "megatron_core") == doctest::Approx(8));
  // In one kernel tiles of the next expert fill the SMs that a last wave leaves.
  CHECK(time_of(eight, "torchtitan") / time_of(one, "torchtitan") < 7.9);
}

TEST_CASE("operations: copies of tokens are padded apart in 8 bit, behind an all-to-all alone") {
  const auto permuted = [](const char* precision, const char* dispatch, const char* stack) {
    const Scenario s = scenario({R"(model.experts={"count":16,"per_token":4,"ffn":4096})",
                                 "parallelism.tensor=1", "parallelism.data=8", "batch.sequences=8",
                                 "parallelism.expert=8", std::string("precision=") + precision,
                                 std::string("parallelism.expert_dispatch=") + dispatch,
                                 std::string("stack=") + stack});
    for (const Operation& o : layer_operations(context(s), {.experts = true})) {
      if (o.name == "permute" && o.phase == Phase::forward) {
        return o.traffic.base_units() / s.stack.elementwise.slowdown / (4 * 8192.0 * 4096);
      }
    }
    return 0.0;
  };
  const double sorted = permuted("bf16", "all_to_all", "megatron_core");
  CHECK(permuted("fp8", "all_to_all", "megatron_core") == doctest::Approx(sorted + 8));
  CHECK(permuted("fp8", "two_level", "megatron_core") == doctest::Approx(sorted));
  CHECK(permuted("fp8", "all_to_all", "torchtitan") ==
        doctest::Approx(permuted("bf16", "all_to_all", "torchtitan")));
}

TEST_CASE("operations: a ring of context-parallel ranks hides behind long attention only") {
  const auto exposed = [](const std::string& tokens, const char* exchange) {
    const Scenario s =
        scenario({"parallelism.tensor=2", "parallelism.context=2", "batch.tokens=" + tokens,
                  "batch.sequences=2", std::string("parallelism.context_exchange=") + exchange});
    Seconds sum;
    WorkloadContext c = context(s);
    c.context_groups = 1;
    for (const Operation& o : layer_operations(c)) {
      if (o.axis == Axis::context && o.kind == OperationKind::collective) sum += o.time;
    }
    return sum;
  };
  CHECK(exposed("65536", "ring") == Seconds{});
  CHECK(exposed("1024", "ring") > Seconds{});
  CHECK(exposed("65536", "all_gather") > Seconds{});
  CHECK(exposed("65536", "all_to_all") > Seconds{});
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
    const PhaseCost cost = phase_cost(all, backward, {}, c);
    CHECK(cost.total() / sum == doctest::Approx(1).epsilon(1e-12));
    CHECK(cost.launch == Seconds{});
  }
}

TEST_CASE("phase_cost: a pass takes at least the time in which the host launches it") {
  const Scenario s = scenario();
  const WorkloadContext c = context(s);
  const std::vector<Operation> all = layer_operations(c);
  const Seconds bare = phase_cost(all, false, {}, c).total();
  CHECK(phase_cost(all, false, 0.99 * bare, c).total() == bare);
  CHECK(phase_cost(all, false, 2 * bare, c).total() / bare == doctest::Approx(2));
}

}  // namespace lockstep
