#include "sim/step/data_routes.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/algorithms.hpp"
#include "sim/fabric/collective_load.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/site.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

Scenario data_job(const std::string& parallelism, const std::string& model,
                  const std::string& routing, int nodes) {
  return read_scenario(
      "data.json",
      fmt::format(R"({{"model": "{}", "stack": "megatron_core", "cluster": {{"node": "dgx_h100",
        "nodes": {}, "fabric": {{"kind": "fat_tree", "levels": 2, "leaf_ports_down": 16,
        "routing": "{}", "leaf_oversubscription": 4}}}}, "parallelism": {{{}}},
        "batch": {{"sequences": 1536, "tokens": 4096}}}})",
                  model, nodes, routing, parallelism),
      test::presets());
}

/// What the stage's gradients put on links if `algorithm` sums them.
std::vector<double> load_of(const StepPlan& plan, const Fabric& fabric,
                            std::string_view algorithm) {
  StagePlan stage = plan.stages.front();
  DataChannel& channel = stage.channels.front();
  channel.op = CollectiveOp::all_reduce;
  channel.cost.algorithm = algorithm;
  stage.channels.resize(1);
  const std::vector<DataWay> ways = data_ways(stage);
  REQUIRE(ways.size() == 1);
  std::vector<RouteHop> uses;
  DataRoutes{plan, fabric}.add(stage, ways.front(), kEveryGroup, uses);
  std::vector<double> load(fabric.link_count());
  for (const RouteHop& use : uses) load[use.link] += use.share;
  return load;
}

}  // namespace

TEST_CASE("data groups: each kind holds every rank of a stage once") {
  struct Cut {
    const char *model, *parallelism;
  };
  constexpr std::array<Cut, 5> kCuts{
      Cut{"llama3_8b", R"("tensor": 4, "context": 2, "pipeline": 2, "data": 6)"},
      Cut{"llama3_8b", R"("data": 96, "sharding": "zero3", "shard_group": 16)"},
      Cut{"llama3_8b", R"("context": 2, "data": 48, "sharding": "zero3", "shard_group": 16)"},
      Cut{"qwen3_30b_a3b", R"("tensor": 2, "data": 48, "expert": 8)"},
      Cut{"qwen3_30b_a3b", R"("tensor": 4, "data": 24, "expert": 8, "expert_tensor": 2)"}};
  for (const Cut& cut : kCuts) {
    CAPTURE(cut.parallelism);
    const Scenario s = data_job(cut.parallelism, cut.model, "adaptive", 12);
    const PlacementSpec spec = placement_spec(s);
    const Placement placement{spec};
    for (int stage = 0; stage < spec.pipeline; ++stage) {
      for (const DataGroup& group : data_groups(s.job.parallelism, placement, stage)) {
        std::set<int> seen;
        for_each_group(group, spec, placement, stage, kEveryGroup, [&](std::span<const int> ranks) {
          CHECK(static_cast<int>(ranks.size()) == group.replicas * group.lanes);
          for (const int rank : ranks) {
            CHECK(placement.coordinates(rank).pipeline == stage);
            CHECK(seen.insert(rank).second);
          }
        });
        CHECK(static_cast<int>(seen.size()) == spec.tensor * spec.data);
        std::set<int> replicas;
        for (int g = 0; g < spec.data / group.replicas; ++g) {
          for (int i = 0; i < group.replicas; ++i) {
            CHECK(group.group_of(group.member(g, i)) == g);
            CHECK(replicas.insert(group.member(g, i)).second);
          }
        }
        CHECK(static_cast<int>(replicas.size()) == spec.data);
      }
    }
  }
}

TEST_CASE("data routes: a collective loads the links that the shape of its algorithm uses") {
  for (const char* const routing : {"adaptive", "ecmp"}) {
    CAPTURE(routing);
    const Scenario s = data_job(R"("data": 64, "sharding": "none")", "llama3_8b", routing, 8);
    const StepPlan plan = plan_step(s);
    const NicPorts ports = nic_ports(s.node);
    const Fabric fabric{s.fabric, s.nodes, ports.count, ports.bandwidth};
    std::vector<FabricMember> members;
    for (int gpu = 0; gpu < 64; ++gpu) members.push_back(fabric_member(s.node, gpu));
    for (const char* const algorithm : {"tree", "nvls_tree", "hierarchical", "collnet_direct"}) {
      CAPTURE(algorithm);
      CollectiveLoad whole(fabric);
      whole.add(collective_shape(CollectiveOp::all_reduce, algorithm, places_of(members), 16),
                members, kFirstHashSeed);
      const std::vector<double> load = load_of(plan, fabric, algorithm);
      // Of what a NIC sends on average: the same share of every link between switches.
      double sent = 0, most = 0;
      for (FabricLink link = 0; link < load.size(); ++link) {
        if (fabric.joins_nic(link)) most = std::max(most, load[link]);
      }
      for (const FabricMember& m : members) {
        sent += whole.by_link()[fabric.nic_up(m.node, m.nic)] / 64;
      }
      CHECK(most == test::near(1));
      double between = 0;
      for (FabricLink link = 0; link < load.size(); ++link) {
        if (fabric.joins_nic(link)) continue;
        CHECK(load[link] == test::near(whole.by_link()[link] / sent));
        between += load[link];
      }
      CHECK(between > 0);
    }
  }
}

