#include "sim/fabric/hash_band.hpp"

#include <array>
#include <cstdlib>
#include <doctest/doctest.h>
#include <map>
#include <vector>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

const BytesPerSecond kBandNicRate{50e9};

/// Leaves of two nodes with four NICs each, and as many spines as `uplinks`.
FabricSpec hashed_tree(int uplinks) {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.routing = Routing::ecmp;
  spec.leaf_ports_down = 8;
  spec.leaf_oversubscription = 8.0 / uplinks;
  return spec;
}

std::vector<FabricLink> links_of(FabricSpec spec, int draw) {
  spec.hash_draw = draw;
  const Fabric fabric(spec, 4, 4, kBandNicRate);
  std::vector<RouteHop> hops;
  for (int nic = 0; nic < 4; ++nic) fabric.route(0, nic, 2, nic, 0, hops);
  std::vector<FabricLink> links;
  for (const RouteHop& hop : hops) links.push_back(hop.link);
  return links;
}

}  // namespace

TEST_CASE("hash band: least, median and most name the first draw that has them") {
  const HashBand odd = hash_band(7, std::array{3.0, 1.0, 2.0});
  CHECK(odd.least == HashDraw{8, 1});
  CHECK(odd.median == HashDraw{9, 2});
  CHECK(odd.most == HashDraw{7, 3});
  const HashBand even = hash_band(1, std::array{4.0, 1.0, 3.0, 2.0});
  CHECK(even.median == HashDraw{4, 2});
  const HashBand same = hash_band(1, std::array{2.0, 2.0, 2.0, 2.0});
  CHECK(same.least == HashDraw{1, 2});
  CHECK(same.most == HashDraw{1, 2});
  const HashBand one = hash_band(5, std::array{2.0});
  CHECK(one.median == HashDraw{5, 2});
}

TEST_CASE("draws of the hash: another draw takes other links, evenly, and one path stays one") {
  CHECK(links_of(hashed_tree(8), 1) != links_of(hashed_tree(8), 2));
  CHECK(links_of(hashed_tree(8), 2) == links_of(hashed_tree(8), 2));
  // With one uplink there is nothing to choose.
  CHECK(links_of(hashed_tree(1), 1) == links_of(hashed_tree(1), 2));

  constexpr int kDraws = 4000;
  std::map<FabricLink, int> uses;
  for (int draw = 1; draw <= kDraws; ++draw) ++uses[links_of(hashed_tree(8), draw)[1]];
  REQUIRE(uses.size() == 8);
  // An eighth of the draws each: 500, with a standard deviation of 21.
  for (const auto& [link, count] : uses) CHECK(std::abs(count - kDraws / 8) < 5 * 21);
}

TEST_CASE("draws of the hash decide only where several leaves hash paths") {
  const NicPorts ports{.count = 4, .bandwidth = kBandNicRate};
  FabricSpec spec = hashed_tree(8);
  CHECK(is_hashed(spec, 4, ports));
  CHECK_NOTHROW(require_hashed("s.json", spec, 4, ports));
  CHECK_FALSE(is_hashed(spec, 2, ports));
  CHECK_THROWS_WITH_AS(require_hashed("s.json", spec, 2, ports),
                       "s.json#/cluster: found 2 nodes whose NICs share one leaf switch, where the "
                       "destination decides; allowed: for --hash-seeds, NICs on several leaf "
                       "switches",
                       InputError);
  spec.routing = Routing::ftree;
  CHECK_FALSE(is_hashed(spec, 4, ports));
  CHECK_THROWS_WITH_AS(require_hashed("s.json", spec, 4, ports),
                       "s.json#/cluster/fabric: found routing \"ftree\" (InfiniBand: balanced over "
                       "a fat tree); allowed: for --hash-seeds, routing \"ecmp\", whose hashes are "
                       "drawn",
                       InputError);
  spec.routing = Routing::ecmp;
  spec.kind = FabricKind::ideal;
  CHECK_FALSE(is_hashed(spec, 4, ports));
  CHECK_THROWS_AS(require_hashed("s.json", spec, 4, ports), InputError);
}

}  // namespace lockstep
