// What jobs remember of one another: foldings, routes and groups, against those that are worked out
// anew.
#include <algorithm>
#include <cstddef>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/data_groups.hpp"
#include "sim/step/data_routes.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/site.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

/// A job of which one thing at a time is changed.
struct Inputs {
  std::string model = R"("llama3_8b")";
  int nodes = 14;  // stages lie half a node apart, so that their messages change rails
  std::string nic = "400 Gb/s";
  std::string fabric = R"("kind": "rail_optimised", "leaf_ports_down": 4)";
  std::string cut = R"("tensor": 4, "pipeline": 4, "data": 7)";
  std::string placement = "tp-dp-pp";
};

Scenario job_of(const Inputs& in) {
  return read_scenario("known.json",
                       fmt::format(R"({{"model": {},
        "stack": {{"preset": "megatron_core", "placement": "{}"}},
        "cluster": {{"node": {{"preset": "dgx_h100", "nic_bandwidth": "{}"}}, "nodes": {},
        "fabric": {{{}}}}}, "parallelism": {{{}}}, "batch": {{"sequences": 448, "tokens": 4096}},
        "recompute": "full"}})",
                                   in.model, in.placement, in.nic, in.nodes, in.fabric, in.cut),
                       test::presets());
}

/// Each differs from the first in one thing that a folding or a route depends on.
std::vector<Inputs> inputs() {
  const Inputs base;
  std::vector<Inputs> out{base};
  const auto add = [&](auto change) { change(out.emplace_back(base)); };
  for (const char* const cut :
       {R"("tensor": 8, "pipeline": 2, "data": 7)", R"("tensor": 4, "pipeline": 2, "data": 14)",
        R"("tensor": 2, "pipeline": 4, "data": 14)", R"("tensor": 4, "pipeline": 7, "data": 4)",
        R"("tensor": 4, "pipeline": 4, "data": 7, "virtual_stages": 2)",
        R"("tensor": 4, "pipeline": 4, "data": 7, "sharding": "none")",
        R"("tensor": 2, "context": 2, "pipeline": 4, "data": 7)",
        R"("tensor": 4, "data": 28, "sharding": "zero3")",
        R"("tensor": 4, "data": 28, "sharding": "zero3", "shard_group": 7)",
        R"("tensor": 4, "data": 28, "sharding": "zero3", "shard_group": 14)"}) {
    add([cut](Inputs& in) { in.cut = cut; });
  }
  for (const char* const fabric :
       {R"("kind": "rail_optimised", "leaf_ports_down": 8)",
        R"("kind": "rail_optimised", "leaf_ports_down": 4, "leaf_oversubscription": 2)",
        R"("kind": "rail_optimised", "leaf_ports_down": 4, "leaf_oversubscription": 4)",
        R"("kind": "rail_optimised", "leaf_ports_down": 4, "pxn": true)",
        R"("kind": "rail_optimised", "leaf_ports_down": 4, "routing": "adaptive")",
        R"("kind": "rail_optimised", "leaf_ports_down": 4, "levels": 3, "pod_leaves": 8)",
        R"("kind": "rail_optimised", "leaf_ports_down": 4, "link_bandwidth": "800 Gb/s")",
        R"("kind": "fat_tree", "leaf_ports_down": 32)",
        R"("kind": "fat_tree", "leaf_ports_down": 32, "leaf_oversubscription": 4)",
        R"("kind": "fat_tree", "leaf_ports_down": 16, "levels": 3, "pod_leaves": 2,
           "spine_oversubscription": 2)",
        R"("kind": "ideal")"}) {
    add([fabric](Inputs& in) { in.fabric = fabric; });
  }
  add([](Inputs& in) { in.nodes = 16, in.cut = R"("tensor": 4, "pipeline": 4, "data": 8)"; });
  add([](Inputs& in) { in.nodes = 28, in.cut = R"("tensor": 4, "pipeline": 4, "data": 14)"; });
  // Stages four nodes apart: a leaf, a pod; two pods in three stages; no pod before the last.
  for (const char* const fabric :
       {R"("kind": "fat_tree", "leaf_ports_down": 32)",
        R"("kind": "fat_tree", "leaf_ports_down": 16, "levels": 3, "pod_leaves": 2,
           "spine_oversubscription": 2)",
        R"("kind": "fat_tree", "leaf_ports_down": 16, "levels": 3, "pod_leaves": 3,
           "spine_oversubscription": 2)",
        R"("kind": "fat_tree", "leaf_ports_down": 16, "levels": 3, "pod_leaves": 14,
           "leaf_oversubscription": 4)",
        R"("kind": "rail_optimised", "leaf_ports_down": 2, "levels": 3, "pod_leaves": 24,
           "spine_oversubscription": 2)",
        R"("kind": "ideal")"}) {
    for (const char* const cut : {R"("tensor": 8, "pipeline": 8, "data": 4)",
                                  R"("tensor": 8, "pipeline": 8, "data": 4, "virtual_stages": 2)",
                                  R"("tensor": 4, "pipeline": 8, "data": 8)"}) {
      add([=](Inputs& in) { in.fabric = fabric, in.nodes = 32, in.cut = cut; });
    }
  }
  add([](Inputs& in) { in.placement = "tp-pp-dp"; });
  add([](Inputs& in) { in.nic = "200 Gb/s"; });
  add([](Inputs& in) { in.model = R"({"preset": "llama3_8b", "tied": true})"; });
  add([](Inputs& in) { in.model = R"("gpt3_175b")"; });
  return out;
}

