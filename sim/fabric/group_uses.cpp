#include "sim/fabric/group_uses.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include "models/collectives/algorithms.hpp"

namespace lockstep {
namespace {

/// A shape, and what decides it: it is the same for groups that lie alike.
struct KnownShape {
  CollectiveOp op{};
  std::string algorithm;
  int peer_channels = 1;
  ExchangeSkew skew{};
  int channels = 0;
  std::vector<std::vector<int>> nodes;  ///< members by node, as group_nodes() orders them
  CollectiveShape shape;
  double sent = 0;               ///< bytes over NICs for each byte of payload
  double senders = 0;            ///< members among whom the law of its cost divides these
  std::vector<PortBytes> ports;  ///< where it is skewed: GroupUses::ports()
};

/// Over the mean of what goes over NICs, and over NVLink.
std::vector<PortBytes> over_mean(std::vector<PortBytes> ports) {
  double network = 0, nvlink = 0;
  for (const PortBytes& port : ports) {
    network += port.network_out;
    nvlink += port.nvlink_out;
  }
  const auto n = static_cast<double>(ports.size());
  for (PortBytes& port : ports) {
    if (network > 0) port.network_out *= n / network, port.network_in *= n / network;
    if (nvlink > 0) port.nvlink_out *= n / nvlink, port.nvlink_in *= n / nvlink;
  }
  return ports;
}

/// To how many others a member on this node sends, of those that a pattern of pairs joins.
std::size_t peers_of(const KnownShape& of, const std::vector<int>& node) {
  if (of.shape.pairs == PairPattern::rail_pairs) return of.nodes.size() - 1;
  if (of.shape.pairs == PairPattern::none) return 0;
  std::size_t all = 0;
  for (const std::vector<int>& other : of.nodes) all += other.size();
  return all - node.size();
}

double bytes_sent(const KnownShape& of, std::span<const GroupMember> places) {
  double sent = 0;
  if (!of.skew.is_even()) {
    for (const NetworkEdge& edge : pair_edges(of.shape, places)) sent += edge.bytes;
    return sent;
  }
  for (const NetworkEdge& edge : of.shape.edges) sent += edge.from == kSwitch ? 0 : edge.bytes;
  for (const std::vector<int>& node : of.nodes) {
    sent += static_cast<double>(node.size() * peers_of(of, node)) * of.shape.bytes_per_pair;
  }
  return sent;
}

/// With the channels that NCCL has: on every rail its part of both trees or, where they are fewer
/// than the rails, on some of them. Groups of a job lie alike, in all stages and most points of a
/// sweep: the last few shapes are kept.
const KnownShape& shape_of_group(const GroupCollective& collective,
                                 const std::vector<GroupMember>& places) {
  constexpr std::size_t kKept = 4;
  thread_local std::array<KnownShape, kKept> kept;
  thread_local std::size_t next = 0;
  std::vector<std::vector<int>> nodes;
  for (GroupNode& node : group_nodes(places)) nodes.push_back(std::move(node.members));
  for (const KnownShape& known : kept) {
    if (known.op == collective.op && known.algorithm == collective.algorithm &&
        known.peer_channels == collective.peer_channels && known.skew == collective.skew &&
        known.channels == collective.channels && known.nodes == nodes) {
      return known;
    }
  }
  KnownShape& made = kept[next];
  next = (next + 1) % kKept;
  made = {.op = collective.op,
          .algorithm = std::string(collective.algorithm),
          .peer_channels = collective.peer_channels,
          .skew = collective.skew,
          .channels = collective.channels,
          .nodes = std::move(nodes),
          .shape = {},
          .ports = {}};
  if (!made.skew.is_even()) {
    const bool gathered = made.algorithm == "two_level";
    made.ports = over_mean(all_to_all_ports(made.skew, gathered, places));
  }
  if (made.nodes.size() < 2) return made;
  const auto size = [](const std::vector<int>& node) { return node.size(); };
  const std::size_t rails = size(std::ranges::min(made.nodes, {}, size));
  // Of groups that lie unevenly one with fewer rails has fewer channels.
  const int most = kChannelsPerRail * static_cast<int>(rails);
  const int channels = collective.channels > 0 ? std::min(collective.channels, most) : most;
  made.shape = skewed(collective_shape(collective.op, collective.algorithm, places, channels,
                                       collective.peer_channels),
                      made.skew, places);
  made.sent = bytes_sent(made, places);
  // Rings, trees and sums in switches leave every node on as many rails as the smallest has.
  const bool on_rails =
      made.shape.pairs == PairPattern::none && made.op != CollectiveOp::send_receive;
  // Of an open ring one node does not send; `sent` is over those that do.
  const bool open = made.op == CollectiveOp::broadcast || made.op == CollectiveOp::reduce;
  const std::size_t sending = made.nodes.size() - (open ? 1 : 0);
  made.senders = static_cast<double>(on_rails ? rails * sending : places.size());
  return made;
}

}  // namespace

void GroupUses::add(const GroupCollective& collective, std::span<const FabricMember> members,
                    std::vector<RouteHop>& uses) {
  const KnownShape& known = shape_of_group(collective, places_of(members));
  if (known.sent <= 0) return;
  if (!load_) load_.emplace(fabric_);
  load_->add(known.shape, members, kFirstHashSeed);
  for (const FabricLink link : load_->used()) {
    if (fabric_.joins_nic(link)) continue;
    uses.push_back({link, load_->by_link()[link] * known.senders / known.sent});
  }
  load_->clear();
  const auto weigh = [&uses](std::size_t first, double bytes) {
    for (std::size_t i = first; i < uses.size(); ++i) uses[i].share *= bytes;
  };
  for (std::size_t m = 0; m < members.size(); ++m) {
    const FabricMember& member = members[m];
    const std::size_t up = uses.size();
    fabric_.nic_ups(member.node, member.nic, uses);
    if (!known.ports.empty()) weigh(up, known.ports[m].network_out);
    const std::size_t down = uses.size();
    fabric_.nic_downs(member.node, member.nic, uses);
    if (!known.ports.empty()) weigh(down, known.ports[m].network_in);
  }
}

double GroupUses::messages(const GroupCollective& collective,
                           std::span<const FabricMember> members) const {
  const KnownShape& known = shape_of_group(collective, places_of(members));
  const bool hashed = fabric_.spec().routing == Routing::ecmp;
  double all = 0;
  for (const NetworkEdge& edge : known.shape.edges) {
    if (edge.from != kSwitch) all += hashed ? edge.channels : 1;
  }
  for (const std::vector<int>& node : known.nodes) {
    const std::size_t peers = peers_of(known, node);
    all += static_cast<double>(node.size() * peers) * (hashed ? known.shape.channels_per_pair : 1);
  }
  return all / static_cast<double>(members.size());
}

std::span<const PortBytes> GroupUses::ports(const GroupCollective& collective,
                                            std::span<const FabricMember> members) {
  return shape_of_group(collective, places_of(members)).ports;
}

void GroupUses::add_by_sender(const GroupCollective& collective,
                              std::span<const FabricMember> members, double bytes,
                              std::span<const std::size_t> owner,
                              std::span<std::vector<RouteHop>> uses) {
  assert(owner.size() == members.size());
  const std::vector<GroupMember> places = places_of(members);
  const KnownShape& known = shape_of_group(collective, places);
  if (known.sent <= 0) return;
  const double per_byte = bytes * known.senders / known.sent;
  for (const NetworkEdge& edge : written_edges(known.shape, places)) {
    if (edge.bytes <= 0) continue;
    hops_.clear();
    route_edge(fabric_, edge, members, kFirstHashSeed, hops_);
    std::vector<RouteHop>& own = uses[owner[static_cast<std::size_t>(edge.from)]];
    for (const RouteHop& hop : hops_) {
      if (fabric_.joins_nic(hop.link)) continue;
      own.push_back({hop.link, hop.share * edge.bytes * per_byte});
    }
  }
  for (const SummedStream& stream : summed_streams(fabric_, known.shape.edges, members)) {
    const double each = stream.bytes * per_byte / static_cast<double>(stream.members.size());
    for (const int member : stream.members) {
      uses[owner[static_cast<std::size_t>(member)]].push_back({stream.link, each});
    }
  }
}

}  // namespace lockstep
