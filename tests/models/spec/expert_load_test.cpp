// Tokens on experts: skew, capacity, padding; and what they do to a layer, a step and its memory.
#include "models/spec/expert_load.hpp"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kExpertJob = R"({
  "model": {"preset": "llama3_8b", "layers": 2,
    "experts": {"count": 16, "per_token": 4, "ffn": 4096}},
  "cluster": {"node": "dgx_h100", "nodes": 1},
  "parallelism": {"tensor": 1, "data": 8, "expert": 8, "expert_dispatch": "all_to_all"},
  "batch": {"sequences": 16, "tokens": 4096}, "recompute": "none", "stack": "megatron_core"})";

Scenario routed(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return read_scenario("experts.json", kExpertJob, presets, {set});
}
double routed_step(const std::vector<std::string>& set) {
  return simulate_step(routed(set)).step_s;
}

/// Bytes of tokens that one GPU sends over NVLink in a layer.
Bytes exchanged(const Scenario& s) {
  const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 8};
  Bytes sum;
  for (const Operation& o : layer_operations(c, {.experts = true})) {
    if (is_of_experts(o.axis)) sum += o.nvlink;
  }
  return sum;
}

constexpr ExpertShape kSixteen{.count = 16, .per_token = 4, .ffn = 4096};

}  // namespace

TEST_CASE("expert load: without skew nothing is dropped from capacity 1 on, and 1 - F below") {
  for (const int ranks : {1, 2, 16}) {
    for (const double capacity : {0.0, 1.0, 1.5}) {
      const ExpertLoad load = expert_load(kSixteen, ranks, {.capacity = capacity});
      CHECK(load.kept == 1);
      CHECK(load.rows == 1);
      CHECK(load.fullest == 1);
    }
    const ExpertLoad half = expert_load(kSixteen, ranks, {.capacity = 0.5});
    CHECK(half.dropped() == doctest::Approx(0.5));
    CHECK(half.fullest == doctest::Approx(1));
  }
}

TEST_CASE("expert load: by hand, with Zipf's law and with a given imbalance") {
  // Four experts, one copy a token, i^-1: 12, 6, 4, 3 of 25; a limit of 1.2 x 25 / 4 = 7.5.
  const ExpertShape four{.count = 4, .per_token = 1, .ffn = 1};
  const ExpertLoad free = expert_load(four, 2, {.zipf = 1});
  CHECK(free.hottest == doctest::Approx(4 * 12.0 / 25));
  CHECK(free.fullest == doctest::Approx(2 * (12 + 13.0 / 3) / 25));
  const ExpertLoad limited = expert_load(four, 2, {.zipf = 1, .capacity = 1.2});
  CHECK(limited.kept == doctest::Approx((7.5 + 13) / 25));
  CHECK(limited.fullest == doctest::Approx(2 * (7.5 + 13.0 / 3) / (7.5 + 13)));
  // Two copies a token: nobody gets more than half of all copies.
  const ExpertShape two{.count = 4, .per_token = 2, .ffn = 1};
  CHECK(expert_load(two, 4, {.zipf = 10}).hottest == doctest::Approx(2));
  // A rank with twice its share, of which an expert takes 1.25 times the mean: 1.25 / 8 of 2 / 8.
  const ExpertLoad given = expert_load(kSixteen, 8, {.imbalance = 2, .capacity = 1.25});
  CHECK(given.kept == doctest::Approx(1 - 0.75 / 8));
  CHECK(given.fullest == doctest::Approx(1.25 / given.kept));
  CHECK(expert_load(kSixteen, 1, {.imbalance = 2}).fullest == 1);  // one rank has all
}

TEST_CASE("expert load: a capacity of the hottest expert's load is dropless, one below is not") {
  for (const double zipf : {0.3, 0.7, 1.2}) {
    CAPTURE(zipf);
    const ExpertLoad free = expert_load(kSixteen, 8, {.zipf = zipf});
    const ExpertLoad enough =
        expert_load(kSixteen, 8, {.zipf = zipf, .capacity = free.hottest * (1 + 1e-12)});
    CHECK(enough.kept == 1);
    CHECK(enough.fullest == free.fullest);
    const ExpertLoad less =
        expert_load(kSixteen, 8, {.zipf = zipf, .capacity = free.hottest * 0.99});
    CHECK(less.kept < 1);
    CHECK(less.fullest < free.fullest);
    CHECK(less.kept == less.rows);
  }
}

