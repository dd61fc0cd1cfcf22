#include "topologies/infiniband/forwarding.hpp"

#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"
#include "tests/topologies/infiniband/small_subnets.hpp"
#include "topologies/infiniband/lft_dump.hpp"

namespace lockstep {
namespace {

using test::sample;

TEST_CASE("every engine: on trees, all ports reach each other on shortest paths") {
  for (const InfinibandEngine& engine : infiniband_engines()) {
    CAPTURE(engine.name);
    CHECK_FALSE(engine.source.empty());
    for (const InfinibandSubnet& subnet :
         {test::k_ary_tree(4), test::k_ary_tree(6), test::rails(4, 4), test::rails(8, 4)}) {
      const InfinibandRouting routing = engine.route(subnet, {});
      CHECK(routing.engine == engine.name);
      CHECK(routing.refusal.empty());
      const ForwardingTables tables = forwarding_tables(subnet, routing.tables);
      const ClusterGraph& graph = subnet.graph;
      for (Vertex from = 0; from < graph.port_count(); ++from) {
        const auto hops = graph.hops_from(from);
        for (Vertex to = 0; to < graph.port_count(); ++to) {
          if (from == to) continue;
          CHECK(static_cast<int>(test::path(graph, tables, from, to).size()) == hops[to]);
        }
      }
    }
  }
}

// Zahavi et al. 2010: with as many uplinks as hosts, a shift of a fat tree that is routed
// destination by destination puts one message on each link.
TEST_CASE("ftree: no shift of a full tree puts two messages on a link, minhop's do") {
  const InfinibandSubnet subnet = test::k_ary_tree(6);
  const ForwardingTables tables = forwarding_tables(subnet, ftree(subnet).tables);
  for (std::uint32_t shift = 1; shift < subnet.graph.port_count(); ++shift) {
    CAPTURE(shift);
    CHECK(test::shift_loads(subnet.graph, tables, shift).most() == 1);
  }
}

TEST_CASE("engines: write the tables that opensm wrote, entry by entry") {
  const InfinibandSubnet rails = test::rails(4, 4);
  for (const InfinibandEngine& engine : infiniband_engines()) {
    CAPTURE(engine.name);
    const std::string text = sample("rails4x4." + std::string(engine.name) + ".lfts");
    const LidTables theirs = read_lft_dump("f", text, rails);
    CHECK(test::differing_entries(engine.route(rails, {}).tables, theirs) == 0);
  }
  const InfinibandSubnet tree = test::k_ary_tree(4);
  const LidTables theirs = read_lft_dump("f", sample("tree16.ftree.lfts"), tree);
  CHECK(test::differing_entries(ftree(tree).tables, theirs) == 0);
}

TEST_CASE("write_lft_dump: writes what opensm writes, dump_fts says the same") {
  const InfinibandSubnet rails = test::rails(4, 4);
  const LidTables tables = ftree(rails).tables;
  CHECK(write_lft_dump(rails, tables) == sample("rails4x4.ftree.lfts"));
  const LidTables dumped = read_lft_dump("f", sample("rails4x4.dump_fts"), rails);
  CHECK(test::differing_entries(tables, dumped) == 0);
}

TEST_CASE("engines: fall back to minhop, and say why, where they refuse a fabric") {
  const InfinibandSubnet whole = test::k_ary_tree(4);
  const InfinibandSubnet broken = test::without_cable(whole, test::first_uplink(whole.graph));
  const InfinibandRouting uneven = ftree(broken);
  CHECK(uneven.engine == "minhop");
  CHECK(uneven.refusal == "leaf 0 has 1 switches above it, leaf 1 has 2");
  CHECK((uneven.tables == minhop(broken).tables));
  CHECK(updn(broken).engine == "updn");

  // Two switches with hosts on both: no layer above, and no switch far from all.
  std::vector<GraphVertex> vertices;
  for (int node = 0; node < 4; ++node) {
    vertices.push_back(
        {.name = "node " + std::to_string(node), .level = 0, .node = node, .nic = 0});
  }
  vertices.push_back({.name = "left", .level = 1});
  vertices.push_back({.name = "right", .level = 1});
  const InfinibandSubnet pair =
      infiniband_subnet(ClusterGraph(vertices, {{.a = 0, .b = 4, .capacity = test::kHdr},
                                                {.a = 1, .b = 4, .capacity = test::kHdr},
                                                {.a = 2, .b = 5, .capacity = test::kHdr},
                                                {.a = 3, .b = 5, .capacity = test::kHdr},
                                                {.a = 4, .b = 5, .capacity = test::kHdr}}),
                        "pair");
  CHECK(ftree(pair).refusal == "all switches are in one layer");
  CHECK(updn(pair).refusal ==
        "no switch sees over 90 % of adapters at one distance and over 5 % at no other");
  CHECK(updn(pair, std::vector<Vertex>{4}).engine == "updn");
}

TEST_CASE("updn: roots do not reach each other, hosts do") {
  const InfinibandSubnet rails = test::rails(8, 8);
  const LidTables tables = updn(rails).tables;
  int roots = 0;
  for (Vertex a = 0; a < rails.graph.vertex_count(); ++a) {
    for (Vertex b = 0; b < rails.graph.vertex_count(); ++b) {
      if (a == b || rails.graph.vertices()[a].level != 2 || rails.graph.vertices()[b].level != 2) {
        continue;
      }
      CHECK(tables.out_port[a][rails.vertices[b].lid] == kNoPath);
      ++roots;
    }
  }
  CHECK(roots > 0);
}

TEST_CASE("read_lft_dump: a mistake is found at its line") {
  const InfinibandSubnet rails = test::rails(4, 4);
  const std::string head = "Unicast lids [0-22] of switch Lid 2 guid 0x200000 ('leaf 0'):\n";
  const auto read = [&](const std::string& text) { (void)read_lft_dump("f", text, rails); };
  CHECK_THROWS_WITH_AS(read(""),
                       "f: found no table; allowed: a switch (Unicast lids [0-9] of switch Lid 2 "
                       "guid 0x200000), an entry (0x0001 003), their number (9 lids dumped)",
                       InputError);
  CHECK_THROWS_WITH_AS(read("0x0001 001\n"),
                       R"(f:1: found "0x0001 001"; allowed: entries below a switch)", InputError);
  CHECK_THROWS_WITH_AS(read(head + "0x0001 099\n"),
                       R"(f:2: found "0x0001 099"; allowed: a port from 0 to 8, the switch's last)",
                       InputError);
  CHECK_THROWS_WITH_AS(read(head + "0xffff 001\n"),
                       R"(f:2: found "0xffff 001"; allowed: a LID from 0x1 to 0xbfff and a port)",
                       InputError);
  CHECK_THROWS_WITH_AS(
      read(head + head),
      "f:2: found the table of GUID 0x200000 again; allowed: a table once; line 1 has it",
      InputError);
  CHECK_THROWS_AS(read("Unicast lids [0-22] of switch Lid 2 guid 0x77:\n"), InputError);
  CHECK_THROWS_AS(read("anything\n"), InputError);
}

}  // namespace
}  // namespace lockstep
