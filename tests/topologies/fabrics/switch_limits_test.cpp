#include "topologies/fabrics/switch_limits.hpp"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

std::string limits_of(const FabricSpec& spec, int nodes = 64) {
  return switch_limits(spec, nodes, 8, gigabits_per_second(400));
}

FabricSpec bare_tree(FabricKind kind) {
  FabricSpec spec;
  spec.kind = kind;
  return spec;
}

TEST_CASE("switch limits: none where every message finds the whole of its bandwidth") {
  CHECK(limits_of(bare_tree(FabricKind::ideal)).empty());
  CHECK(limits_of(bare_tree(FabricKind::fat_tree)).empty());
  CHECK(limits_of(bare_tree(FabricKind::rail_optimised)).empty());
  CHECK(limits_of(bare_tree(FabricKind::rail_only)).empty());
}

TEST_CASE("switch limits: thin uplinks and paths that cannot be chosen are named") {
  FabricSpec spec = bare_tree(FabricKind::fat_tree);
  spec.leaf_oversubscription = 8;
  CHECK(limits_of(spec) == "uplinks oversubscribed 8:1");
  spec.routing = Routing::ecmp;
  CHECK(limits_of(spec) == "uplinks oversubscribed 8:1, hashed paths");
  CHECK(limits_of(spec, 4).empty());  // one leaf of 32 ports holds all four nodes
  spec.routing = Routing::updn;
  spec.leaf_oversubscription = 1;
  CHECK(limits_of(spec) == "one path to each destination");
  CHECK(limits_of(bare_tree(FabricKind::torus)) == "links of a torus");
  CHECK(limits_of(bare_tree(FabricKind::dragonfly)) == "links of a dragonfly");
  FabricSpec broken = bare_tree(FabricKind::fat_tree);
  broken.faults.push_back({});
  CHECK(limits_of(broken) == "broken or slow links");
}

}  // namespace
}  // namespace lockstep
