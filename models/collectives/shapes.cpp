#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/collectives/candidate.hpp"
#include "models/collectives/laws.hpp"

namespace lockstep {

namespace {

std::size_t place(int index) { return static_cast<std::size_t>(index); }
std::size_t count_of(double whole) { return static_cast<std::size_t>(whole); }

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

/// A call with what every shape reads of it.
struct ShapeInput {
  CollectiveOp op;
  std::span<const GroupMember> members;
  int channels;
  int peer_channels;
  std::vector<GroupNode> nodes;
  double n, g, k;  ///< members, members of the smallest node, nodes
};

ShapeInput read_call(const ShapeCall& call) {
  std::vector<GroupNode> nodes = group_nodes(call.members);
  const auto smallest = std::ranges::min_element(
      nodes, {}, [](const GroupNode& node) { return node.members.size(); });
  const auto n = static_cast<double>(call.members.size()),
             g = static_cast<double>(smallest->members.size()),
             k = static_cast<double>(nodes.size());
  return {call.op, call.members, call.channels, call.peer_channels, std::move(nodes), n, g, k};
}

/// What leaves each member over NVLink where the switch of the node reduces.
double reduced_in_switch(double g) { return g > 1 ? (g + 1) / g : 0; }

CollectiveShape inside(double nvlink) {
  CollectiveShape shape;
  shape.nvlink_coefficient = nvlink;
  return shape;
}

CollectiveShape along_rings(const ShapeInput& in) {
  const double bus = bus_factor(in.op, static_cast<int>(in.n));
  // Open at the root's node, which is the first: a broadcast does not come back to it, a reduction
  // does not leave it.
  const std::size_t first = in.op == CollectiveOp::reduce ? 1 : 0;
  const std::size_t end = in.nodes.size() - (in.op == CollectiveOp::broadcast ? 1 : 0);
  EdgeSum sum;
  if (in.nodes.size() > 1) {
    for (int c = 0; c < in.channels; ++c) {
      const std::size_t rail = place(c) % count_of(in.g);
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
CollectiveShape along_trees(const ShapeInput& in, double nvlink) {
  EdgeSum sum;
  for (const TreeChannel& channel : tree_channels(in.members, in.channels)) {
    for (std::size_t i = 0; i < in.nodes.size(); ++i) {
      if (channel.parent[i] < 0) continue;
      const int child = in.nodes[i].members[place(channel.rail)];
      const int parent = in.nodes[place(channel.parent[i])].members[place(channel.rail)];
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
CollectiveShape in_network(const ShapeInput& in, double nvlink) {
  EdgeSum sum;
  for (const GroupNode& node : in.nodes) {
    for (std::size_t rail = 0; rail < count_of(in.g); ++rail) {
      sum.add(node.members[rail], kSwitch, 1 / in.g);
      sum.add(kSwitch, node.members[rail], 1 / in.g);
    }
  }
  return {.nvlink_coefficient = nvlink,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

/// All-to-all: to every member of another node, or to the same rail of every other node.
CollectiveShape between_pairs(const ShapeInput& in, PairPattern pairs) {
  const double off_node = (in.n - in.g) / in.n;
  const bool gathered = pairs == PairPattern::rail_pairs;
  return {.nvlink_coefficient = (in.g - 1) / in.n + (gathered ? off_node * (in.g - 1) / in.g : 0),
          .edges = {},
          .pairs = in.nodes.size() > 1 ? pairs : PairPattern::none,
          .bytes_per_pair = (gathered ? in.g : 1) / in.n,
          .channels_per_pair = in.peer_channels};
}

/// Every member to the next, as nccl-tests' sendrecv does; two members to each other.
CollectiveShape to_neighbours(const ShapeInput& in) {
  EdgeSum sum;
  const int n = static_cast<int>(in.members.size());
  double inside = 0;
  for (int i = 0; i < n; ++i) {
    const int next = (i + 1) % n;
    if (in.members[place(i)].node == in.members[place(next)].node) {
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

CollectiveShape ring_shape(const ShapeCall& call) {
  const ShapeInput in = read_call(call);
  if (in.op == CollectiveOp::send_receive) return to_neighbours(in);
  if (in.op == CollectiveOp::all_to_all) return between_pairs(in, PairPattern::all_pairs);
  return along_rings(in);
}

CollectiveShape pairwise_shape(const ShapeCall& call) { return ring_shape(call); }

CollectiveShape two_level_shape(const ShapeCall& call) {
  return between_pairs(read_call(call), PairPattern::rail_pairs);
}

CollectiveShape tree_shape(const ShapeCall& call) {
  const ShapeInput in = read_call(call);
  return along_trees(in, 2 * (in.g - 1) / in.g);
}

CollectiveShape nvls_shape(const ShapeCall& call) {
  const ShapeInput in = read_call(call);
  return in.k > 1 ? in_network(in, reduced_in_switch(in.g)) : inside((in.n + 1) / in.n);
}

CollectiveShape nvls_tree_shape(const ShapeCall& call) {
  const ShapeInput in = read_call(call);
  return along_trees(in, reduced_in_switch(in.g));
}

CollectiveShape collnet_shape(const ShapeCall& call) {
  const ShapeInput in = read_call(call);
  return in_network(in, 2 * (in.g - 1) / in.g);
}

/// Reduce-scatter inside, an all-reduce ring per rail across, all-gather inside.
CollectiveShape hierarchical_shape(const ShapeCall& call) {
  const ShapeInput in = read_call(call);
  EdgeSum sum;
  for (std::size_t rail = 0; rail < count_of(in.g); ++rail) {
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
CollectiveShape pat_shape(const ShapeCall& call) {
  EdgeSum sum;
  const int n = static_cast<int>(call.members.size());
  for (int distance = 1; distance < n; distance *= 2) {
    const int parts = (n - 1) / distance - (n - 1) / (2 * distance);
    for (int i = 0; i < n; ++i) sum.add(i, (i + distance) % n, 1.0 * parts / n, call.channels);
  }
  return {.nvlink_coefficient = 0,
          .edges = sum.edges(),
          .pairs = PairPattern::none,
          .bytes_per_pair = 0};
}

}  // namespace lockstep
