// What a traffic scenario may say, and the line that a mistake gets.
#include "sim/scenario/read_traffic.hpp"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/members.hpp"

namespace lockstep {
namespace {

const std::string kCluster = R"("cluster": {"node": "dgx_h100", "nodes": 4})";

TrafficScenario read_entry(const std::string& entry) {
  static const PresetStore presets;
  return read_traffic("plan.json", "{" + kCluster + R"(, "traffic": [)" + entry + "]}", presets);
}

std::string message_of(const std::string& entry) {
  try {
    (void)read_entry(entry);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no mistake";
}

}  // namespace

TEST_CASE("read_traffic: what is left out follows from the cluster and the kind") {
  const TrafficScenario scenario = read_entry(R"({"kind": "all_reduce", "size": "1 GiB"})");
  const TrafficEntry& entry = scenario.entries.at(0);
  CHECK(entry.name == "all_reduce");
  CHECK(entry.members.count == 32);
  CHECK(entry.grain == Grain::nccl);
  CHECK(scenario.efficiency == scenario.cluster.transport.efficiency);
  REQUIRE(scenario.assumptions.size() == 2);
  CHECK(scenario.assumptions[0] == "fabric: rail_optimised (not given)");
  CHECK(scenario.assumptions[1] == "efficiency: 0.965 of line rate (infiniband)");
}

TEST_CASE("read_traffic: NCCL runs collectives of GPUs, unless rings are asked for") {
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}) {
    CAPTURE(kind);
    const auto grain = [kind](const std::string& more) {
      return read_entry(R"({"kind": ")" + std::string(kind) + R"(", "size": "1 GiB")" + more + "}")
          .entries.at(0)
          .grain;
    };
    CHECK(grain("") == Grain::nccl);
    CHECK(grain(R"(, "as": "nccl")") == Grain::nccl);
    CHECK(grain(R"(, "channels": 1)") == Grain::coupled);
    CHECK(grain(R"(, "as": "flows")") == Grain::flows);
    CHECK(grain(R"(, "members": "nics")") == Grain::coupled);
  }
}

TEST_CASE("read_traffic: a mistake is one line that says where, what, and what instead") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"({"kind": "incst", "size": 1})",
       R"(plan.json#/traffic/0/kind: found "incst"; allowed: permutation, shift, incast, outcast, )"
       R"(pairs, storage, all_to_all, send_receive, all_reduce, all_gather, reduce_scatter, )"
       R"(broadcast, reduce. Did you mean "incast"?)"},
      {R"({"kind": "shift", "size": 8, "by": 32})",
       R"(plan.json#/traffic/0/by: found 32; allowed: a whole number from 1 to 31)"},
      {R"({"kind": "shift", "size": 8, "groups": 5})",
       R"(plan.json#/traffic/0/groups: found 5; allowed: a divisor of 32 (members))"},
      {R"({"kind": "shift", "size": 8, "groups": 32})",
       R"(plan.json#/traffic/0/groups: found 32; allowed: at least 2 members in a group)"},
      {R"({"kind": "incast", "size": 8, "as": "messages"})",
       R"(plan.json#/traffic/0/as: found "messages"; allowed: flows, sources, coupled)"},
      {R"({"kind": "all_reduce", "size": {"from": 8, "to": 9}})",
       R"(plan.json#/traffic/0/size: found an object; allowed: one size, unless "as" is "flows")"},
      {R"({"kind": "pairs", "size": 8, "pairs": [[0, 0]]})",
       "plan.json#/traffic/0/pairs/0: found an array; allowed: a sender and another "
       "receiver"},
      {R"({"kind": "storage", "size": 8, "servers": {"nodes": {"first": 3}}})",
       "plan.json#/traffic/0/servers: found an object; allowed: nodes that are not the members'"},
      {R"({"kind": "shift", "size": 8}, {"kind": "shift", "size": 8})",
       "plan.json#/traffic/1: found an object; allowed: a \"name\" that no other entry has"},
      {"", "plan.json#/traffic: found an array; allowed: at least one entry"},
  };
  for (const auto& [entry, message] : mistakes) CHECK(message_of(entry) == message);
}

