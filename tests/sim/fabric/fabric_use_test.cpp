#include "sim/fabric/fabric_use.hpp"

#include <array>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/core/random.hpp"
#include "sim/fabric/faulty_fabric.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/site.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/message_process.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

using test::near;

FabricSpec spec_of(FabricKind kind, Routing routing, int levels = 2) {
  FabricSpec spec;
  spec.kind = kind;
  spec.routing = routing;
  spec.levels = levels;
  spec.leaf_ports_down = 4;
  spec.leaf_oversubscription = 2;
  return spec;
}

FabricFault cable(const char* from, const char* to, double rate) {
  FabricFault fault;
  fault.from = from;
  fault.to = to;
  fault.rate = rate;
  return fault;
}

/// What flows at random put on links, by the network that moved them and by hand.
struct Moved {
  std::vector<CarriedLink> carried;
  double bytes_times_hops = 0;
  StepTime end;
};
Moved move_at_random(const Fabric& fabric, std::uint64_t seed) {
  constexpr int kFlows = 40;
  FlowNetwork network;
  FabricLinks links{fabric, network};
  test::MessageProcess messages(network);
  RandomStream random({.seed = seed, .trajectory = 0, .component = 0, .purpose = 0});
  Moved out;
  for (int i = 0; i < kFlows; ++i) {
    const auto below = [&](int most) {
      return static_cast<int>(random.below(static_cast<std::uint32_t>(most)));
    };
    std::vector<RouteHop> hops;
    const int from = below(fabric.nodes()),
              to = (from + 1 + below(fabric.nodes() - 1)) % fabric.nodes();
    const int nic = below(fabric.nics_per_node());
    fabric.route(from, nic, to, nic, static_cast<std::uint64_t>(i), hops);
    std::vector<FlowEdge> edges;
    double shares = 0;
    for (const RouteHop& hop : hops) {
      edges.push_back({links[hop.link], hop.share});
      shares += hop.share;
    }
    const double bytes = 1e6 * (1 + below(1000));
    messages.add(network.add_flow(edges), {{StepTime{}, Bytes{bytes}}});
    out.bytes_times_hops += bytes * shares;
  }
  Engine engine(network);
  engine.add(messages);
  out.end = engine.run();
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    const LinkIndex known = links.known()[link];
    if (known == FabricLinks::kNoLink) continue;
    out.carried.push_back({fabric.link_name(link), links.capacity(link), network.carried(known)});
  }
  return out;
}

// Ends of transfers are rounded to picoseconds: of 40 flows that last a millisecond, 1e-9.
constexpr double kUseRounding = 1e-6;

TEST_CASE("fabric use: links without traffic carry as much of their line rate as those with it") {
  const Fabric fabric(spec_of(FabricKind::fat_tree, Routing::spray), 24, 2,
                      gigabytes_per_second(50));
  const FabricLink busy = fabric.nic_up(0, 0);
  const std::vector<CarriedLink> carried{
      {fabric.link_name(busy), 0.9 * fabric.capacity(busy), Bytes{1e9}}};
  const FabricUse use = use_of_fabric(fabric, carried, Seconds{1});
  double drawn = 0, line_rates = 0;
  for (const FabricUse::Line& line : use.lines) {
    drawn += (line.up.capacity + line.down.capacity).base_units();
  }
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    line_rates += fabric.capacity(link).base_units();
  }
  CHECK(drawn == near(0.9 * line_rates));
}

TEST_CASE(
    "fabric use: over all links of any fabric, what flows sent times the links they crossed") {
  std::vector<FabricSpec> specs{spec_of(FabricKind::fat_tree, Routing::spray),
                                spec_of(FabricKind::fat_tree, Routing::ecmp),
                                spec_of(FabricKind::rail_optimised, Routing::ecmp, 3),
                                spec_of(FabricKind::rail_optimised, Routing::spray, 3),
                                spec_of(FabricKind::dragonfly, Routing::adaptive),
                                spec_of(FabricKind::torus, Routing::spray),
                                spec_of(FabricKind::fat_tree, Routing::ecmp)};
  specs[0].planes = 2;
  specs[4].leaf_oversubscription = specs[5].leaf_oversubscription = 1;
  specs.back().faults = {cable("leaf 0", "spine 1", 0), cable("leaf 1", "spine 0", 0.5)};
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CAPTURE(i);
    const Fabric fabric(specs[i], 24, 2, gigabytes_per_second(50));
    const Moved moved = move_at_random(fabric, seed + i);
    const FabricUse use =
        use_of_fabric(without_faults(fabric), moved.carried, to_seconds(moved.end));
    CHECK(use.bytes().base_units() == near(moved.bytes_times_hops).epsilon(kUseRounding));
    double most = 0;
    for (const FabricUse::Line& line : use.lines) {
      most = std::max({most, line.up.fullest, line.down.fullest});
      CHECK(line.share(line.up) <= line.up.fullest * (1 + kUseRounding));
    }
    CHECK(most <= 1 + kUseRounding);
    CHECK(most > 0.2);  // some NIC is busy for most of the time
  }
}

