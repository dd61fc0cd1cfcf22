// Our own steps, written for peers and read back: the same trace, and the same step time.
#include "sim/trace/trace_of_step.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "sim/trace/formats/read_trace.hpp"
#include "sim/trace/formats/write_chakra.hpp"
#include "tests/sim/trace/sample_traces.hpp"

namespace lockstep {
namespace {

struct StepLayout {
  const char* model;
  int nodes, tensor, pipeline, data;
  const char* more;    ///< of the parallelism
  int sequences = 16;  ///< of a replica
};

Scenario step_scenario(const StepLayout& layout, const std::string& fabric = R"("ideal")") {
  const std::string text = fmt::format(
      R"({{"model": "{}", "cluster": {{"node": "dgx_h100", "nodes": {}, "fabric": {}}},
          "parallelism": {{"tensor": {}, "pipeline": {}, "data": {}{}}},
          "batch": {{"sequences": {}, "micro": 1, "tokens": 2048}}}})",
      layout.model, layout.nodes, fabric, layout.tensor, layout.pipeline, layout.data, layout.more,
      layout.sequences * layout.data);
  Scenario scenario = read_scenario("step.json", text, test::presets());
  // A trace has no word for stacks whose stages send and receive in turn.
  scenario.stack.communication.half_duplex_pipeline = false;
  return scenario;
}

Trace read_back(const Trace& trace, TraceReadOptions options) {
  options.groups = read_trace_groups("comm_groups.json", write_trace_groups(trace));
  std::vector<RankTrace> ranks;
  for (int r = 0; r < trace.ranks; ++r) {
    ranks.push_back(read_chakra(fmt::format("trace.{}.et", r), r, write_chakra(trace, r), options));
  }
  return join(std::move(ranks));
}

double seconds_of(const Trace& trace, int nodes) {
  return to_seconds(test::replayed(trace, test::trace_cluster(nodes)).end).base_units();
}

const std::vector<StepLayout>& layouts() {
  // A tied embedding (megatron_1_7b) between stages of one node would be priced as NVLink's here,
  // while the plan takes it to cross nodes.
  static const std::vector<StepLayout> all{
      {"megatron_1_7b", 1, 1, 1, 1, ""},
      {"llama2_7b", 1, 1, 8, 1, ""},
      {"megatron_1_7b", 2, 1, 1, 16, ""},
      {"megatron_1_7b", 2, 8, 1, 2, R"(, "sharding": "zero1")"},
      {"megatron_1_7b", 4, 2, 4, 4, ""},
      {"llama2_7b", 2, 1, 8, 2, R"(, "schedule": "gpipe")"},
      {"llama2_7b", 1, 1, 8, 1, R"(, "schedule": "zb_h1")"},
      {"llama2_7b", 1, 1, 4, 2, R"(, "schedule": "zb_v")"},
      {"llama2_7b", 1, 1, 4, 2, R"(, "schedule": "dualpipev")"},
      {"llama2_7b", 2, 1, 1, 16, R"(, "sharding": "zero3")"},
      {"llama2_7b", 2, 1, 1, 16, R"(, "sharding": "zero3", "shard_group": 8)"},
      {"llama2_7b", 2, 2, 1, 4, R"(, "context": 2)"},
      {"qwen3_30b_a3b", 2, 1, 1, 16, R"(, "expert": 8)"}};
  return all;
}

/// The step of `job` on the cluster, replayed from its trace, takes the step's time.
void check_as_long(const std::string& cluster, const std::string& job, double but = 1e-4) {
  const std::string text = R"({"cluster": )" + cluster + ", " + job + "}";
  const Scenario scenario = read_scenario("step.json", text, test::presets());
  const Cluster on = read_cluster(
      JsonCursor::parse("test", R"({"cluster": )" + cluster + "}").at("cluster"), test::presets());
  const double replayed = to_seconds(test::replayed(trace_of_step(scenario), on).end).base_units();
  CHECK(replayed == doctest::Approx(simulate_step(scenario).step_s).epsilon(but));
}

/// Four nodes, two a leaf, behind a quarter of their NICs' rate.
std::string thin_cluster(const std::string& routing) {
  return R"({"node": "dgx_h100", "nodes": 4, "fabric": {"kind": "fat_tree", "routing": ")" +
         routing + R"(", "leaf_ports_down": 16, "leaf_oversubscription": 4}})";
}

}  // namespace

