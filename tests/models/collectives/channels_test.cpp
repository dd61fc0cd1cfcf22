#include "models/collectives/channels.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "models/collectives/collective_extension.hpp"

namespace lockstep {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Consecutive ranks: g in each of k nodes.
std::vector<GroupMember> block(int nodes, int per_node) {
  std::vector<GroupMember> members;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < per_node; ++gpu) members.push_back({node, gpu});
  }
  return members;
}

int node_of(const std::vector<GroupMember>& members, int member) {
  return members[at(member)].node;
}

/// Bytes out of and into every member's NIC.
std::pair<std::vector<double>, std::vector<double>> nic_bytes(
    const CollectiveShape& shape, const std::vector<GroupMember>& members) {
  std::vector<double> out(members.size()), in(members.size());
  std::vector<NetworkEdge> edges = shape.edges;
  const std::vector<NetworkEdge> pairs = pair_edges(shape, members);
  edges.insert(edges.end(), pairs.begin(), pairs.end());
  for (const NetworkEdge& edge : edges) {
    if (edge.from != kSwitch) out[at(edge.from)] += edge.bytes;
    if (edge.to != kSwitch) in[at(edge.to)] += edge.bytes;
  }
  return {out, in};
}

TEST_CASE("ring_channels: a ring holds every member once and enters every node once") {
  for (const auto& [nodes, per_node] : {std::pair{1, 8}, {2, 8}, {5, 4}, {16, 8}, {7, 1}}) {
    CAPTURE(nodes);
    const std::vector<GroupMember> members = block(nodes, per_node);
    for (const RingChannel& ring : ring_channels(members, 16)) {
      CHECK(std::set<int>(ring.order.begin(), ring.order.end()).size() == members.size());
      CHECK(ring.order.size() == members.size());
      std::map<int, int> entered;
      for (std::size_t i = 0; i < ring.order.size(); ++i) {
        const int here = node_of(members, ring.order[i]);
        const int next = node_of(members, ring.order[(i + 1) % ring.order.size()]);
        if (here != next) ++entered[next];
      }
      CHECK(entered.size() == (nodes > 1 ? at(nodes) : 0));
      for (const auto& [node, times] : entered) CHECK(times == 1);
      CHECK(members[at(ring.order.front())].gpu == ring.rail);
    }
  }
}

TEST_CASE("ring_channels: sixteen rings use each of eight rails twice") {
  std::map<int, int> rings;
  for (const RingChannel& ring : ring_channels(block(4, 8), 16)) ++rings[ring.rail];
  CHECK(rings.size() == 8);
  for (const auto& [rail, count] : rings) CHECK(count == 2);
}

TEST_CASE("group_nodes: strided and shuffled ranks are gathered by node, each once") {
  // Ranks go round the nodes: 0, 1, 2, 0, 1, 2; GPUs of a node in falling order.
  const std::vector<GroupMember> members{{0, 5}, {1, 5}, {2, 5}, {0, 1}, {1, 1}, {2, 1}};
  const std::vector<GroupNode> nodes = group_nodes(members);
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].members == std::vector<int>{3, 0});
  CHECK(nodes[2].members == std::vector<int>{5, 2});
}

TEST_CASE("double_binary_tree: one root each, no cycle, depth at most log2 + 1") {
  for (int nodes = 1; nodes <= 200; ++nodes) {
    CAPTURE(nodes);
    const DoubleBinaryTree trees = double_binary_tree(nodes);
    for (const std::vector<int>* parent : {&trees.first, &trees.second}) {
      REQUIRE(parent->size() == at(nodes));
      CHECK(std::ranges::count(*parent, -1) == 1);
      std::vector<int> children(at(nodes));
      for (int node = 0; node < nodes; ++node) {
        int depth = 0;
        for (int up = node; up >= 0 && depth <= nodes; up = (*parent)[at(up)]) ++depth;
        CHECK(depth - 1 <= std::log2(nodes) + 1);
        if ((*parent)[at(node)] >= 0) ++children[at((*parent)[at(node)])];
      }
      CHECK(*std::ranges::max_element(children) <= 2);
    }
  }
}

TEST_CASE("double_binary_tree: a node is a leaf in one tree and inner in the other") {
  for (int nodes = 2; nodes <= 200; ++nodes) {
    CAPTURE(nodes);
    const DoubleBinaryTree trees = double_binary_tree(nodes);
    const auto is_inner = [](const std::vector<int>& parent, int node) {
      return std::ranges::count(parent, node) > 0;
    };
    for (int node = nodes % 2; node < nodes; ++node) {  // odd: node 0 is inner in both
      CHECK(is_inner(trees.first, node) != is_inner(trees.second, node));
    }
  }
}