TEST_CASE("read_traffic: every key says where it is wrong") {
  const auto shift = [](const std::string& more) {
    return R"({"kind": "shift", "size": "1 MiB", )" + more + "}";
  };
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {R"({"size": 8})", ""},
      {R"({"kind": "shift"})", ""},
      {R"({"kind": "shift", "size": "1 furlong"})", "/size"},
      {R"({"kind": "shift", "size": 0})", "/size"},
      {R"({"kind": "shift", "size": {"from": 9, "to": 8}})", "/size/to"},
      {R"({"kind": "shift", "size": {"from": 9}})", "/size"},
      {shift(R"("name": 7)"), "/name"},
      {shift(R"("nmae": "x")"), "/nmae"},
      {shift(R"("members": "cpus")"), "/members"},
      {shift(R"("members": {"of": "cpus"})"), "/members/of"},
      {shift(R"("members": {"nodes": {"first": 4}})"), "/members/nodes/first"},
      {shift(R"("members": {"nodes": {"first": 2, "count": 3}})"), "/members/nodes/count"},
      {shift(R"("members": {"first": 32})"), "/members/first"},
      {shift(R"("members": {"stride": 0})"), "/members/stride"},
      {shift(R"("members": {"stride": 16, "count": 3})"), "/members/count"},
      {shift(R"("members": {"shuffle": -1})"), "/members/shuffle"},
      {shift(R"("members": {"first": 31})"), "/members"},
      {shift(R"("groups": {"count": 3})"), "/groups/count"},
      {shift(R"("groups": {"count": 4, "spread": "far"})"), "/groups/spread"},
      {shift(R"("groups": {"spread": "strided"})"), "/groups"},
      {shift(R"("as": "molecules")"), "/as"},
      {shift(R"("start": "-1 s")"), "/start"},
      {shift(R"("repeat": 0)"), "/repeat"},
      {shift(R"("gap": "1 m")"), "/gap"},
      {shift(R"("seed": 1.5)"), "/seed"},
      {shift(R"("root": 0)"), "/root"},
      {shift(R"("channels": 2)"), "/channels"},
      {R"({"kind": "incast", "size": 8, "root": 32})", "/root"},
      {R"({"kind": "all_reduce", "size": 8, "channels": 65})", "/channels"},
      {R"({"kind": "broadcast", "size": 8, "as": "messages"})", "/as"},
      {R"({"kind": "reduce", "size": 8, "as": "messages"})", "/as"},
      {R"({"kind": "reduce", "size": 8, "root": 32})", "/root"},
      {R"({"kind": "broadcast", "size": 8, "members": "nics", "as": "nccl"})", "/as"},
      {R"({"kind": "pairs", "size": 8})", ""},
      {R"({"kind": "pairs", "size": 8, "pairs": []})", "/pairs"},
      {R"({"kind": "pairs", "size": 8, "pairs": [[0, 1, 2]]})", "/pairs/0"},
      {R"({"kind": "pairs", "size": 8, "pairs": [[0, 1], [0, 32]]})", "/pairs/1/1"},
      {R"({"kind": "storage", "size": 8})", ""},
      {R"({"kind": "storage", "size": 8, "members": {"nodes": {"count": 2}},
           "servers": {"nodes": {"first": 3}}, "direction": "up"})",
       "/direction"},
      {shift(R"("repeat": 1000000)"), ""},
      {R"({"kind": "shift", "size": "1 PB", "repeat": 100})", "/size"},
  };
  for (const auto& [entry, pointer] : mistakes) {
    CAPTURE(entry);
    const std::string message = message_of(entry);
    CAPTURE(message);
    CHECK(message.starts_with("plan.json#/traffic/0" + pointer + ": "));
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("members: picked, strided, drawn and grouped") {
  const TrafficScenario scenario = read_entry(
      R"({"kind": "shift", "size": 8, "members": {"nodes": {"first": 1, "count": 2}, "first": 1,
          "stride": 5, "count": 3}},
         {"name": "b", "kind": "shift", "size": 8, "members": {"of": "nics", "shuffle": 7}},
         {"name": "c", "kind": "shift", "size": 8, "groups": {"count": 4, "spread": "strided"}})");
  const NodeSpec& node = scenario.cluster.node;
  const auto picked = members_of(scenario.entries[0].members, node);
  REQUIRE(picked.size() == 3);
  CHECK(name_of(picked[0]) == "node 1 gpu 1");
  CHECK(name_of(picked[1]) == "node 1 gpu 6");
  CHECK(name_of(picked[2]) == "node 2 gpu 3");

  const auto drawn = members_of(scenario.entries[1].members, node);
  REQUIRE(drawn.size() == 32);
  int in_place = 0;
  std::vector<int> seen(32);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    CHECK(drawn[i].gpu == -1);
    const auto number = static_cast<std::size_t>(drawn[i].node * 8 + drawn[i].nic);
    ++seen[number];
    in_place += number == i ? 1 : 0;
  }
  CHECK(seen == std::vector<int>(32, 1));
  CHECK(in_place < 16);

  const auto all = members_of(scenario.entries[2].members, node);
  const auto third = group_of(all, scenario.entries[2].groups, 2);
  REQUIRE(third.size() == 8);
  CHECK(name_of(third[0]) == "node 0 gpu 2");
  CHECK(name_of(third[1]) == "node 0 gpu 6");
}

}  // namespace lockstep