TEST_CASE("capacity: bounds time, memory and exchange of a skewed step") {
  const std::string skew = "routing.zipf=1", factor = "routing.capacity_factor=";
  const double even = routed_step({}), free = routed_step({skew});
  const double one = routed_step({skew, factor + "1"}), two = routed_step({skew, factor + "2"});
  CHECK(one < two);
  CHECK(two < free);
  CHECK(one < even);  // dropped tokens are no work
  CHECK(routed_step({factor + "1"}) == even);
  CHECK(routed_step({skew, factor + "4"}) == free);  // every token
  const auto activations = [](const std::vector<std::string>& set) {
    const Scenario s = routed(set);
    return peak_memory(s.job, s.stack, 0).activations;
  };
  CHECK(activations({skew}) > activations({skew, factor + "2"}));
  CHECK(activations({skew, factor + "1"}) < activations({}));
  const ExpertLoad load = expert_load(routed({skew, factor + "1"}).job);
  CHECK(exchanged(routed({skew, factor + "1"})) / exchanged(routed()) ==
        doctest::Approx(load.kept));
  // Model FLOP of all GPUs are those of the copies that are kept.
  const Scenario s = routed({skew, factor + "1", "routing.pad_to_capacity=true"});
  const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 8};
  Flops gpu;
  for (const Operation& o : head_operations(c)) gpu += o.useful;
  for (const Operation& o : layer_operations(c, {.experts = true})) gpu += 2.0 * o.useful;
  CHECK(16.0 * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("capacity: padded experts take the same time whatever the skew") {
  const std::string padded = "routing.pad_to_capacity=true", factor = "routing.capacity_factor=";
  for (const char* capacity : {"1", "1.5"}) {
    const double even = routed_step({padded, factor + capacity});
    for (const char* skew : {"routing.zipf=0.8", "routing.imbalance=1.7"}) {
      CHECK(routed_step({skew, padded, factor + capacity}) == even);
    }
  }
  CHECK(routed_step({padded, factor + "1"}) == routed_step({}));
  CHECK(routed_step({padded, factor + "1.5"}) > routed_step({}));
  CHECK(exchanged(routed({padded, factor + "1.5"})) / exchanged(routed()) == doctest::Approx(1.5));
}

TEST_CASE("capacity: a host that pads experts waits for no counts") {
  // Hosts that take 100 ms a layer for the counts: 33 of them forward, more than the GPU works.
  const std::string waits = "stack.expert_host_layer=100 ms", none = "stack.expert_host_layer=0 s";
  const std::string others = "stack.expert_host_expert=0 s", capacity = "routing.capacity_factor=1";
  const std::string padded = "routing.pad_to_capacity=true";
  CHECK(routed_step({waits, others}) > 0.2);  // two layers
  CHECK(routed_step({waits, others, capacity}) == routed_step({waits, others}));
  CHECK(routed_step({waits, others, capacity, padded}) ==
        routed_step({none, others, capacity, padded}));
}

TEST_CASE("capacity: what cannot be is refused in one line") {
  using Case = std::pair<std::vector<std::string>, std::string>;
  for (const auto& [set, expected] : std::vector<Case>{
           {{"routing.capacity_factor=4.5"},
            "/routing/capacity_factor: found 4.5 (--set routing.capacity_factor=4.5); allowed: at "
            "most 4 (experts over those of a token)"},
           {{"routing.pad_to_capacity=true"}, "where there is no capacity_factor"},
           {{"routing.capacity_factor=1", "routing.pad_to_capacity=true",
             "parallelism.expert_dispatch=two_level"},
            "/routing/pad_to_capacity: found true"},
           {{"model=llama3_8b", "parallelism.expert=1", "routing.capacity_factor=1"},
            "as the model has no experts"},
       }) {
    std::string said;
    try {
      (void)routed(set);
    } catch (const InputError& error) {
      said = error.what();
    }
    CAPTURE(said);
    CHECK(said.find(expected) != std::string::npos);
  }
}

TEST_CASE("packed sequences: attention of samples is tokens x their length, all else as before") {
  const auto attention = [](const std::vector<std::string>& set, OperationKind kind) {
    const Scenario s = routed(set);
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, s.job.parallelism.context, 8};
    Flops sum;
    for (const Operation& o : layer_operations(c, {})) {
      if (o.kind == kind) sum += o.useful;
    }
    return sum;
  };
  const Flops whole = attention({}, OperationKind::attention);
  const auto ratio = [&](const std::string& samples) {
    return double{attention({"batch.sample_tokens=" + samples}, OperationKind::attention) / whole};
  };
  CHECK(ratio("4096") == 1);
  CHECK(ratio("512") == doctest::Approx(1.0 / 8));
  CHECK(ratio("[512, 512]") == doctest::Approx(1.0 / 8));
  CHECK(ratio("[1024, 3072]") == doctest::Approx(1.0 / 16 + 9.0 / 16));
  CHECK(attention({"batch.sample_tokens=512"}, OperationKind::product) ==
        attention({}, OperationKind::product));
  for (const char* exchange : {"ring", "all_gather", "all_to_all"}) {
    const std::vector<std::string> cut{"parallelism.context=2", "parallelism.data=4",
                                       std::string("parallelism.context_exchange=") + exchange};
    std::vector<std::string> packed = cut;
    packed.emplace_back("batch.sample_tokens=512");
    CHECK(attention(packed, OperationKind::attention) / attention(cut, OperationKind::attention) ==
          doctest::Approx(1.0 / 8));
  }
  CHECK(routed_step({"batch.sample_tokens=4096"}) == routed_step({}));
  CHECK(routed_step({"batch.sample_tokens=256"}) < routed_step({"batch.sample_tokens=1024"}));
  CHECK_THROWS_AS((void)routed({"batch.sample_tokens=4097"}), InputError);
  CHECK_THROWS_AS((void)routed({"batch.sample_tokens=[]"}), InputError);
  CHECK_THROWS_AS((void)routed({"batch.sample_tokens=64", "stack.attention=unfused"}), InputError);
}

}  // namespace lockstep