// NCCL src/graph/trees.cc draws this tree of 14 nodes: 0 -> 8 -> 4, 12 -> 2, 6, 10, 13 -> ...
TEST_CASE("double_binary_tree: the first tree of 14 nodes is the one in NCCL's comment") {
  const DoubleBinaryTree trees = double_binary_tree(14);
  CHECK(trees.first == std::vector<int>{-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12});
}

TEST_CASE(
    "collective_shape: every algorithm's row has its shape, and none is added in this program") {
  const std::vector<GroupMember> members = block(4, 2);
  for (const CollectiveAlgorithm& row : own_collective_algorithms()) {
    CAPTURE(row.name);
    const bool has_shape = row.shape != nullptr;
    REQUIRE(has_shape);
    CHECK_FALSE(is_extension(row));
    const bool pairs = row.name == "pairwise" || row.name == "two_level";
    const CollectiveOp op = row.name == "pat" ? CollectiveOp::all_gather
                            : pairs           ? CollectiveOp::all_to_all
                                              : CollectiveOp::all_reduce;
    const CollectiveShape from_row = row.shape({op, members, 16, 2});
    const CollectiveShape asked = collective_shape(op, row.name, members, 16, 2);
    CHECK(from_row.edges == asked.edges);
    CHECK(from_row.pairs == asked.pairs);
    CHECK(from_row.nvlink_coefficient == asked.nvlink_coefficient);
    CHECK(asked.edges.empty() == pairs);
  }
}

TEST_CASE("collective_shape: a ring's bytes are even over rails and add up to the closed form") {
  const std::vector<GroupMember> members = block(4, 8);
  const CollectiveShape shape = collective_shape(CollectiveOp::all_reduce, "ring", members, 16);
  const auto [out, in] = nic_bytes(shape, members);
  for (std::size_t i = 0; i < members.size(); ++i) {
    CHECK(out[i] == doctest::Approx(2.0 * 31 / 32 / 8));
    CHECK(in[i] == doctest::Approx(out[i]));
  }
  CHECK(shape.nvlink_coefficient == doctest::Approx(2.0 * 31 / 32 * 7 / 8));
  CHECK(shape.edges.size() == 4 * 8);
}

TEST_CASE("collective_shape: an edge says how many channels share its bytes") {
  const std::vector<GroupMember> members = block(4, 8);
  const auto all = [&](CollectiveOp op, const char* algorithm, int channels) {
    const CollectiveShape shape = collective_shape(op, algorithm, members, 16, 2);
    std::vector<NetworkEdge> edges = shape.edges;
    const std::vector<NetworkEdge> pairs = pair_edges(shape, members);
    edges.insert(edges.end(), pairs.begin(), pairs.end());
    REQUIRE_FALSE(edges.empty());
    return std::ranges::all_of(edges, [&](const NetworkEdge& e) { return e.channels == channels; });
  };
  // Sixteen channels over eight rails; each pair to all has two of its own.
  CHECK(all(CollectiveOp::all_gather, "ring", 2));
  CHECK(all(CollectiveOp::all_reduce, "hierarchical", 2));
  CHECK(all(CollectiveOp::all_to_all, "pairwise", 2));
  CHECK(all(CollectiveOp::all_to_all, "two_level", 2));
  // Two trees a rail, each on one channel. Of four nodes 0 is the root of the first, above 2, which
  // is above 1 and 3; in the second node 3 is above 1, above 0 and 2: both have an edge from 2
  // to 1.
  const CollectiveShape trees = collective_shape(CollectiveOp::all_reduce, "tree", members, 16);
  for (const NetworkEdge& edge : trees.edges) {
    const auto nodes = std::minmax({node_of(members, edge.from), node_of(members, edge.to)});
    CHECK(edge.channels == (nodes == std::pair{1, 2} ? 2 : 1));
  }
}

// Two trees, each half of the payload: a leaf of one and inner node of the other sends its half up
// twice and once down for each child, at most two.
TEST_CASE("collective_shape: double trees send 2(k-1)/k on average, at most 2 payloads a node") {
  for (const int nodes : {2, 4, 8, 16, 64}) {
    CAPTURE(nodes);
    const std::vector<GroupMember> members = block(nodes, 8);
    const CollectiveShape shape =
        collective_shape(CollectiveOp::all_reduce, "nvls_tree", members, 16);
    const auto [out, in] = nic_bytes(shape, members);
    double total = 0;
    for (int node = 0; node < nodes; ++node) {
      double sent = 0;
      for (int gpu = 0; gpu < 8; ++gpu) {
        sent += out[at(node * 8 + gpu)];
        CHECK(out[at(node * 8 + gpu)] == doctest::Approx(out[at(node * 8)]));
      }
      CHECK(sent <= 2 + 1e-12);
      total += sent;
    }
    CHECK(total / nodes == doctest::Approx(2.0 * (nodes - 1) / nodes));
  }
}

