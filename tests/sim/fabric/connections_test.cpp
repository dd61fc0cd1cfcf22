#include "sim/fabric/connections.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <set>
#include <vector>

#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/hash_band.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

constexpr int kConnectionNics = 4;
const BytesPerSecond kConnectionNicRate{50e9};

FabricSpec leaves_of_two_nodes(Routing routing) {
  FabricSpec spec;
  spec.kind = FabricKind::fat_tree;
  spec.routing = routing;
  spec.leaf_ports_down = 2 * kConnectionNics;
  return spec;
}

std::vector<FabricMember> members_on_nodes(int nodes) {
  std::vector<FabricMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < kConnectionNics; ++gpu) {
      members.push_back({.place = {node, gpu}, .node = node, .nic = gpu});
    }
  }
  return members;
}

/// Of the fullest link between switches, for each byte of a collective of eight nodes.
double slowest(const FabricSpec& spec, CollectiveOp op, const char* algorithm, int channels,
               int peer_channels) {
  const Fabric fabric(spec, 8, kConnectionNics, kConnectionNicRate);
  const std::vector<FabricMember> members = members_on_nodes(8);
  CollectiveLoad load(fabric);
  load.add(collective_shape(op, algorithm, places_of(members), channels, peer_channels), members,
           kFirstHashSeed);
  return load.slowest(1).per_byte.base_units();
}

HashBand band(FabricSpec spec, CollectiveOp op, const char* algorithm, int channels,
              int peer_channels) {
  constexpr int kDraws = 60;
  std::vector<double> times;
  for (spec.hash_draw = 1; spec.hash_draw <= kDraws; ++spec.hash_draw) {
    times.push_back(slowest(spec, op, algorithm, channels, peer_channels));
  }
  return hash_band(1, times);
}

}  // namespace

TEST_CASE("connections: a message over n of them is n parts, each where its own queue pair goes") {
  const Fabric fabric(leaves_of_two_nodes(Routing::ecmp), 8, kConnectionNics, kConnectionNicRate);
  for (const int connections : {1, 2, 5}) {
    CAPTURE(connections);
    std::vector<double> expected(fabric.link_count()), found(fabric.link_count());
    for (int c = 0; c < connections; ++c) {
      std::vector<RouteHop> hops;
      fabric.route(1, 2, 6, 0, queue_pair_of_connection(9, c), hops);
      for (const RouteHop& hop : hops) expected[hop.link] += hop.share / connections;
    }
    std::vector<RouteHop> hops;
    route_connections(fabric, {1, 2}, {6, 0}, 9, connections, hops);
    for (const RouteHop& hop : hops) found[hop.link] += hop.share;
    for (FabricLink link = 0; link < fabric.link_count(); ++link) {
      CHECK(found[link] == test::near(expected[link]).epsilon(1e-12));
    }
    CHECK(found[fabric.nic_up(1, 2)] == test::near(1));
    CHECK(found[fabric.nic_down(6, 0)] == test::near(1));
  }
}

TEST_CASE("connections: GPUs that share their ports open connections of their own") {
  const Fabric fabric(leaves_of_two_nodes(Routing::ecmp), 8, kConnectionNics, kConnectionNicRate);
  CHECK(queue_pair_of_turns(9, 0, 0) == 9);
  const auto links_of = [&fabric](int from, int to) {
    std::vector<RouteHop> hops;
    route_connections(fabric, {1, 2}, {6, 0}, queue_pair_of_turns(9, from, to), 1, hops);
    std::vector<FabricLink> links;
    for (const RouteHop& hop : hops) links.push_back(hop.link);
    return links;
  };
  // Eight spines: that 16 pairs of GPUs all take the first one's has the odds of 8 to the -15.
  std::set<std::vector<FabricLink>> senders, receivers;
  for (int turn = 0; turn < 16; ++turn) {
    senders.insert(links_of(turn, 0));
    receivers.insert(links_of(0, turn));
  }
  CHECK(senders.size() > 3);
  CHECK(receivers.size() > 3);
}

TEST_CASE("connections: switches that spray do not tell them apart") {
  const Fabric fabric(leaves_of_two_nodes(Routing::spray), 8, kConnectionNics, kConnectionNicRate);
  std::vector<RouteHop> one, many;
  fabric.route(1, 2, 6, 0, 9, one);
  route_connections(fabric, {1, 2}, {6, 0}, 9, 16, many);
  REQUIRE(one.size() == many.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].link == many[i].link);
    CHECK(one[i].share == many[i].share);
  }
}

TEST_CASE("connections: more of them narrow the band over draws, down to what spraying takes") {
  struct Row {
    CollectiveOp op;
    const char* algorithm;
    bool rings;  ///< whose connections are channels, not those to peers
  };
  for (const Row& row : {Row{CollectiveOp::all_gather, "ring", true},
                         Row{CollectiveOp::all_to_all, "pairwise", false}}) {
    CAPTURE(row.algorithm);
    const double sprayed =
        slowest(leaves_of_two_nodes(Routing::spray), row.op, row.algorithm, kConnectionNics, 1);
    double last = 1e9;
    for (const int connections : {1, 4, 64, 1024}) {
      CAPTURE(connections);
      const HashBand found = band(leaves_of_two_nodes(Routing::ecmp), row.op, row.algorithm,
                                  row.rings ? connections * kConnectionNics : kConnectionNics,
                                  row.rings ? 1 : connections);
      CHECK(found.least.value >= sprayed * (1 - 1e-9));
      const double width = found.most.value - found.least.value;
      CHECK(width < 0.75 * last);
      last = width;
      if (connections == 1024) CHECK(found.most.value < 1.3 * sprayed);
    }
  }
}

TEST_CASE("connections: queue pairs of each connection narrow the band as connections do") {
  FabricSpec spec = leaves_of_two_nodes(Routing::ecmp);
  const auto width = [&](int queue_pairs) {
    spec.queue_pairs = queue_pairs;
    const HashBand found = band(spec, CollectiveOp::all_to_all, "pairwise", kConnectionNics, 1);
    return found.most.value - found.least.value;
  };
  CHECK(width(16) < 0.75 * width(1));
}

}  // namespace lockstep
