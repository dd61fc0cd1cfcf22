#include "sim/fabric/collective_load.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/fabric/connections.hpp"

namespace lockstep {
namespace {

const FabricMember& member_at(std::span<const FabricMember> members, int number) {
  return members[static_cast<std::size_t>(number)];
}

/// Members of one leaf, and of one NVLink domain on one leaf.
struct LeafCounts {
  std::map<int, double> leaf, pod, domain;
  std::map<std::pair<int, int>, double> domain_on_leaf, domain_in_pod;
};

/// Messages whose connections hash alike, but for their ports.
struct PortPairs {
  std::vector<FabricPort> from, to;
};

/// Turns of members at their ports.
std::size_t turns_of(std::span<const FabricMember> members) {
  return 1 + static_cast<std::size_t>(std::ranges::max(members, {}, &FabricMember::turn).turn);
}

}  // namespace

std::vector<NetworkEdge> written_edges(const CollectiveShape& shape,
                                       std::span<const GroupMember> members) {
  std::vector<NetworkEdge> edges = pair_edges(shape, members);
  std::ranges::copy_if(shape.edges, std::back_inserter(edges), [](const NetworkEdge& edge) {
    return edge.from != kSwitch && edge.to != kSwitch;
  });
  return edges;
}

void route_edge(const Fabric& fabric, const NetworkEdge& edge,
                std::span<const FabricMember> members, std::uint64_t queue_pair,
                std::vector<RouteHop>& out) {
  const FabricMember &from = member_at(members, edge.from), &to = member_at(members, edge.to);
  route_connections(fabric, {from.node, from.nic}, {to.node, to.nic},
                    queue_pair_of_turns(queue_pair, from.turn, to.turn), edge.channels, out);
}

void CollectiveLoad::add(const CollectiveShape& shape, std::span<const FabricMember> members,
                         std::uint64_t queue_pair) {
  add_in_network(shape.edges, members);
  const bool even = shape.sends.empty() && shape.receives.empty();
  if (shape.pairs != PairPattern::none && even && !fabric_.is_drawn()) {
    add_pairs(shape, members, queue_pair);
    return;
  }
  const std::vector<NetworkEdge> edges = written_edges(shape, places_of(members));
  const FabricSpec& spec = fabric_.spec();
  if (!fabric_.is_drawn() && spec.routing != Routing::ecmp && !spec.pxn) {
    return add_sprayed_edges(edges, members);
  }
  for (const NetworkEdge& edge : edges) {
    hops_.clear();
    route_edge(fabric_, edge, members, queue_pair, hops_);
    for (const RouteHop& hop : hops_) put(hop.link, edge.bytes * hop.share);
  }
}

/// Of a whole tree whose switches spray: all ports are looked up once, and no route is written out.
void CollectiveLoad::add_sprayed_edges(std::span<const NetworkEdge> edges,
                                       std::span<const FabricMember> members) {
  std::vector<FabricPort> ports;
  ports.reserve(members.size());
  for (const FabricMember& member : members) {
    ports.push_back(fabric_.port(member.node, member.nic));
  }
  for (const NetworkEdge& edge : edges) {
    const FabricPort& from = ports[static_cast<std::size_t>(edge.from)];
    const FabricPort& to = ports[static_cast<std::size_t>(edge.to)];
    if (edge.bytes <= 0 || from.number == to.number) continue;
    fabric_.add_load(from, to, edge.bytes, by_link_, used_);
  }
}

/// Of a whole tree: all ports are looked up once, and every sender's messages are added together.
void CollectiveLoad::add_pairs(const CollectiveShape& shape, std::span<const FabricMember> members,
                               std::uint64_t queue_pair) {
  const bool rails = shape.pairs == PairPattern::rail_pairs;
  const bool changes_rail = fabric_.spec().pxn;
  const std::vector<GroupNode> nodes = group_nodes(places_of(members));
  if (fabric_.spec().routing != Routing::ecmp && !(changes_rail && !rails)) {
    if (!rails) return add_sprayed_pairs(shape.bytes_per_pair, members);
    const std::size_t all = nodes.front().members.size();
    const bool even =
        std::ranges::all_of(nodes, [all](const GroupNode& n) { return n.members.size() == all; });
    for (std::size_t rail = 0; even && rail < all; ++rail) {
      std::vector<FabricMember> of_rail;
      of_rail.reserve(nodes.size());
      for (const GroupNode& n : nodes) of_rail.push_back(member_at(members, n.members[rail]));
      add_sprayed_pairs(shape.bytes_per_pair, of_rail);
    }
    if (even) return;
  }
  const int connections = fabric_.spec().routing == Routing::ecmp ? shape.channels_per_pair : 1;
  std::vector<FabricPort> ports;
  std::vector<PortPairs> to_turn(turns_of(members));
  ports.reserve(members.size());
  for (const FabricMember& member : members) {
    ports.push_back(fabric_.port(member.node, member.nic));
  }
  pairs_.resize(by_link_.size());
  for (const GroupNode& node : nodes) {
    for (std::size_t rail = 0; rail < node.members.size(); ++rail) {
      const FabricMember& sender = member_at(members, node.members[rail]);
      for (PortPairs& pairs : to_turn) pairs.from.clear(), pairs.to.clear();
      const auto send = [&](int receiver) {
        const FabricMember& member = member_at(members, receiver);
        // With PXN a message leaves on the rail of its receiver.
        const FabricPort own = fabric_.port(sender.node, changes_rail ? member.nic : sender.nic);
        if (own.number == ports[static_cast<std::size_t>(receiver)].number) return;
        PortPairs& pairs = to_turn[static_cast<std::size_t>(member.turn)];
        pairs.from.push_back(own);
        pairs.to.push_back(ports[static_cast<std::size_t>(receiver)]);
      };
      for (const GroupNode& other : nodes) {
        if (other.node == node.node) continue;
        if (rails) {
          send(other.members[rail % other.members.size()]);
        } else {
          std::ranges::for_each(other.members, send);
        }
      }
      for (std::size_t turn = 0; turn < to_turn.size(); ++turn) {
        const std::uint64_t first =
            queue_pair_of_turns(queue_pair, sender.turn, static_cast<int>(turn));
        for (int c = 0; c < connections; ++c) {
          fabric_.add_loads(to_turn[turn].from, to_turn[turn].to,
                            queue_pair_of_connection(first, c), pairs_, pairs_use_);
        }
      }
    }
  }
  const double bytes = shape.bytes_per_pair / connections;
  for (const FabricLink link : pairs_use_) put(link, bytes * std::exchange(pairs_[link], 0.0));
  pairs_use_.clear();
}

/// From every member to every other outside its domain, over a whole tree whose switches spray:
/// only counts matter. Of the c members of a leaf each sends to all n that are not on the leaf, but
/// for those of its own domain that are not there either.
void CollectiveLoad::add_sprayed_pairs(double bytes, std::span<const FabricMember> members) {
  LeafCounts counts;
  for (const FabricMember& member : members) {
    const int leaf = fabric_.leaf_of(member.node, member.nic), pod = fabric_.pod_of(leaf);
    ++counts.leaf[leaf], ++counts.pod[pod], ++counts.domain[member.place.node];
    ++counts.domain_on_leaf[{member.place.node, leaf}];
    ++counts.domain_in_pod[{member.place.node, pod}];
  }
  const auto n = static_cast<double>(members.size());
  for (const FabricMember& member : members) {
    const double messages = bytes * (n - counts.domain[member.place.node]);
    put(fabric_.nic_up(member.node, member.nic), messages);
    put(fabric_.nic_down(member.node, member.nic), messages);
  }
  const auto leaving = [&](const std::map<int, double>& within,
                           const std::map<std::pair<int, int>, double>& of_domain) {
    std::map<int, double> out;
    for (const auto& [place, count] : within) out[place] = count * (n - count);
    for (const auto& [domain_at, count] : of_domain) {
      out[domain_at.second] -= count * (counts.domain[domain_at.first] - count);
    }
    return out;
  };
  for (const auto& [leaf, messages] : leaving(counts.leaf, counts.domain_on_leaf)) {
    if (messages <= 0) continue;
    put(fabric_.leaf_up(leaf, 0), bytes * messages);
    put(fabric_.leaf_down(leaf, 0), bytes * messages);
  }
  for (const auto& [pod, messages] : leaving(counts.pod, counts.domain_in_pod)) {
    if (messages <= 0) continue;
    put(fabric_.spine_up(pod, 0, 0), bytes * messages);
    put(fabric_.spine_down(pod, 0, 0), bytes * messages);
  }
}

/// Every member sends its share up and gets the sum back.
void CollectiveLoad::add_in_network(const std::vector<NetworkEdge>& edges,
                                    std::span<const FabricMember> members) {
  for (const NetworkEdge& edge : edges) {
    if (edge.from != kSwitch && edge.to != kSwitch) continue;
    const bool up = edge.to == kSwitch;
    const FabricMember& member = member_at(members, up ? edge.from : edge.to);
    hops_.clear();
    up ? fabric_.nic_ups(member.node, member.nic, hops_)
       : fabric_.nic_downs(member.node, member.nic, hops_);
    for (const RouteHop& hop : hops_) put(hop.link, edge.bytes * hop.share);
  }
  for (const SummedStream& stream : summed_streams(fabric_, edges, members)) {
    put(stream.link, stream.bytes);
  }
}

void CollectiveLoad::clear() {
  for (const FabricLink link : used_) by_link_[link] = 0;
  used_.clear();
}

const std::vector<FabricLink>& CollectiveLoad::used() {
  std::ranges::sort(used_);
  return used_;
}

CollectiveLoad::Slowest CollectiveLoad::slowest(double efficiency) {
  Slowest out;
  for (const FabricLink link : used()) {
    if (fabric_.joins_nic(link)) continue;
    const SecondsPerByte per_byte =
        per_byte_at(by_link_[link], payload_bandwidth(fabric_.capacity(link), efficiency));
    if (per_byte > out.per_byte) out = {link, per_byte};
  }
  return out;
}

std::map<FabricLink, double> CollectiveLoad::slow_nics(std::span<const FabricMember> members,
                                                       double bytes,
                                                       BytesPerSecond port_rate) const {
  constexpr double kAsFast = 1 - 1e-9;
  std::map<FabricLink, double> load;
  std::vector<RouteHop> hops;
  for (const FabricMember& member : members) {
    hops.clear();
    fabric_.nic_ups(member.node, member.nic, hops);
    fabric_.nic_downs(member.node, member.nic, hops);
    for (const RouteHop& hop : hops) {
      if (by_link_[hop.link] <= 0) continue;
      if (fabric_.capacity(hop.link) >= kAsFast * hop.share * port_rate) continue;
      load[hop.link] += hop.share * bytes;
    }
  }
  return load;
}

CollectiveLoad::Slowest CollectiveLoad::slowest_nic(std::span<const FabricMember> members,
                                                    double bytes, BytesPerSecond port_rate,
                                                    double efficiency) const {
  Slowest out;
  for (const auto& [link, sent] : slow_nics(members, bytes, port_rate)) {
    const SecondsPerByte per_byte =
        per_byte_at(sent, payload_bandwidth(fabric_.capacity(link), efficiency));
    if (per_byte > out.per_byte) out = {link, per_byte};
  }
  return out;
}

}  // namespace lockstep