struct Found {
  ReplicaClasses replicas;
  std::vector<std::vector<RouteHop>> uses;  ///< of each stage and way
};

/// On nodes that were chosen nothing is remembered, and these are the job's own.
Found find(const Scenario& s, bool anew) {
  const StepPlan plan = plan_step(s);
  const Fabric fabric = own_fabric(s, plan);
  std::vector<int> nodes(anew ? static_cast<std::size_t>(s.nodes) : 0);
  std::iota(nodes.begin(), nodes.end(), 0);
  DataRoutes routes{plan, fabric, nodes};
  CHECK(routes.layout().has_value() == !anew);
  Found out{classes_of_replicas(s, routes, Folding::automatic), {}};
  for (const StagePlan& stage : plan.stages) {
    for (const DataWay& way : data_ways(stage)) {
      routes.add(stage, way, kEveryGroup, out.uses.emplace_back());
      routes.add(stage, way, 0, out.uses.emplace_back());
    }
  }
  return out;
}

void check_same(const Found& a, const Found& b) {
  CHECK(a.replicas.links.of == b.replicas.links.of);
  CHECK(a.replicas.links.links == b.replicas.links.links);
  REQUIRE(a.replicas.classes.size() == b.replicas.classes.size());
  for (std::size_t c = 0; c < a.replicas.classes.size(); ++c) {
    const ReplicaClass &one = a.replicas.classes[c], &other = b.replicas.classes[c];
    CHECK(one.representative == other.representative);
    CHECK(one.copies == other.copies);
    CHECK(one.slowdown == other.slowdown);
    CHECK(one.variant == other.variant);
    CHECK(one.block == other.block);
    CHECK(one.data_group == other.data_group);
  }
  const auto same = [](const RouteHop& one, const RouteHop& other) {
    return one.link == other.link && one.share == other.share;
  };
  REQUIRE(a.uses.size() == b.uses.size());
  for (std::size_t i = 0; i < a.uses.size(); ++i) {
    CHECK(std::ranges::equal(a.uses[i], b.uses[i], same));
  }
}

}  // namespace

TEST_CASE("known routes: a folding and its routes are those of the job, whatever came before it") {
  const std::vector<Inputs> all = inputs();
  // Twice: the second time everything is known.
  for (const int pass : {1, 2}) {
    CAPTURE(pass);
    for (const Inputs& in : all) {
      CAPTURE(in.model);
      CAPTURE(in.fabric);
      CAPTURE(in.cut);
      CAPTURE(in.nodes);
      const Scenario s = job_of(in);
      check_same(find(s, false), find(s, true));
    }
  }
}

TEST_CASE("known routes: a replica with a slow GPU is not taken for one of healthy ones") {
  Scenario s = job_of({});
  const std::vector<ReplicaClass> healthy = find(s, false).replicas.classes;
  const auto several = std::ranges::find_if(healthy, [](const auto& c) { return c.copies > 1; });
  REQUIRE(several != healthy.end());
  const RankCoordinates first{.tensor = 0, .data = several->representative, .pipeline = 0};
  s.stragglers.push_back({.gpu = Placement{placement_spec(s)}.rank(first), .slowdown = 1.25});
  const Found slow = find(s, false);
  CHECK(slow.replicas.classes.size() > healthy.size());
  check_same(slow, find(s, true));
}

TEST_CASE("known groups: how many of a group share an NVLink domain is counted for each cut") {
  std::vector<Inputs> all = inputs();
  for (const char* const cut :
       {R"("tensor": 2, "data": 64, "expert": 8)", R"("tensor": 2, "data": 64, "expert": 16)",
        R"("tensor": 4, "data": 32, "expert": 8, "expert_tensor": 2)"}) {
    all.push_back({.model = R"("qwen3_30b_a3b")", .nodes = 16, .cut = cut});
  }
  for (const int pass : {1, 2}) {
    CAPTURE(pass);
    for (const Inputs& in : all) {
      CAPTURE(in.cut);
      const Scenario s = job_of(in);
      const PlacementSpec spec = placement_spec(s);
      const Placement placement{spec};
      for (int stage = 0; stage < spec.pipeline; ++stage) {
        for (const DataGroup& group : data_groups(s.job.parallelism, placement, stage)) {
          int most = 0;
          bool crosses = false;
          for_each_group(group, spec, placement, stage, kEveryGroup,
                         [&](std::span<const int> ranks) {
                           std::map<int, int> in_domain;
                           for (const int rank : ranks) ++in_domain[placement.domain_of(rank)];
                           for (const auto& [domain, count] : in_domain) {
                             most = std::max(most, count);
                           }
                           crosses = crosses || in_domain.size() > 1;
                           CHECK(static_cast<int>(ranks.size()) == group.ranks);
                         });
          CHECK(group.per_domain == most);
          CHECK(group.crosses_domains == crosses);
        }
      }
    }
  }
}

}  // namespace lockstep
