#include "sim/step/lanes.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/site.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

Scenario job_of_lanes(const std::string& node, const std::string& fabric, int tensor,
                      const std::string& order) {
  constexpr int kGpus = 64, kStages = 2;
  return read_scenario(
      "lanes.json",
      fmt::format(R"({{"model": "llama3_8b",
        "stack": {{"preset": "megatron_core", "placement": "{}"}},
        "cluster": {{"node": "{}", "nodes": {}, "fabric": {{{}, "leaf_oversubscription": 2}}}},
        "parallelism": {{"tensor": {}, "pipeline": {}, "data": {}}},
        "batch": {{"sequences": 64, "tokens": 4096}}}})",
                  order, node, kGpus / 8, fabric, tensor, kStages, kGpus / kStages / tensor),
      test::presets());
}

std::vector<RouteHop> by_link(std::vector<RouteHop> uses) {
  std::ranges::sort(uses, {}, &RouteHop::link);
  return uses;
}

/// What one message puts on links, every lane routed by itself: the lanes are looked at one by one
/// where something is among the uses already.
std::vector<RouteHop> lane_by_lane(Lanes& lanes, Place from, Place to) {
  const auto nobodys = static_cast<FabricLink>(lanes.fabric().link_count());
  std::vector<RouteHop> uses{{nobodys, 0.0}};
  lanes.add(from, to, 1, false, 1.0, uses);
  uses.erase(uses.begin());
  return by_link(std::move(uses));
}

}  // namespace

TEST_CASE("lanes: those that follow the first put on links what they do when each is routed") {
  const std::string tree = R"("kind": "fat_tree", "levels": 2, "leaf_ports_down": 16)";
  const std::string rails = R"("kind": "rail_optimised", "levels": 2, "leaf_ports_down": 2)";
  const std::string pxn =
      R"("kind": "rail_optimised", "levels": 2, "leaf_ports_down": 2, "pxn": true)";
  int followed = 0;
  for (const std::string& fabric : {tree, rails, pxn}) {
    // Eight GPUs with eight NICs, and with four.
    for (const std::string node : {"dgx_h100", "aws_p4d"}) {
      for (const int tensor : {1, 2, 4, 8}) {
        for (const std::string order : {"tp-dp-pp", "tp-pp-dp"}) {
          CAPTURE(fabric);
          CAPTURE(node);
          CAPTURE(tensor);
          CAPTURE(order);
          const Scenario scenario = job_of_lanes(node, fabric, tensor, order);
          const StepPlan plan = plan_step(scenario);
          const Fabric own = own_fabric(scenario, plan);
          Lanes lanes{plan, own};
          if (!lanes.first_stands_for_all()) continue;
          for (int d = 0; d < plan.placement.data; ++d) {
            const Place from{d, 0};
            for (const Place to : {Place{d, 1}, Place{(d + 1) % plan.placement.data, 0}}) {
              if (!lanes.over_fabric(from, to)) continue;
              std::vector<RouteHop> uses;
              lanes.add(from, to, 1, false, 1.0, uses);
              uses = by_link(std::move(uses));
              const std::vector<RouteHop> routed = lane_by_lane(lanes, from, to);
              const bool same = std::ranges::equal(uses, routed, [](auto a, auto b) {
                return a.link == b.link && a.share == b.share;
              });
              CHECK(same);
              ++followed;
            }
          }
        }
      }
    }
  }
  CHECK(followed > 100);
}

}  // namespace lockstep
