#include "models/collectives/channels.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <map>
#include <utility>

#include "models/collectives/collective_extension.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Members of the smallest node: the rails that every node has.
int common_rails(std::span<const GroupNode> nodes) {
  const auto smallest = std::ranges::min_element(
      nodes, {}, [](const GroupNode& node) { return node.members.size(); });
  return static_cast<int>(smallest->members.size());
}

/// Parent of `node` in NCCL's binary tree, -1 at the root: nodes with a higher lowest bit sit
/// higher.
int binary_tree_parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = static_cast<int>(1U << std::countr_zero(static_cast<unsigned>(node)));
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

}  // namespace

std::vector<GroupNode> group_nodes(std::span<const GroupMember> members) {
  assert(!members.empty());
  std::vector<GroupNode> nodes;
  std::map<int, std::size_t> position;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [where, is_new] = position.try_emplace(members[i].node, nodes.size());
    if (is_new) nodes.push_back({members[i].node, {}});
    nodes[where->second].members.push_back(static_cast<int>(i));
  }
  for (GroupNode& node : nodes) {
    std::ranges::sort(node.members, {}, [&](int member) { return members[at(member)].gpu; });
  }
  return nodes;
}

std::vector<RingChannel> ring_channels(std::span<const GroupMember> members, int channels) {
  assert(channels >= 1);
  const std::vector<GroupNode> nodes = group_nodes(members);
  const int rails = common_rails(nodes);
  std::vector<RingChannel> out;
  for (int c = 0; c < channels; ++c) {
    RingChannel ring{.rail = c % rails, .order = {}};
    ring.order.reserve(members.size());
    for (const GroupNode& node : nodes) {
      // In at the member beside the rail's NIC, then on around the node.
      for (std::size_t i = 0; i < node.members.size(); ++i) {
        ring.order.push_back(node.members[(i + at(ring.rail)) % node.members.size()]);
      }
    }
    out.push_back(std::move(ring));
  }
  return out;
}

DoubleBinaryTree double_binary_tree(int nodes) {
  assert(nodes >= 1);
  DoubleBinaryTree trees;
  const bool odd = nodes % 2 == 1;
  for (int node = 0; node < nodes; ++node) {
    trees.first.push_back(binary_tree_parent(node, nodes));
    // The second tree is the first, shifted by one node or mirrored, so that leaves become inner.
    const int image = odd ? (node - 1 + nodes) % nodes : nodes - 1 - node;
    const int up = binary_tree_parent(image, nodes);
    trees.second.push_back(up < 0 ? -1 : odd ? (up + 1) % nodes : nodes - 1 - up);
  }
  return trees;
}

std::vector<TreeChannel> tree_channels(std::span<const GroupMember> members, int channels) {
  assert(channels >= 1);
  const std::vector<GroupNode> nodes = group_nodes(members);
  const int rails = common_rails(nodes);
  const DoubleBinaryTree trees = double_binary_tree(static_cast<int>(nodes.size()));
  std::vector<TreeChannel> out;
  out.reserve(static_cast<std::size_t>(channels));
  for (int c = 0; c < channels; ++c) {
    out.push_back({.rail = c / 2 % rails, .parent = c % 2 == 0 ? trees.first : trees.second});
  }
  return out;
}

CollectiveShape collective_shape(CollectiveOp op, std::string_view algorithm,
                                 std::span<const GroupMember> members, int channels,
                                 int peer_channels) {
  assert(members.size() >= 2 && channels >= 1 && peer_channels >= 1);
  const ShapeCall call{op, members, channels, peer_channels};
  const std::span<const CollectiveAlgorithm> rows = collective_algorithms();
  const auto row = std::ranges::find(rows, algorithm, &CollectiveAlgorithm::name);
  if (row == rows.end()) return ring_shape(call);
  return is_extension(*row) ? added_shape(*row, call) : row->shape(call);
}

CollectiveShape skewed(CollectiveShape shape, const ExchangeSkew& skew,
                       std::span<const GroupMember> members) {
  if (skew.is_even()) return shape;
  std::vector<double> weights = skew_weights(skew, members);
  if (!skew.back) {
    shape.receives = std::move(weights);
    return shape;
  }
  // Gathered, what a node sends back leaves on the rails of its receivers.
  for (const GroupNode& node : group_nodes(members)) {
    if (shape.pairs != PairPattern::rail_pairs) break;
    double sum = 0;
    for (const int member : node.members) sum += weights[at(member)];
    for (const int member : node.members) {
      weights[at(member)] = sum / static_cast<double>(node.members.size());
    }
  }
  shape.sends = std::move(weights);
  return shape;
}

std::vector<NetworkEdge> pair_edges(const CollectiveShape& shape,
                                    std::span<const GroupMember> members) {
  std::vector<NetworkEdge> out;
  if (shape.pairs == PairPattern::none) return out;
  const auto share = [](const std::vector<double>& shares, int member) {
    return shares.empty() ? 1.0 : shares[at(member)];
  };
  const auto add = [&](int from, int to) {
    out.push_back({from, to,
                   shape.bytes_per_pair * share(shape.sends, from) * share(shape.receives, to),
                   shape.channels_per_pair});
  };
  const std::vector<GroupNode> nodes = group_nodes(members);
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    for (std::size_t b = 0; b < nodes.size(); ++b) {
      if (a == b) continue;
      const std::vector<int>&from = nodes[a].members, &to = nodes[b].members;
      for (std::size_t r = 0; r < from.size(); ++r) {
        if (shape.pairs == PairPattern::rail_pairs) {
          add(from[r], to[r % to.size()]);
          continue;
        }
        for (const int member : to) add(from[r], member);
      }
    }
  }
  return out;
}

std::vector<PortBytes> all_to_all_ports(const ExchangeSkew& skew, bool gathered,
                                        std::span<const GroupMember> members) {
  const std::vector<double> weights = skew_weights(skew, members);
  const std::vector<GroupNode> nodes = group_nodes(members);
  std::vector<std::size_t> node_of(members.size()), rail_of(members.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::size_t r = 0; r < nodes[i].members.size(); ++r) {
      node_of[at(nodes[i].members[r])] = i;
      rail_of[at(nodes[i].members[r])] = r;
    }
  }
  std::vector<PortBytes> ports(members.size());
  const auto over_nvlink = [&ports](std::size_t from, std::size_t to, double bytes) {
    if (from == to) return;
    ports[from].nvlink_out += bytes;
    ports[to].nvlink_in += bytes;
  };
  const auto n = static_cast<double>(members.size());
  for (std::size_t from = 0; from < members.size(); ++from) {
    const std::vector<int>& beside = nodes[node_of[from]].members;
    for (std::size_t to = 0; to < members.size(); ++to) {
      const double bytes = weights[skew.back ? from : to] / n;
      if (node_of[from] == node_of[to]) {
        over_nvlink(from, to, bytes);
        continue;
      }
      const std::size_t leaves = gathered ? at(beside[rail_of[to] % beside.size()]) : from;
      over_nvlink(from, leaves, bytes);
      ports[leaves].network_out += bytes;
      ports[to].network_in += bytes;
    }
  }
  return ports;
}

}  // namespace lockstep