TEST_CASE("fabric use: what is alike shares a box, however many there are") {
  FabricSpec spec = spec_of(FabricKind::rail_optimised, Routing::spray, 3);
  spec.leaf_ports_down = 32;
  const Fabric fabric(spec, 2000, 8, gigabytes_per_second(50));
  std::vector<CarriedLink> carried;
  for (int node = 0; node < 2000; ++node) {
    const FabricLink link = fabric.nic_up(node, 0);
    carried.push_back({fabric.link_name(link), fabric.capacity(link), Bytes{25e9}});
  }
  const FabricUse use = use_of_fabric(fabric, carried, Seconds{1});
  std::map<int, std::size_t> boxes;
  std::map<int, std::uint32_t> members;
  for (const FabricUse::Box& box : use.boxes) {
    ++boxes[box.level];
    members[box.level] += box.count;
  }
  REQUIRE(boxes.size() == 4);
  for (const auto& [level, count] : boxes) CHECK(count <= kMostBoxes);
  CHECK(members[0] == 2000);
  CHECK(members[1] == static_cast<std::uint32_t>(fabric.counts().leaves));
  std::uint32_t cables = 0;
  double fullest = 0;
  for (const FabricUse::Line& line : use.lines) {
    if (use.boxes[line.lower].level == 0) cables += line.cables;
    fullest = std::max(fullest, line.up.fullest);
  }
  CHECK(cables == 16'000);
  CHECK(fullest == near(0.5));
  CHECK(use.bytes().base_units() == near(2000 * 25e9));
}

TEST_CASE("fabric use: a dead and a slow cable are told from those that fail for a time") {
  const FabricSpec spec = spec_of(FabricKind::fat_tree, Routing::ecmp);
  FabricSpec drawn = spec;
  drawn.faults = {no_fault()};
  const Fabric whole(drawn, 8, 1, gigabytes_per_second(50));
  const std::array always{cable("leaf 0", "spine 0", 0), cable("leaf 0", "spine 1", 0.25)};
  const std::array sometimes{cable("leaf 1", "spine 1", 0)};
  const FabricUse use = use_of_fabric(
      whole, {}, Seconds{1},
      {.left = capacity_left(whole, always), .lowest = capacity_left(whole, sometimes)});
  std::uint32_t dead = 0, degraded = 0, passing = 0;
  for (const FabricUse::Line& line : use.lines) {
    const std::string ends = use.boxes[line.lower].name + " to " + use.boxes[line.upper].name;
    CAPTURE(ends);
    CHECK((line.dead > 0) == (ends == "leaf 0 to spine 0"));
    CHECK((line.degraded > 0) == (ends == "leaf 0 to spine 1"));
    CHECK((line.passing > 0) == (ends == "leaf 1 to spine 1"));
    if (line.degraded > 0) CHECK(line.least_left == 0.25);
    dead += line.dead, degraded += line.degraded, passing += line.passing;
  }
  CHECK(dead == 1);
  CHECK(degraded == 1);
  CHECK(passing == 1);
}

// Where routes are symmetric one lane is simulated for all eight, and folded replicas once; drawn
// cable by cable, every lane is.
TEST_CASE("fabric use: a folded step shows what the same step shows link by link") {
  Scenario scenario = read_scenario("t.json", R"({
      "model": "llama3_70b", "stack": "megatron_core",
      "cluster": {"node": "dgx_h100", "nodes": 16,
                  "fabric": {"kind": "rail_optimised", "routing": "spray", "leaf_ports_down": 4}},
      "parallelism": {"tensor": 8, "pipeline": 2, "data": 8},
      "batch": {"sequences": 32, "micro": 1, "tokens": 4096}, "recompute": "full"})",
                                    PresetStore{});
  const auto by_level = [](const StepReport& report) {
    std::map<int, double> bytes;
    for (const FabricUse::Line& line : report.use.value().lines) {
      bytes[report.use->boxes[line.lower].level] += (line.up.bytes + line.down.bytes).base_units();
    }
    return bytes;
  };
  const StepReport folded = simulate_step(scenario, {.draw_fabric = true});
  CHECK(folded.replicas_simulated < folded.replicas);
  scenario.fabric.faults = {no_fault()};
  const StepReport drawn =
      simulate_step(scenario, {.folding = Folding::unfolded, .draw_fabric = true});
  REQUIRE(drawn.replicas_simulated == drawn.replicas);
  CHECK(folded.step_s == near(drawn.step_s).epsilon(1e-9));
  auto one = by_level(folded), other = by_level(drawn);
  REQUIRE(one.size() == other.size());
  for (const auto& [level, bytes] : one) {
    CAPTURE(level);
    CHECK(bytes > 0);
    CHECK(bytes == near(other[level]).epsilon(kUseRounding));
  }
}

}  // namespace
}  // namespace lockstep
