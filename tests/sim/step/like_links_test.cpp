#include "sim/step/like_links.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/fabric/connections.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/site.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

Scenario job_of_like_lanes(const std::string& fabric, int tensor, const std::string& order) {
  constexpr int kNodes = 6, kStages = 2;
  return read_scenario(
      "like.json",
      fmt::format(R"({{"model": "llama3_8b",
        "stack": {{"preset": "megatron_core", "placement": "{}"}},
        "cluster": {{"node": "dgx_h100", "nodes": {}, "fabric": {{{}}}}},
        "parallelism": {{"tensor": {}, "pipeline": {}, "data": {}}},
        "batch": {{"sequences": 48, "tokens": 4096}}}})",
                  order, kNodes, fabric, tensor, kStages, kNodes * 8 / kStages / tensor),
      test::presets());
}

/// Bytes on links, by FabricLink, when every replica sends one message to its next stage and one to
/// the next replica.
struct LikeLoads {
  std::vector<double> simulated;  ///< as lane 0 stands for all
  std::vector<double> routed;     ///< each lane by itself
};
LikeLoads loads_of(const StepPlan& plan, Lanes& lanes) {
  const Fabric& fabric = lanes.fabric();
  LikeLoads out{.simulated = std::vector<double>(fabric.link_count()),
                .routed = std::vector<double>(fabric.link_count())};
  const auto add = [](const std::vector<RouteHop>& hops, std::vector<double>& to) {
    for (const RouteHop& hop : hops) to[hop.link] += hop.share;
  };
  for (int d = 0; d < plan.placement.data; ++d) {
    const Place from{d, 0};
    for (const Place to : {Place{d, 1}, Place{(d + 1) % plan.placement.data, 0}}) {
      if (!lanes.over_fabric(from, to)) continue;
      std::vector<RouteHop> hops;
      lanes.add(from, to, 1, false, 1.0, hops);
      add(hops, out.simulated);
      for (int lane = 0; lane < plan.placement.tensor; ++lane) {
        hops.clear();
        const int sender = lanes.rank(from, lane), receiver = lanes.rank(to, lane);
        route_connections(fabric, {lanes.node_of(sender), lanes.placement().nic_of(sender)},
                          {lanes.node_of(receiver), lanes.placement().nic_of(receiver)},
                          kFirstHashSeed, 1, hops);
        add(hops, out.routed);
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("like links: carry what they would if their lanes were simulated") {
  const std::string rails = R"("kind": "rail_optimised", "levels": 2, "leaf_ports_down": 6)";
  const std::string short_rails = R"("kind": "rail_optimised", "levels": 2, "leaf_ports_down": 3)";
  const std::string tree = R"("kind": "fat_tree", "levels": 2, "leaf_ports_down": 16)";
  const std::string odd_tree = R"("kind": "fat_tree", "levels": 2, "leaf_ports_down": 12)";
  const std::string wide_rails = R"("kind": "rail_optimised", "levels": 2, "leaf_ports_down": 16)";
  const std::string thin_tree = R"("kind": "fat_tree", "levels": 2, "leaf_ports_down": 8)";
  int likes = 0;
  for (const std::string& fabric : {rails, short_rails, wide_rails, tree, odd_tree, thin_tree}) {
    for (const int tensor : {2, 4, 8}) {
      for (const std::string order : {"tp-dp-pp", "tp-pp-dp"}) {
        CAPTURE(fabric);
        CAPTURE(tensor);
        CAPTURE(order);
        const Scenario scenario = job_of_like_lanes(fabric, tensor, order);
        const StepPlan plan = plan_step(scenario);
        const Fabric own = own_fabric(scenario, plan);
        Lanes lanes{plan, own};
        REQUIRE(lanes.first_stands_for_all());
        const std::vector<FabricLink> simulated = simulated_links(lanes);
        const LikeLoads loads = loads_of(plan, lanes);
        for (FabricLink link = 0; link < own.link_count(); ++link) {
          CAPTURE(own.link_name(link));
          const FabricLink of = simulated[link];
          CHECK(simulated[of] == of);
          likes += of == link ? 0 : 1;
          CHECK(loads.simulated[of] == doctest::Approx(loads.routed[link]).epsilon(1e-12));
        }
      }
    }
  }
  CHECK(likes > 500);
}

TEST_CASE("like links: each is itself where every lane is routed") {
  const Scenario scenario = job_of_like_lanes(
      R"("kind": "fat_tree", "levels": 2, "leaf_ports_down": 16, "routing": "ecmp")", 8,
      "tp-dp-pp");
  const StepPlan plan = plan_step(scenario);
  const Fabric own = own_fabric(scenario, plan);
  const std::vector<FabricLink> simulated = simulated_links(Lanes{plan, own});
  for (FabricLink link = 0; link < own.link_count(); ++link) CHECK(simulated[link] == link);
}

}  // namespace lockstep
