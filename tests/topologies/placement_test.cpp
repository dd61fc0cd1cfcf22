#include "topologies/placement.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>

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

}  // namespace
}  // namespace lockstep
