// What an answer says of a fabric whose keys do less than they seem to.
#include "sim/scenario/fabric_assumptions.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

FabricSpec tree(int levels) {
  FabricSpec out;
  out.kind = FabricKind::fat_tree;
  out.levels = levels;
  return out;
}
bool says(const FabricSpec& fabric, int nodes, std::string_view text) {
  const std::vector<std::string> all =
      fabric_assumptions(fabric, test::presets().node("dgx_h100"), nodes);
  return std::ranges::any_of(
      all, [&](const std::string& one) { return one.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("fabric_assumptions: a value of no effect is said to be so, one that acts is not") {
  FabricSpec two = tree(2), three = tree(3);
  CHECK_FALSE(says(two, 64, "of no effect"));
  two.spine_oversubscription = three.spine_oversubscription = 8;
  CHECK(says(two, 64, "fabric.spine_oversubscription: of no effect on fat_tree with spray"));
  CHECK_FALSE(says(three, 64, "of no effect"));
  three.queue_pairs = 4;
  CHECK(says(three, 64, "fabric.queue_pairs: "));
  three.routing = Routing::ecmp;
  CHECK_FALSE(says(three, 64, "of no effect"));
  three.global_cables = 2;
  CHECK(says(three, 64, "fabric.global_cables: "));
  FabricSpec ideal = tree(2);
  ideal.kind = FabricKind::ideal;
  ideal.leaf_oversubscription = 4;
  CHECK(says(ideal, 64, "fabric.leaf_oversubscription: "));
}

TEST_CASE("fabric_assumptions: nodes below one leaf use no uplink") {
  FabricSpec fabric = tree(2);
  fabric.leaf_ports_down = 32;
  fabric.leaf_oversubscription = 4;
  CHECK(says(fabric, 4, "all 4 nodes of 8 NIC ports are below one leaf of 32"));
  CHECK_FALSE(says(fabric, 5, "below one leaf"));
  fabric.leaf_oversubscription = 1;
  CHECK_FALSE(says(fabric, 4, "below one leaf"));
}

TEST_CASE("fabric_assumptions: an uneven ratio makes each uplink thinner, which is said") {
  FabricSpec fabric = tree(2);
  fabric.leaf_ports_down = 32;
  fabric.routing = Routing::ecmp;
  fabric.leaf_oversubscription = 3;  // 10.67 links of 400 Gb/s: 11 of 387.9
  CHECK(says(fabric, 16, "11 uplinks a leaf of 387.9 Gb/s each"));
  CHECK(says(fabric, 16, "hashed to one is as thin, and 10 whole links (3.2:1) may be faster"));
  fabric.routing = Routing::updn;  // by destination: as thin
  CHECK(says(fabric, 16, "led over one is as thin, and 10 whole links (3.2:1) may be faster"));
  fabric.leaf_oversubscription = 64;  // half a link, and nothing below it
  CHECK(says(fabric, 16, "1 uplink a leaf of 200 Gb/s each"));
  CHECK_FALSE(says(fabric, 16, "may be faster"));
  fabric.routing = Routing::ecmp;
  fabric.leaf_oversubscription = 4;
  CHECK_FALSE(says(fabric, 16, "uplinks a leaf"));
  fabric.leaf_oversubscription = 3;
  fabric.routing = Routing::spray;
  CHECK_FALSE(says(fabric, 16, "uplinks a leaf"));
}

}  // namespace lockstep
