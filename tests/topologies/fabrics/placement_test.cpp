#include "topologies/fabrics/placement.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

TEST_CASE("parse_rank_order: takes the six orders of tp, dp and pp, and nothing else") {
  const auto megatron = parse_rank_order("tp-dp-pp");
  REQUIRE(megatron);
  CHECK(*megatron == RankOrder{ParallelAxis::tensor, ParallelAxis::data, ParallelAxis::pipeline});
  for (const char* order : {"tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"}) {
    CHECK(parse_rank_order(order));
  }
  for (const char* wrong : {"", "tp", "tp-dp", "tp-dp-dp", "tp_dp-pp", "tp-dp-pp-", "TP-DP-PP",
                            "tp-dp-cp", "tp-dp-ppp"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_rank_order(wrong));
  }
}

TEST_CASE("rank: every order numbers all positions once, and coordinates() is its inverse") {
  for (const char* order :
       {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"}) {
    const Placement placement(
        {.tensor = 2, .data = 3, .pipeline = 5, .order = *parse_rank_order(order)});
    std::set<int> seen;
    for (int k = 0; k < 5; ++k) {
      for (int j = 0; j < 3; ++j) {
        for (int i = 0; i < 2; ++i) {
          const RankCoordinates at{.tensor = i, .data = j, .pipeline = k};
          const int rank = placement.rank(at);
          CHECK(placement.coordinates(rank) == at);
          seen.insert(rank);
        }
      }
    }
    CHECK(seen.size() == 30);
    CHECK(*seen.rbegin() == 29);
  }
}

TEST_CASE("rank: Megatron's order has tensor ranks side by side and stages farthest apart") {
  const Placement placement({.tensor = 8, .data = 128, .pipeline = 16});
  CHECK(placement.ranks() == 16384);
  CHECK(placement.nodes() == 2048);
  CHECK(placement.rank({.tensor = 1, .data = 0, .pipeline = 0}) == 1);
  CHECK(placement.rank({.tensor = 0, .data = 1, .pipeline = 0}) == 8);
  CHECK(placement.rank({.tensor = 0, .data = 0, .pipeline = 1}) == 1024);
  CHECK(placement.node_of(1024 + 13) == 129);
  CHECK(placement.local_gpu_of(1024 + 13) == 5);
  CHECK(placement.nic_of(1024 + 13) == 5);
}

TEST_CASE("spread: tensor groups stay in a node, data groups take a rank of each") {
  const Placement placement({.tensor = 4, .data = 6, .pipeline = 2});
  const GroupSpread tensor = placement.spread(
      placement.group(ParallelAxis::tensor, {.tensor = 1, .data = 3, .pipeline = 1}));
  CHECK(tensor.nodes == 1);
  CHECK(tensor.per_node_min == 4);
  // Ranks 1, 5, ..., 21: two on each of three nodes.
  const GroupSpread data = placement.spread(
      placement.group(ParallelAxis::data, {.tensor = 1, .data = 3, .pipeline = 0}));
  CHECK(data.nodes == 3);
  CHECK(data.per_node_min == 2);
  CHECK(data.per_node_max == 2);
  // Stages are 24 ranks apart: other nodes.
  const GroupSpread pipeline = placement.spread(
      placement.group(ParallelAxis::pipeline, {.tensor = 1, .data = 3, .pipeline = 0}));
  CHECK(pipeline.nodes == 2);
  CHECK(pipeline.per_node_max == 1);
}

TEST_CASE("spread: a group that fills its last node partly is uneven") {
  const Placement placement({.tensor = 1, .data = 12, .pipeline = 1});
  const GroupSpread data = placement.spread(placement.group(ParallelAxis::data, {}));
  CHECK(data.nodes == 2);
  CHECK(data.per_node_max == 8);
  CHECK(data.per_node_min == 4);
}

TEST_CASE("spread: an NVL72 domain joins 18 nodes of 4 GPUs") {
  const Placement placement(
      {.tensor = 8, .data = 18, .pipeline = 1, .gpus_per_node = 4, .nvlink_domain = 72});
  const GroupSpread tensor = placement.spread(placement.group(ParallelAxis::tensor, {}));
  CHECK(tensor.nodes == 2);
  CHECK(tensor.domains == 1);
  const GroupSpread data = placement.spread(placement.group(ParallelAxis::data, {}));
  CHECK(data.nodes == 18);
  CHECK(data.domains == 2);
  CHECK(data.per_domain_max == 9);
  CHECK(placement.domain_of(71) == 0);
  CHECK(placement.domain_of(72) == 1);
  CHECK(placement.reach(0, 71) == Reach::nvlink_domain);
  CHECK(placement.reach(71, 72) == Reach::fabric);
}

TEST_CASE("spreads: of a family has each way in which one of its groups lies, and no other") {
  RandomStream random{{.seed = 14, .purpose = 3}};
  const auto one_of = [&](const std::vector<int>& values) {
    return values[random.below(static_cast<std::uint32_t>(values.size()))];
  };
  for (int trial = 0; trial < 2000; ++trial) {
    PlacementSpec spec{.tensor = one_of({1, 2, 3, 5, 6, 8, 12, 16}),
                       .data = one_of({1, 2, 3, 7, 8, 12}),
                       .pipeline = one_of({1, 2, 3, 4})};
    spec.order = *parse_rank_order(random.below(2) == 0 ? "tp-dp-pp" : "tp-pp-dp");
    spec.gpus_per_node = one_of({4, 6, 8});
    spec.nvlink_domain = spec.gpus_per_node * one_of({1, 1, 2, 9});
    if (random.below(4) == 0) spec.nvlink_domain = one_of({1, 2, 3, 4});
    const Placement placement(spec);
    const auto axis = static_cast<ParallelAxis>(random.below(kParallelAxes));
    CAPTURE(trial);
    const RankGroup group = placement.group(axis, {});
    GroupFamily family;
    for (int m = 0; m < group.count; ++m) family.members.push_back(group.rank(m));
    for (const ParallelAxis other :
         {ParallelAxis::tensor, ParallelAxis::data, ParallelAxis::pipeline}) {
      const RankGroup along = placement.group(other, {});
      if (other != axis) family.repeats.push_back({along.count, along.stride});
    }
    const std::vector<GroupSpread> ways = placement.spreads(family);
    std::vector<bool> seen(ways.size());
    for (int rank = 0; rank < placement.ranks(); ++rank) {
      const GroupSpread own = placement.spread(placement.group(axis, placement.coordinates(rank)));
      const auto way = std::ranges::find(ways, own);
      REQUIRE(way != ways.end());
      seen[static_cast<std::size_t>(way - ways.begin())] = true;
    }
    CHECK(std::ranges::find(seen, false) == seen.end());
  }
}

TEST_CASE("spreads: tensor widths that divide a node have one way, others straddle nodes") {
  struct Expected {
    int tensor;
    std::vector<GroupSpread> ways;
  };
  const auto inside = [](int n) { return GroupSpread{1, 1, n, n, n, n}; };
  const auto split = [](int less, int more) { return GroupSpread{2, 2, less, more, less, more}; };
  // Groups of three begin at ranks 0, 3 and 6 of a node of eight, and then at 1, 4 and 7.
  const std::vector<Expected> table{{2, {inside(2)}},
                                    {3, {inside(3), split(1, 2)}},
                                    {4, {inside(4)}},
                                    {5, {inside(5), split(1, 4), split(2, 3)}},
                                    {6, {inside(6), split(2, 4)}},
                                    {8, {inside(8)}},
                                    {12, {split(4, 8)}}};
  for (const Expected& row : table) {
    CAPTURE(row.tensor);
    const Placement placement({.tensor = row.tensor, .data = 24, .pipeline = 1});
    GroupFamily family{.first = 0, .members = {}, .repeats = {{24, row.tensor}}};
    for (int m = 0; m < row.tensor; ++m) family.members.push_back(m);
    const std::vector<GroupSpread> ways = placement.spreads(family);
    CHECK(ways.size() == row.ways.size());
    for (const GroupSpread& way : row.ways) CHECK(std::ranges::find(ways, way) != ways.end());
  }
}

TEST_CASE("domain_share: a job takes equal parts of as few NVLink domains as can give them") {
  const NodeSpec nvl72 = test::presets().node("gb200_nvl72");
  REQUIRE(nvl72.nvlink_domain == 72);
  REQUIRE(nvl72.gpus == 4);
  for (const auto& [gpus, share] : {std::pair{8, 72},
                                    {72, 72},
                                    {128, 64},
                                    {256, 64},
                                    {512, 64},
                                    {576, 72},
                                    {600, 60},
                                    {2560, 64},
                                    {76, 72}}) {
    CAPTURE(gpus);
    CHECK(domain_share(gpus, nvl72) == share);
  }
  CHECK(domain_share(4096, test::presets().node("dgx_h100")) == 8);
}

TEST_CASE("reach: pairs of GPUs with a bridge reach each other over it, others through the host") {
  const Placement placement(
      {.tensor = 2, .data = 8, .pipeline = 1, .gpus_per_node = 8, .nvlink_domain = 2});
  CHECK(placement.reach(4, 4) == Reach::self);
  CHECK(placement.reach(4, 5) == Reach::nvlink_domain);
  CHECK(placement.reach(5, 6) == Reach::node);
  CHECK(placement.reach(7, 8) == Reach::fabric);
  CHECK(placement.domain_of(8) == 4);
}

TEST_CASE("next_stage_reach: says when stages share a node, and wraps to the first stage") {
  // tp-pp-dp puts stages 0 and 1 on node 0, stages 2 and 3 on node 1.
  const Placement placement(
      {.tensor = 4, .data = 2, .pipeline = 4, .order = *parse_rank_order("tp-pp-dp")});
  CHECK(placement.next_stage_reach({.pipeline = 0}) == Reach::nvlink_domain);
  CHECK(placement.next_stage_reach({.pipeline = 1}) == Reach::fabric);
  CHECK(placement.next_stage_reach({.pipeline = 2}) == Reach::nvlink_domain);
  CHECK(placement.next_stage_reach({.pipeline = 3}) == Reach::fabric);
  CHECK(Placement({}).next_stage_reach({}) == Reach::self);
}

TEST_CASE("nic_ports: several NICs of a GPU are one port, few NICs are shared by neighbours") {
  NodeSpec node;
  node.gpus = 8;
  node.nics = 32;
  node.nic_bandwidth = gigabits_per_second(100);
  CHECK(nic_ports(node).count == 8);
  CHECK(nic_ports(node).bandwidth == gigabits_per_second(400));
  node.nics = 4;
  CHECK(nic_ports(node).count == 4);
  CHECK(nic_ports(node).bandwidth == gigabits_per_second(100));
  node.nics = 0;
  CHECK(nic_ports(node).count == 0);

  const Placement shared({.data = 16, .nic_ports = 4});
  const std::map<int, int> expected{{0, 0}, {1, 0}, {2, 1}, {7, 3}, {8, 0}, {15, 3}};
  for (const auto& [rank, nic] : expected) CHECK(shared.nic_of(rank) == nic);
}

TEST_CASE("placement: GPUs that share a NIC take turns at it, however many there are of both") {
  for (const int nics : {1, 2, 3, 4, 5, 8, 16}) {
    CAPTURE(nics);
    const Placement placement({.data = 16, .nic_ports = nics});
    std::map<int, int> seen;
    for (int rank = 0; rank < 8; ++rank) {
      CHECK(placement.turn_at_nic(rank) == seen[placement.nic_of(rank)]++);
      CHECK(placement.turn_at_nic(rank + 8) == placement.turn_at_nic(rank));
    }
  }
}

}  // namespace
}  // namespace lockstep
