// The real opensm, ibsim and infiniband-diags judge our export, import and forwarding.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/support/simulated_subnet.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/topologies/infiniband/small_subnets.hpp"
#include "topologies/infiniband/ibnetdiscover.hpp"
#include "topologies/infiniband/ibsim_net.hpp"
#include "topologies/infiniband/lft_dump.hpp"

namespace lockstep {
namespace {

using test::SimulatedSubnet;

bool tools_are_here() {
  const std::string missing = SimulatedSubnet::missing();
  if (!missing.empty()) MESSAGE("skipped: " << missing);
  return missing.empty();
}

/// A few far apart: to the neighbour, across a leaf, a pod, the whole fabric.
std::vector<std::uint32_t> shifts(const InfinibandSubnet& subnet) {
  const std::uint32_t n = subnet.graph.port_count();
  return {1, n / 8 + 1, n / 4, n / 2, n - 1};
}

/// opensm's tables and ours for each engine: every entry, and what messages make of them.
void check_engines(const InfinibandSubnet& subnet, SimulatedSubnet& real) {
  for (const InfinibandEngine& engine : infiniband_engines()) {
    CAPTURE(engine.name);
    const test::OpensmRun run = real.opensm(engine.name);
    const LidTables theirs = read_lft_dump("opensm-lfts.dump", run.lfts, subnet);
    const InfinibandRouting ours = engine.route(subnet, {});
    CHECK(ours.engine == run.engine);
    CHECK(test::differing_entries(ours.tables, theirs) == 0);

    const ForwardingTables our_ways = forwarding_tables(subnet, ours.tables);
    const ForwardingTables their_ways = forwarding_tables(subnet, theirs);
    for (const std::uint32_t shift : shifts(subnet)) {
      CAPTURE(shift);
      const test::ShiftLoads mine = test::shift_loads(subnet.graph, our_ways, shift);
      CHECK(mine.arrived == subnet.graph.port_count());
      CHECK((mine == test::shift_loads(subnet.graph, their_ways, shift)));
    }
  }
}

/// What ibnetdiscover sees of our export is what we made, addresses included.
void check_import(const InfinibandSubnet& subnet, const SimulatedSubnet& real) {
  const std::string text = real.diagnose("ibnetdiscover");
  const IbnetdiscoverImport seen = read_ibnetdiscover("ibnetdiscover.txt", text);
  const test::Described ours = test::describe(subnet), theirs = test::describe(seen.subnet);
  CHECK((ours.boxes == theirs.boxes));
  CHECK((ours.cables == theirs.cables));
  CHECK(ours.boxes.size() == subnet.graph.vertex_count());
}

void check_fabric(const InfinibandSubnet& subnet) {
  SimulatedSubnet real(write_ibsim(subnet));
  check_engines(subnet, real);
  check_import(subnet, real);
}

TEST_CASE("opensm: routes 16 hosts as we do, entry by entry, ibnetdiscover sees what we built") {
  if (!tools_are_here()) return;
  check_fabric(test::k_ary_tree(4));
  check_fabric(test::rails(4, 4));
}

TEST_CASE("opensm: routes 128 hosts as we do, entry by entry, ibnetdiscover sees what we built") {
  if (!tools_are_here()) return;
  check_fabric(test::k_ary_tree(8));
  check_fabric(test::rails(16, 8));
}

TEST_CASE("opensm: routes 1,024 hosts of a three-layer tree as we do, entry by entry" *
          doctest::skip(test::kSlowBuild)) {
  if (!tools_are_here()) return;
  check_fabric(test::k_ary_tree(16));
}

TEST_CASE("opensm: routes 1,024 NICs of rails as we do, entry by entry" *
          doctest::skip(test::kSlowBuild)) {
  if (!tools_are_here()) return;
  check_fabric(test::rails(64, 16));
}

TEST_CASE("opensm: routes a fabric that has lost a cable as we do") {
  if (!tools_are_here()) return;
  for (const InfinibandSubnet& whole :
       {test::k_ary_tree(4), test::rails(4, 4), test::rails(16, 8)}) {
    SimulatedSubnet real(write_ibsim(whole));
    const test::OpensmRun before = real.opensm("ftree");
    CHECK(before.engine == "ftree");

    const std::uint32_t cable = test::first_uplink(whole.graph);
    const GraphCable& cut = whole.graph.cables()[cable];
    real.console(fmt::format("Unlink \"{}\"[{}]", ibsim_box_id(whole.vertices[cut.a]), cut.port_a));
    const InfinibandSubnet broken = test::without_cable(whole, cable);
    check_engines(broken, real);
    check_import(broken, real);
    // What is left is no even tree: both fall back.
    CHECK(ftree(broken).engine == "minhop");
  }
}

TEST_CASE("opensm: with the roots given, routes trees with a cable missing as we do") {
  if (!tools_are_here()) return;
  for (const InfinibandSubnet& whole : {test::k_ary_tree(4), test::rails(4, 4)}) {
    const InfinibandSubnet broken = test::without_cable(whole, test::first_uplink(whole.graph));
    SimulatedSubnet real(write_ibsim(broken));
    std::vector<Vertex> roots;
    std::vector<std::uint64_t> guids;
    const int top = whole.graph.vertices().back().level;
    for (Vertex v = 0; v < whole.graph.vertex_count(); ++v) {
      if (whole.graph.vertices()[v].level != top) continue;
      roots.push_back(v);
      guids.push_back(whole.vertices[v].node_guid);
    }
    for (const InfinibandEngine& engine : infiniband_engines()) {
      CAPTURE(engine.name);
      const test::OpensmRun run = real.opensm(engine.name, guids);
      const LidTables theirs = read_lft_dump("opensm-lfts.dump", run.lfts, broken);
      const InfinibandRouting ours = engine.route(broken, roots);
      CHECK(ours.engine == run.engine);
      CHECK(test::differing_entries(ours.tables, theirs) == 0);
    }
  }
}

TEST_CASE("dump_fts: prints the tables that opensm wrote") {
  if (!tools_are_here()) return;
  const InfinibandSubnet subnet = test::rails(4, 4);
  SimulatedSubnet real(write_ibsim(subnet));
  const LidTables written = read_lft_dump("opensm-lfts.dump", real.opensm("updn").lfts, subnet);
  const LidTables dumped = read_lft_dump("dump_fts.txt", real.diagnose("dump_fts"), subnet);
  CHECK(test::differing_entries(written, dumped) == 0);
}

TEST_CASE("ibsim: keeps the LIDs of a net file that has them") {
  if (!tools_are_here()) return;
  InfinibandSubnet subnet = test::rails(4, 2);
  for (InfinibandVertex& at : subnet.vertices) at.lid = static_cast<Lid>(at.lid + 100);
  SimulatedSubnet real(write_ibsim(subnet, {.lids = true}));
  check_engines(subnet, real);
  check_import(subnet, real);
}

}  // namespace
}  // namespace lockstep
