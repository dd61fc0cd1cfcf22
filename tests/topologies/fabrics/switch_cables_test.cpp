#include "topologies/fabrics/switch_cables.hpp"

#include <algorithm>
#include <doctest/doctest.h>

#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

constexpr NicPorts kPorts{.count = 4, .bandwidth = BytesPerSecond{50e9}};

FabricSpec cabled_tree(FabricKind kind, int levels) {
  FabricSpec spec;
  spec.kind = kind;
  spec.levels = levels;
  spec.leaf_ports_down = 8;
  spec.pod_leaves = levels == 3 ? 4 : 0;
  return spec;
}

}  // namespace

TEST_CASE("switch cables: a tree at 1:1 has as many above its leaves as NIC ports, per layer") {
  // 32 nodes of 4 ports on leaves of 8: 16 leaves with 8 uplinks each.
  CHECK(switch_cables(cabled_tree(FabricKind::fat_tree, 2), 32, kPorts) == 128);
  CHECK(switch_cables(cabled_tree(FabricKind::fat_tree, 3), 32, kPorts) == 2 * 128);
  FabricSpec thin = cabled_tree(FabricKind::fat_tree, 2);
  thin.leaf_oversubscription = 4;
  CHECK(switch_cables(thin, 32, kPorts) == 32);
  FabricSpec planes = cabled_tree(FabricKind::fat_tree, 2);
  planes.planes = 2;
  CHECK(switch_cables(planes, 32, kPorts) == 256);
}

TEST_CASE("switch cables: counts of a tree are those of its drawing") {
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
    for (const int levels : {2, 3}) {
      for (const int nodes : {2, 6, 13, 40}) {
        CAPTURE(levels);
        CAPTURE(nodes);
        const FabricSpec spec = cabled_tree(kind, levels);
        if (check(spec, nodes, kPorts.count, kPorts.bandwidth)) continue;
        const auto graph = draw_fabric(spec, nodes, kPorts.count, kPorts.bandwidth);
        // Every port has one cable; the others join switches.
        const auto all = static_cast<std::uint32_t>(graph->cables().size());
        CHECK(switch_cables(spec, nodes, kPorts) == all - graph->port_count());
      }
    }
  }
}

TEST_CASE("switch cables: none on an ideal fabric or one leaf, and faults do not count") {
  FabricSpec spec = cabled_tree(FabricKind::ideal, 2);
  CHECK(switch_cables(spec, 8, kPorts) == 0);
  spec = cabled_tree(FabricKind::fat_tree, 2);
  CHECK(switch_cables(spec, 2, kPorts) == 0);
  const std::uint32_t whole = switch_cables(spec, 8, kPorts);
  FabricFault fault;
  fault.part = FabricFault::Part::some_cables;
  fault.count = 3;
  spec.faults = {fault};
  CHECK(switch_cables(spec, 8, kPorts) == whole);
}

TEST_CASE("idle cables: a leaf needs as many uplinks as its NICs fill, whatever it has") {
  FabricSpec spec;
  spec.kind = FabricKind::rail_optimised;
  spec.leaf_ports_down = 32;
  const NicPorts ports{.count = 8, .bandwidth = BytesPerSecond{50e9}};
  // Four nodes: 8 leaves of 32 uplinks, each below 4 NICs.
  const IdleCables four = idle_cables(spec, 4, ports);
  CHECK(four.of == 8 * 32);
  CHECK(four.above_leaves == 8 * (32 - 4));
  CHECK(four.capacity.base_units() == doctest::Approx(8 * 28 * 50e9));
  spec.leaf_oversubscription = 3;  // 11 uplinks, each a little thinner than a NIC: 4 NICs fill 2
  CHECK(idle_cables(spec, 4, ports).above_leaves == 8 * (11 - 2));
  spec.planes = 2;
  CHECK(idle_cables(spec, 4, ports).above_leaves == 2 * 8 * (11 - 2));
  spec.kind = FabricKind::fat_tree;  // one leaf alone
  CHECK(idle_cables(spec, 4, ports).of == 0);
  spec.kind = FabricKind::rail_only;
  CHECK(idle_cables(spec, 40, ports).above_leaves == 2 * 8 * (11 - 3));
  spec.kind = FabricKind::ideal;
  CHECK(idle_cables(spec, 40, ports).above_leaves == 0);
}

TEST_CASE("idle cables: none of a full tree, and cables in use never get fewer with nodes") {
  for (const FabricKind kind :
       {FabricKind::fat_tree, FabricKind::rail_optimised, FabricKind::rail_only}) {
    for (const int levels : {2, 3}) {
      for (const double ratio : {1.0, 1.5, 3.0}) {
        FabricSpec spec = cabled_tree(kind, levels);
        spec.leaf_oversubscription = ratio;
        spec.spine_oversubscription = ratio;
        spec.pxn = true;
        CAPTURE(static_cast<int>(kind));
        CAPTURE(levels);
        CAPTURE(ratio);
        std::int64_t before = 0;
        for (int nodes = 1; nodes <= 70; ++nodes) {
          CAPTURE(nodes);
          if (check(spec, nodes, kPorts.count, kPorts.bandwidth)) continue;
          const IdleCables idle = idle_cables(spec, nodes, kPorts);
          CHECK(idle.of == (nodes == 1 && kind == FabricKind::fat_tree
                                ? 0
                                : switch_cables(spec, nodes, kPorts)));
          CHECK(idle.above_leaves >= 0);
          CHECK(idle.above_spines >= 0);
          const std::int64_t used = idle.of - idle.above_leaves - idle.above_spines;
          CHECK(used >= before);
          before = used;
          // 64 nodes fill every leaf and pod of each kind.
          if (nodes == 64) CHECK(idle.capacity == BytesPerSecond{});
        }
        CHECK(before > 0);
      }
    }
  }
}

}  // namespace lockstep