TEST_CASE("trace_of_step: replayed on an ideal fabric it takes the step's time") {
  // One all-reduce stands for all of a segment's tensor-parallel ones, at the time of the plan; the
  // rest is the same model. What is left is rounding, and messages that share a pair of ranks.
  constexpr double kAsLong = 0.005;
  for (const StepLayout& layout : layouts()) {
    CAPTURE(layout.tensor);
    CAPTURE(layout.pipeline);
    CAPTURE(layout.data);
    const Scenario scenario = step_scenario(layout);
    const double own = simulate_step(scenario).step_s;
    const Trace trace = trace_of_step(scenario);
    CHECK(seconds_of(trace, layout.nodes) == doctest::Approx(own).epsilon(kAsLong));
    // What a peer reads is what we have.
    const Trace back = read_back(trace, {.gpu = scenario.node.gpu, .groups = {}});
    CHECK(seconds_of(back, layout.nodes) ==
          doctest::Approx(seconds_of(trace, layout.nodes)).epsilon(1e-6));
    CHECK(back.size() == trace.size());
  }
}

TEST_CASE("trace_of_step: a call that compute hides all but the end of takes no longer than that") {
  // Rings of keys and values between two GPUs: of each 0.35 us is left beside attention, and one
  // collective takes 9 us at least.
  check_as_long(R"({"node": "gb200_nvl72", "nodes": 1})",
                R"("model": {"layers": 2, "hidden": 1024, "heads": 16, "ffn": 1, "vocabulary": 1},
                   "parallelism": {"context": 2, "pipeline": 2},
                   "batch": {"sequences": 1, "tokens": 512},
                   "stack": {"communication": {"overlap_gradients": false,
                                               "overlap_parameters": false}})");
}

TEST_CASE("trace_of_step: a node with two members of a group sends no more than one with one") {
  // Replicas of six GPUs on nodes of eight: groups have two members on one node and one on each of
  // two others, and their rings leave each node once. Where the members of the fuller node both
  // sent all, a replay of it took 2.2 % longer, and larger ones on thin leaves 0.6 of the step.
  check_as_long(R"({"node": "dgx_a100_80gb", "nodes": 3, "fabric": {"kind": "dragonfly_plus",
                    "leaf_ports_down": 2, "group_switches": 4}})",
                R"("model": {"layers": 1, "hidden": 512, "heads": 2, "ffn": 2048,
                             "vocabulary": 8000},
                   "parallelism": {"tensor": 2, "pipeline": 3, "data": 4},
                   "batch": {"sequences": 12, "tokens": 2}, "stack": {"placement": "tp-pp-dp"})");
}

TEST_CASE("trace_of_step: replayed behind thin leaves it takes the step's time") {
  // Members of a group that sums gradients lie on both nodes of a replica, which share a leaf.
  const std::string fabric = R"({"kind": "fat_tree", "routing": "spray", "leaf_ports_down": 16,
                                 "leaf_oversubscription": 8})";
  const std::string text =
      R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": )" + fabric + "}}";
  const Cluster cluster =
      read_cluster(JsonCursor::parse("test", text).at("cluster"), test::presets());
  for (const StepLayout& layout :
       {StepLayout{"qwen3_30b_a3b", 4, 16, 1, 2, R"(, "expert": 8, "expert_tensor": 1)"},
        StepLayout{"qwen3_30b_a3b", 4, 1, 1, 32, R"(, "expert": 16)"}}) {
    CAPTURE(layout.tensor);
    CAPTURE(layout.more);
    const Scenario scenario = step_scenario(layout, fabric);
    const double replayed =
        to_seconds(test::replayed(trace_of_step(scenario), cluster).end).base_units();
    CHECK(replayed == doctest::Approx(simulate_step(scenario).step_s).epsilon(1e-3));
  }
}

TEST_CASE("trace_of_step: exchanges over thin leaves of one or two nodes take as long") {
  // Eight GPUs over one NIC's worth of uplinks: what compute covers elsewhere reaches beyond it,
  // and a ring of neighbours does not. What is left: ranks inside a ring go on before those at its
  // ends.
  for (const int ports : {8, 16}) {
    const std::string fabric = fmt::format(R"({{"kind": "fat_tree", "routing": "spray",
                                 "leaf_ports_down": {}, "leaf_oversubscription": 8}})",
                                           ports);
    const std::string text =
        R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": )" + fabric + "}}";
    const Cluster cluster =
        read_cluster(JsonCursor::parse("test", text).at("cluster"), test::presets());
    for (const StepLayout& layout :
         {StepLayout{"qwen3_30b_a3b", 4, 16, 1, 2, R"(, "expert": 8, "expert_tensor": 1)"},
          StepLayout{"qwen3_30b_a3b", 4, 1, 1, 2, R"(, "context": 16, "expert": 8)", 2}}) {
      CAPTURE(ports);
      CAPTURE(layout.tensor);
      const Scenario scenario = step_scenario(layout, fabric);
      const double replayed =
          to_seconds(test::replayed(trace_of_step(scenario), cluster).end).base_units();
      CHECK(replayed == doctest::Approx(simulate_step(scenario).step_s).epsilon(0.01));
    }
  }
}

