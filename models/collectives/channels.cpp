#include "models/collectives/channels.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <map>
#include <utility>

#include "models/collectives/candidate.hpp"
#include "models/collectives/collective_extension.hpp"

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

/// Edges summed by pair of members, in a fixed order.
class EdgeSum {
 public:
  void add(int from, int to, double bytes, int channels = 1) {
    NetworkEdge& edge = edges_.try_emplace({from, to}, NetworkEdge{from, to, 0, 0}).first->second;
    edge.bytes += bytes;
    edge.channels += channels;
  }
  [[nodiscard]] std::vector<NetworkEdge> edges() const {
    std::vector<NetworkEdge> out;
    out.reserve(edges_.size());
    for (const auto& [pair, edge] : edges_) out.push_back(edge);
    return out;
  }

 private:
  std::map<std::pair<int, int>, NetworkEdge> edges_;
};

struct ShapeInput {
  CollectiveOp op;
  std::span<const GroupMember> members;
  int channels;
  int peer_channels;
  std::vector<GroupNode> nodes;
  double n, g, k;  ///< members, members of the smallest node, nodes
};

CollectiveShape inside(double nvlink) {
  CollectiveShape shape;
  shape.nvlink_coefficient = nvlink;
  return shape;
}

CollectiveShape ring_shape(const ShapeInput& in) {
  const double bus = bus_factor(in.op, static_cast<int>(in.n));
  // Open at the root's node, which is the first: a broadcast does not come back to it, a reduction
  // does not leave it.
  const std::size_t first = in.op == CollectiveOp::reduce ? 1 : 0;
  const std::size_t end = in.nodes.size() - (in.op == CollectiveOp::broadcast ? 1 : 0);
  EdgeSum sum;
  if (in.nodes.size() > 1) {
    for (int c = 0; c < in.channels; ++c) {
      const std::size_t rail = at(c) % at(static_cast<int>(in.g));
      for (std::size_t i = first; i < end; ++i) {
        sum.add(in.nodes[i].members[rail], in.nodes[(i + 1) % in.nodes.size()].members[rail],
                bus / in.channels);
      }
    }
  }
  return {.nvlink_coefficient = bus * (in.n - (in.k > 1 ? in.k : 0)) / in.n,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

/// Each tree carries its share of the payload up and down every edge.
CollectiveShape tree_shape(const ShapeInput& in, double nvlink) {
  EdgeSum sum;
  for (const TreeChannel& channel : tree_channels(in.members, in.channels)) {
    for (std::size_t i = 0; i < in.nodes.size(); ++i) {
      if (channel.parent[i] < 0) continue;
      const int child = in.nodes[i].members[at(channel.rail)];
      const int parent = in.nodes[at(channel.parent[i])].members[at(channel.rail)];
      sum.add(child, parent, 1.0 / in.channels);
      sum.add(parent, child, 1.0 / in.channels);
    }
  }
  return {.nvlink_coefficient = nvlink,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

/// Every rail of a node sends its share up; the switches return the sum.
CollectiveShape in_network_shape(const ShapeInput& in, double nvlink) {
  EdgeSum sum;
  for (const GroupNode& node : in.nodes) {
    for (std::size_t rail = 0; rail < at(static_cast<int>(in.g)); ++rail) {
      sum.add(node.members[rail], kSwitch, 1 / in.g);
      sum.add(kSwitch, node.members[rail], 1 / in.g);
    }
  }
  return {.nvlink_coefficient = nvlink,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

/// Reduce-scatter inside, an all-reduce ring per rail across, all-gather inside.
CollectiveShape hierarchical_shape(const ShapeInput& in) {
  EdgeSum sum;
  for (std::size_t rail = 0; rail < at(static_cast<int>(in.g)); ++rail) {
    for (std::size_t i = 0; i < in.nodes.size(); ++i) {
      sum.add(in.nodes[i].members[rail], in.nodes[(i + 1) % in.nodes.size()].members[rail],
              bus_factor(in.op, static_cast<int>(in.k)) / in.g,
              std::max(1, in.channels / static_cast<int>(in.g)));
    }
  }
  return {.nvlink_coefficient = bus_factor(in.op, static_cast<int>(in.g)),
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

/// Far members first, while there is little to pass on: what comes from a member `o` before goes
/// the largest power of two in `o` first, so that the last hop, over its lowest set bit, brings
/// it. Of the n - 1 parts distance d brings those whose `o` is an odd multiple of d. Source:
/// Jeaugey 2025, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale"
/// (arXiv:2506.20252): the dimensions of Bruck's algorithm, reversed.
CollectiveShape pat_shape(const ShapeInput& in) {
  EdgeSum sum;
  const int n = static_cast<int>(in.members.size());
  for (int distance = 1; distance < n; distance *= 2) {
    const int parts = (n - 1) / distance - (n - 1) / (2 * distance);
    for (int i = 0; i < n; ++i) sum.add(i, (i + distance) % n, 1.0 * parts / n, in.channels);
  }
  return {.nvlink_coefficient = 0,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

/// All-to-all: to every member of another node, or to the same rail of every other node.
CollectiveShape pair_shape(const ShapeInput& in, PairPattern pairs) {
  const double off_node = (in.n - in.g) / in.n;
  const bool gathered = pairs == PairPattern::rail_pairs;
  return {.nvlink_coefficient = (in.g - 1) / in.n + (gathered ? off_node * (in.g - 1) / in.g : 0),
          .edges = {},
          .pairs = in.nodes.size() > 1 ? pairs : PairPattern::none,
          .bytes_per_pair = (gathered ? in.g : 1) / in.n,
          .channels_per_pair = in.peer_channels};
}

/// Every member to the next, as nccl-tests' sendrecv does; two members to each other.
CollectiveShape neighbour_shape(const ShapeInput& in) {
  EdgeSum sum;
  const int n = static_cast<int>(in.members.size());
  double inside = 0;
  for (int i = 0; i < n; ++i) {
    const int next = (i + 1) % n;
    if (in.members[at(i)].node == in.members[at(next)].node) {
      ++inside;
    } else {
      sum.add(i, next, 1, in.peer_channels);
    }
  }
  return {.nvlink_coefficient = inside / n,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
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
  std::vector<GroupNode> nodes = group_nodes(members);
  const double n = static_cast<double>(members.size()), g = common_rails(nodes),
               k = static_cast<double>(nodes.size());
  const ShapeInput in{op, members, channels, peer_channels, std::move(nodes), n, g, k};
  if (algorithm == "tree") return tree_shape(in, 2 * (g - 1) / g);
  if (algorithm == "nvls_tree") return tree_shape(in, g > 1 ? (g + 1) / g : 0);
  if (algorithm == "nvls" && k > 1) return in_network_shape(in, g > 1 ? (g + 1) / g : 0);
  if (algorithm == "nvls") return inside((n + 1) / n);
  if (algorithm == "collnet_direct" || algorithm == "collnet_chain") {
    return in_network_shape(in, 2 * (g - 1) / g);
  }
  if (algorithm == "hierarchical") return hierarchical_shape(in);
  if (algorithm == "pat") return pat_shape(in);
  if (const CollectiveAlgorithm* added = added_collective(algorithm); added != nullptr) {
    return added_shape(*added, {op, members, channels, peer_channels});
  }
  if (op == CollectiveOp::send_receive) return neighbour_shape(in);
  if (op == CollectiveOp::all_to_all) {
    return pair_shape(in,
                      algorithm == "two_level" ? PairPattern::rail_pairs : PairPattern::all_pairs);
  }
  return ring_shape(in);
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
