#include "topologies/formats/fabric_json.hpp"

#include <doctest/doctest.h>
#include <map>
#include <string>

#include "models/base/input_error.hpp"
#include "tests/topologies/nic.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"

namespace lockstep {
namespace {

using test::kNic;

/// Cables of a fabric, and the same fabric after it was written and read.
void check_round_trip(const DrawnFabric& before) {
  const DrawnFabric after = read_drawn_fabric("fabric.json", write_fabric_json(before));
  CHECK(after.hosts == before.hosts);
  REQUIRE(after.graph.vertex_count() == before.graph.vertex_count());
  for (Vertex v = 0; v < before.graph.vertex_count(); ++v) {
    const GraphVertex &x = before.graph.vertices()[v], &y = after.graph.vertices()[v];
    CHECK(y.name == x.name);
    CHECK(y.level == x.level);
    CHECK(y.node == x.node);
    CHECK(y.nic == x.nic);
    CHECK(y.group == x.group);
  }
  REQUIRE(after.graph.cables().size() == before.graph.cables().size());
  for (std::size_t c = 0; c < before.graph.cables().size(); ++c) {
    const GraphCable &x = before.graph.cables()[c], &y = after.graph.cables()[c];
    CHECK(y.a == x.a);
    CHECK(y.b == x.b);
    CHECK(y.port_a == x.port_a);
    CHECK(y.port_b == x.port_b);
    CHECK(y.capacity / x.capacity == doctest::Approx(1).epsilon(1e-14));
  }
  CHECK(after.down.size() == before.down.size());
  CHECK(write_fabric_json(after) == write_fabric_json(before));
}

constexpr const char* kSmall = R"({
  "about": "Two hosts, one \"switch\".",
  "source": "by hand",
  "rate": "400 Gb/s",
  "hosts": [{"name": "b", "nics": 2}, {"name": "a", "nics": ["a mlx5_0"]}],
  "switches": [{"name": "leaf"}, {"name": "spine"}, {"name": "spare"}],
  "cables": [
    {"a": "b nic 0", "b": "leaf", "port_a": 1, "port_b": 7},
    {"a": "b nic 1", "b": "leaf", "rate": "100 Gb/s"},
    {"a": "leaf", "b": "a mlx5_0"},
    {"a": "leaf", "b": "spine", "count": 3},
    {"a": "leaf", "b": "spine", "down": true}
  ]
})";

TEST_CASE("fabric.json: hosts keep their order, and cables their ports, rates and counts") {
  const DrawnFabric fabric = read_drawn_fabric("small.json", kSmall);
  const ClusterGraph& graph = fabric.graph;
  CHECK(fabric.hosts == std::vector<std::string>{"b", "a"});
  CHECK(graph.nodes() == 2);
  CHECK(graph.nics(0) == 2);
  CHECK(graph.vertex_name(graph.nic_port(1, 0)) == "a mlx5_0");
  REQUIRE(graph.cables().size() == 6);
  CHECK(graph.cables()[0].port_b == 7);
  CHECK(graph.cables()[0].capacity == kNic);
  CHECK(graph.cables()[1].capacity == gigabits_per_second(100));
  CHECK(fabric.down.size() == 1);
  check_round_trip(fabric);
}

TEST_CASE("fabric.json: switches without a level get their distance from the NICs") {
  const DrawnFabric fabric = read_drawn_fabric("small.json", kSmall);
  std::map<std::string, int> levels;
  for (const GraphVertex& v : fabric.graph.vertices()) levels[v.name] = v.level;
  CHECK(levels == std::map<std::string, int>{{"a mlx5_0", 0},
                                             {"b nic 0", 0},
                                             {"b nic 1", 0},
                                             {"leaf", 1},
                                             {"spare", -1},
                                             {"spine", 2}});
}

TEST_CASE("fabric.json: what a builder drew reads back the same") {
  FabricSpec spec;
  spec.levels = 3;
  spec.leaf_ports_down = 4;
  spec.leaf_oversubscription = 1.5;  // uneven rates
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
    spec.kind = kind;
    check_round_trip(drawn_fabric(graph_of(Fabric(spec, 19, 2, kNic)), "a builder"));
  }
}

struct FabricJsonMistake {
  std::string text;
  std::string message;
};

TEST_CASE("fabric.json: a mistake is reported with its place and what is allowed") {
  const std::string head =
      R"({"hosts": [{"name": "a", "nics": 1}], "switches": [{"name": "leaf"}], "cables": [)";
  const FabricJsonMistake mistakes[] = {
      {R"({"switches": [], "cables": []})",
       R"(f.json: found an object without "hosts"; allowed: an object with it)"},
      {R"({"hosts": [], "switches": [], "cables": []})",
       R"(f.json#/hosts: found an array; allowed: an array of at least one host)"},
      {R"({"hosts": [{"name": "a", "nics": 0}], "switches": [], "cables": []})",
       R"(f.json#/hosts/0/nics: found 0; allowed: )"},
      {R"({"hosts": [{"name": "a", "nics": 1}, {"name": "a", "nics": 1}]})",
       R"(f.json#/hosts/1/name: found "a"; allowed: a name that no other host has)"},
      {R"({"hosts": [{"name": "a", "nics": ["x", "x"]}]})",
       R"(f.json#/hosts/0/nics/1: found "x"; allowed: a name that no other NIC or switch has)"},
      {head + R"({"a": "a nic 0", "b": "laef", "rate": "1 Gb/s"}]})",
       R"(f.json#/cables/0/b: found "laef"; allowed: a nic 0, leaf. Did you mean "leaf"?)"},
      {head + R"({"a": "leaf", "b": "leaf", "rate": "1 Gb/s"}]})",
       R"(f.json#/cables/0/b: found "leaf"; allowed: another NIC or switch than "a")"},
      {head + R"({"a": "a nic 0", "b": "leaf"}]})",
       R"(f.json#/cables/0: found an object without "rate"; allowed: an object with it)"},
      {head + R"({"a": "a nic 0", "b": "leaf", "rate": "400"}]})",
       R"(f.json#/cables/0/rate: found "400"; allowed: )"},
      {head + R"({"a": "a nic 0", "b": "leaf", "rate": "1 Gb/s", "count": 2, "port_a": 1}]})",
       R"(f.json#/cables/0/count: found 2; allowed: 1 where the cable names its ports)"},
      {head + R"({"a": "a nic 0", "b": "leaf", "rate": "1 Gb/s", "speed": 1}]})",
       R"(f.json#/cables/0/speed: )"},
  };
  for (const FabricJsonMistake& mistake : mistakes) {
    CAPTURE(mistake.text);
    try {
      (void)read_fabric_json("f.json", mistake.text);
      FAIL_CHECK("it was read");
    } catch (const InputError& error) {
      const std::string found = error.what();
      CHECK_MESSAGE(found.starts_with(mistake.message), found);
    }
  }
}

}  // namespace
}  // namespace lockstep