TEST_CASE("collective_shape: in the network each node sends and gets the payload once") {
  const std::vector<GroupMember> members = block(16, 8);
  for (const char* algorithm : {"nvls", "collnet_direct", "collnet_chain"}) {
    const CollectiveShape shape =
        collective_shape(CollectiveOp::all_reduce, algorithm, members, 16);
    const auto [out, in] = nic_bytes(shape, members);
    for (std::size_t i = 0; i < members.size(); ++i) {
      CHECK(out[i] == doctest::Approx(1.0 / 8));
      CHECK(in[i] == doctest::Approx(1.0 / 8));
    }
    // A reduce-scatter and an all-gather of eight inside, or (g + 1) / g with NVLink's switch.
    CHECK(shape.nvlink_coefficient <= 2.0 * 7 / 8 + 1e-12);
    if (std::string_view(algorithm) != "nvls") {
      CHECK(shape.nvlink_coefficient == doctest::Approx(2.0 * 7 / 8));
    }
  }
}

TEST_CASE("collective_shape: hierarchical sends 2(k-1)/k of a rail's share on each rail") {
  const std::vector<GroupMember> members = block(4, 8);
  const CollectiveShape shape =
      collective_shape(CollectiveOp::all_reduce, "hierarchical", members, 16);
  const auto [out, in] = nic_bytes(shape, members);
  for (const double bytes : out) CHECK(bytes == doctest::Approx(2.0 * 3 / 4 / 8));
  CHECK(shape.nvlink_coefficient == doctest::Approx(2.0 * 7 / 8));
}

TEST_CASE("collective_shape: PAT moves (n-1)/n out of every member in log2 n steps") {
  for (const int nodes : {2, 3, 7, 8, 100}) {
    CAPTURE(nodes);
    const std::vector<GroupMember> members = block(nodes, 1);
    const CollectiveShape shape = collective_shape(CollectiveOp::all_gather, "pat", members, 1);
    const auto [out, in] = nic_bytes(shape, members);
    for (std::size_t i = 0; i < members.size(); ++i) {
      CHECK(out[i] == doctest::Approx((nodes - 1.0) / nodes));
      CHECK(in[i] == doctest::Approx((nodes - 1.0) / nodes));
    }
    CHECK(shape.edges.size() == at(nodes) * at(static_cast<int>(std::ceil(std::log2(nodes)))));
  }
}

TEST_CASE("collective_shape: direct and two-level all-to-all put the same bytes on every NIC") {
  const std::vector<GroupMember> members = block(4, 8);
  for (const char* algorithm : {"pairwise", "two_level"}) {
    CAPTURE(algorithm);
    const CollectiveShape shape =
        collective_shape(CollectiveOp::all_to_all, algorithm, members, 16);
    const auto [out, in] = nic_bytes(shape, members);
    for (std::size_t i = 0; i < members.size(); ++i) {
      CHECK(out[i] == doctest::Approx(24.0 / 32));
      CHECK(in[i] == doctest::Approx(24.0 / 32));
    }
    const bool rails = shape.pairs == PairPattern::rail_pairs;
    CHECK(pair_edges(shape, members).size() == (rails ? 32 * 3 : 32 * 24));
  }
}

TEST_CASE("collective_shape: a broadcast uses every edge of the ring but the last") {
  const std::vector<GroupMember> members = block(4, 2);
  CHECK(collective_shape(CollectiveOp::broadcast, "ring", members, 2).edges.size() == 3 * 2);
  CHECK(collective_shape(CollectiveOp::all_gather, "ring", members, 2).edges.size() == 4 * 2);
}

TEST_CASE(
    "collective_shape: nothing comes into the root of a broadcast, nothing leaves a reduce's") {
  const std::vector<GroupMember> members = block(4, 2);
  const CollectiveShape out = collective_shape(CollectiveOp::broadcast, "ring", members, 2);
  const CollectiveShape in = collective_shape(CollectiveOp::reduce, "ring", members, 2);
  CHECK(in.edges.size() == out.edges.size());
  for (const NetworkEdge& edge : out.edges) CHECK(members[std::size_t(edge.to)].node != 0);
  for (const NetworkEdge& edge : in.edges) CHECK(members[std::size_t(edge.from)].node != 0);
}

TEST_CASE("collective_shape: ranks that go round the nodes send to neighbours over the network") {
  const std::vector<GroupMember> strided{{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  const CollectiveShape far = collective_shape(CollectiveOp::send_receive, "pairwise", strided, 1);
  CHECK(far.edges.size() == 4);
  CHECK(far.nvlink_coefficient == 0);
  const CollectiveShape near =
      collective_shape(CollectiveOp::send_receive, "pairwise", block(2, 2), 1);
  CHECK(near.edges.size() == 2);
  CHECK(near.nvlink_coefficient == 0.5);
}

}  // namespace
}  // namespace lockstep