TEST_CASE("data routes: of groups of which some lie in one node, the others load its links") {
  // Replicas of three stages one after the other: of stage 0 the ranks 0 and 3 share a node, 6 and
  // 9 do not.
  const auto scenario = [](const char* fabric) {
    return read_scenario("shards.json",
                         fmt::format(R"({{"model": "llama3_8b",
        "cluster": {{"node": "dgx_h100", "fabric": {{"kind": "{}"}}}},
        "parallelism": {{"pipeline": 3, "data": 4, "sharding": "zero3", "shard_group": 2,
          "layers_per_stage": [11, 11, 10]}},
        "batch": {{"sequences": 12, "tokens": 512}}, "stack": {{"placement": "tp-pp-dp"}}}})",
                                     fabric),
                         test::presets());
  };
  for (const char* const kind : {"torus", "ideal", "rail_optimised"}) {
    CAPTURE(kind);
    const Scenario s = scenario(kind);
    const StepPlan plan = plan_step(s);
    const Fabric fabric = own_fabric(s, plan);
    DataRoutes routes{plan, fabric};
    int ways = 0;
    for (const DataWay& way : data_ways(plan.stages.front())) {
      if (way.first->group != DataGroupKind::shard) continue;
      ++ways;
      const auto sent = [&](int group) {
        std::vector<RouteHop> uses;
        routes.add(plan.stages.front(), way, group, uses);
        double sum = 0;
        for (const RouteHop& use : uses) sum += fabric.joins_nic(use.link) ? use.share : 0;
        return sum;
      };
      CHECK(sent(0) == 0);
      // Out of the NIC of either and into that of the other.
      CHECK(sent(1) == test::near(4));
    }
    CHECK(ways > 0);
  }
}

TEST_CASE("data routes: between racks gradients leave on the NICs that NCCL's channels take") {
  // Two racks of 72 run rings on 36 channels, each on a NIC of its own, three racks on 18, so that
  // the uplinks of the first leaf, of two trays, carry half of what a rack sends.
  struct Racks {
    int racks;
    double nics;
  };
  for (const Racks& of : {Racks{2, 36}, Racks{3, 18}}) {
    CAPTURE(of.racks);
    const Scenario s = read_scenario("racks.json",
                                     fmt::format(R"({{"model": "llama3_8b",
        "stack": "megatron_core", "cluster": {{"node": "gb200_nvl72", "nodes": {}, "fabric": {{
          "kind": "fat_tree", "levels": 2, "leaf_ports_down": 8, "routing": "spray",
          "leaf_oversubscription": 4}}}},
        "parallelism": {{"data": {}, "sharding": "zero1"}},
        "batch": {{"sequences": {}, "tokens": 4096}}}})",
                                                 18 * of.racks, 72 * of.racks, 72 * of.racks),
                                     test::presets());
    const StepPlan plan = plan_step(s);
    const Fabric fabric = own_fabric(s, plan);
    const std::vector<double> load = load_of(plan, fabric, "ring");
    // For each byte that a NIC sends on average, as the law has it.
    CHECK(load[fabric.leaf_up(0, 0)] == test::near(8 * 72 / of.nics));
    CHECK(load[fabric.nic_up(0, 0)] == test::near(1));
    CHECK(load[fabric.leaf_up(8, 0)] == 0);
  }
}

TEST_CASE(
    "data routes: groups that lie unlike have channels on all of their rails, each on its own") {
  // Three replicas follow each other, so that some groups have one and some three GPUs of a node.
  const Scenario s = read_scenario("unlike.json", R"({"model": "megatron_7_5b",
        "stack": {"preset": "megatron_core", "placement": "dp-pp-tp"},
        "cluster": {"node": "dgx_h200", "nodes": 12, "fabric": {"kind": "fat_tree", "levels": 2,
          "leaf_ports_down": 24, "routing": "ecmp"}},
        "parallelism": {"tensor": 2, "pipeline": 4, "data": 3, "context": 4, "sharding": "zero1"},
        "batch": {"sequences": 12, "tokens": 2048}})",
                                   test::presets());
  const StepPlan plan = plan_step(s);
  bool are_unlike = false;
  for (const StagePlan& stage : plan.stages) {
    for (const DataChannel& channel : stage.channels) {
      const DataGroup& group = stage.groups[static_cast<std::size_t>(channel.group)];
      if (!group.crosses_domains) continue;
      const auto [least, most] =
          std::ranges::minmax(group.spreads.ways(), {}, &DomainSpread::per_domain);
      are_unlike = are_unlike || least.per_domain < most.per_domain;
      CHECK(channel.cost.channels >= kChannelsPerRail * most.per_domain);
    }
  }
  CHECK(are_unlike);
}

TEST_CASE("data routes: a ring goes on to the next node of a replica before the next replica") {
  // Context-parallel ranks of a replica fill the two nodes of a leaf: the ring over four nodes
  // leaves each leaf once, not once for each node.
  const Scenario s =
      data_job(R"("context": 16, "data": 2, "sharding": "none")", "llama3_8b", "adaptive", 4);
  const StepPlan plan = plan_step(s);
  CHECK(plan.stages.front().groups.front().lanes_cross_domains);
  const Fabric fabric = own_fabric(s, plan);
  std::vector<FabricMember> members;
  for (int gpu = 0; gpu < 32; ++gpu) members.push_back(fabric_member(s.node, gpu));
  CollectiveLoad ring(fabric);
  ring.add(collective_shape(CollectiveOp::all_reduce, "ring", places_of(members), 16), members,
           kFirstHashSeed);
  const std::vector<double> load = load_of(plan, fabric, "ring");
  const double nic = ring.by_link()[fabric.nic_up(0, 0)];
  double between = 0;
  for (FabricLink link = 0; link < load.size(); ++link) {
    INFO(fabric.link_name(link));
    CHECK(load[link] == test::near(ring.by_link()[link] / nic));
    if (!fabric.joins_nic(link)) between += load[link];
  }
  CHECK(between == test::near(2 * 2 * 8));  // out of and into two leaves, on eight rails
}

}  // namespace lockstep