TEST_CASE("trace_of_step: what layers exchange over thin and hashed leaves is replayed as it is") {
  // Of each: the replay over the step less 1 when a ring was one message for all of its rounds
  // (-0.056 hashed, -0.0015 sprayed), all members of an all-to-all were sent what the fullest is
  // (+0.113, +0.112; two-level +0.004, +0.0005), and calls that compute covers were fewer and
  // larger ones (-0.0097, -0.0109).
  constexpr double kAsLong = 1e-3;
  for (const char* routing : {"ecmp", "spray"}) {
    CAPTURE(routing);
    const std::string cluster = thin_cluster(routing);
    check_as_long(cluster,
                  R"("model": {"layers": 2, "hidden": 4096, "heads": 32, "kv_heads": 8,
                               "ffn": 14336, "vocabulary": 32000},
                     "parallelism": {"tensor": 2, "context": 16},
                     "batch": {"sequences": 2, "tokens": 32768, "micro": 1},
                     "stack": {"communication": {"overlap_gradients": false,
                                                 "overlap_parameters": false}})",
                  kAsLong);
    for (const char* dispatch : {"all_to_all", "two_level"}) {
      CAPTURE(dispatch);
      check_as_long(cluster,
                    fmt::format(R"("model": "qwen3_30b_a3b",
                                   "parallelism": {{"data": 32, "expert": 32,
                                                    "expert_dispatch": "{}"}},
                                   "batch": {{"sequences": 32, "tokens": 2048, "micro": 1}},
                                   "routing": {{"imbalance": 2}})",
                                dispatch),
                    kAsLong);
    }
    check_as_long(cluster,
                  R"("model": {"layers": 4, "hidden": 12288, "heads": 96, "ffn": 49152,
                               "vocabulary": 51200},
                     "parallelism": {"tensor": 16, "pipeline": 2},
                     "batch": {"sequences": 4, "tokens": 2048, "micro": 1})",
                  kAsLong);
  }
}

TEST_CASE("write_chakra: who is sent more in an all-to-all is read back") {
  const Scenario scenario =
      read_scenario("step.json",
                    R"({"cluster": )" + thin_cluster("spray") +
                        R"(, "model": "qwen3_30b_a3b", "parallelism": {"data": 32, "expert": 32},
                           "batch": {"sequences": 32, "tokens": 2048, "micro": 1},
                           "routing": {"imbalance": 2}})",
                    test::presets());
  const Trace trace = trace_of_step(scenario);
  const auto backward = [](const TraceCollective& c) { return c.skew.back; };
  CHECK(std::ranges::any_of(trace.collectives, backward));
  CHECK(std::ranges::count(trace.collectives, 2.0,
                           [](const TraceCollective& c) { return c.skew.fullest; }) > 1);
  CHECK(read_back(trace, {.gpu = scenario.node.gpu, .groups = {}}).collectives ==
        trace.collectives);
}

TEST_CASE("write_goal: a pipeline's messages and computation take the step's time") {
  const Scenario scenario = step_scenario({"llama2_7b", 1, 1, 8, 1, ""});
  std::string text;
  write_goal(trace_of_step(scenario), [&](std::string_view part) { text += part; });
  const Trace back = join(read_goal("step.goal", text));
  // The gradient norm's all-reduce is 14 small messages a rank here, of some microseconds each.
  CHECK(seconds_of(back, 1) == doctest::Approx(simulate_step(scenario).step_s).epsilon(0.005));
}

TEST_CASE("write_goal: collectives as rings move their bytes at the rate of single messages") {
  const Scenario scenario = step_scenario({"megatron_1_7b", 2, 1, 1, 16, ""});
  std::string text;
  write_goal(trace_of_step(scenario), [&](std::string_view part) { text += part; });
  const Trace back = join(read_goal("step.goal", text));
  (void)match(back);
  // Slower than NCCL's pipelined rings, which use all NICs of a node at once; never faster.
  const double own = simulate_step(scenario).step_s, goal = seconds_of(back, 2);
  CHECK(goal >= own);
  CHECK(goal < 2 * own);
}

}  // namespace lockstep
