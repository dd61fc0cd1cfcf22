#include "sim/traffic/traffic_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <utility>

#include "models/collectives/channels.hpp"
#include "sim/core/random.hpp"
#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/dcqcn_collective.hpp"
#include "sim/scenario/draws.hpp"
#include "sim/traffic/traffic_collective.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// A connection of its own for each seed and channel.
std::uint64_t queue_pair_of(const TrafficEntry& entry, int channel) {
  constexpr std::uint64_t kChannels = 1U << 16U;
  return entry.seed * kChannels + static_cast<std::uint64_t>(channel);
}

/// One random cycle through all places: everybody's partner is somebody else. Source: Sattolo 1986,
/// Inf. Process. Lett. 22(6), 315-317.
std::vector<int> random_cycle(std::size_t places, RandomStream& random) {
  std::vector<int> partner(places);
  std::iota(partner.begin(), partner.end(), 0);
  for (std::size_t i = places - 1; i > 0; --i) {
    std::swap(partner[i], partner[random.below(static_cast<std::uint32_t>(i))]);
  }
  return partner;
}

/// Of a collective around rings: bytes over each edge, per byte of its buffer.
double ring_factor(TrafficKind kind, double members) {
  if (info(kind).is_chain) return 1;
  return (kind == TrafficKind::all_reduce ? 2 : 1) * (members - 1) / members;
}

/// The members of the entry's ring as pairs of neighbours: of a broadcast those of the chain that
/// starts at the root, of a reduce those of the chain that ends there.
std::vector<std::pair<int, int>> neighbours(std::vector<int> order, const TrafficEntry& entry) {
  const bool chain = info(entry.kind).is_chain;
  if (chain) {
    const auto root = std::ranges::find(order, entry.root);
    std::ranges::rotate(order, entry.kind == TrafficKind::reduce ? root + 1 : root);
  }
  std::vector<std::pair<int, int>> out;
  out.reserve(order.size());
  for (std::size_t i = 1; i < order.size(); ++i) out.emplace_back(order[i - 1], order[i]);
  if (!chain) out.emplace_back(order.back(), order.front());
  return out;
}

/// Members by NVLink domain, in each one GPU of every NIC before the next ones that share it: rings
/// side by side then leave on NICs of their own, as long as there are any.
std::vector<GroupMember> ring_places(const std::vector<TrafficEnd>& members, const NodeSpec& node) {
  const int domain_nodes = std::max(1, node.nvlink_domain / node.gpus);
  const int nics = nic_ports(node).count;
  std::map<std::pair<int, int>, int> turns;  // by NIC
  std::vector<GroupMember> places;
  places.reserve(members.size());
  for (const TrafficEnd& end : members) {
    if (end.gpu < 0) {
      places.push_back({.node = end.node, .gpu = end.nic});
      continue;
    }
    const int turn = turns[{end.node, end.nic}]++;
    places.push_back({.node = end.node / domain_nodes,
                      .gpu = (turn * domain_nodes + end.node % domain_nodes) * nics + end.nic});
  }
  return places;
}

}  // namespace

TrafficPlan::TrafficPlan(const TrafficScenario& scenario, TrafficNetwork& network)
    : scenario_(scenario), network_(network) {
  for (std::uint32_t e = 0; e < scenario.entries.size(); ++e) {
    const TrafficEntry& entry = scenario.entries[e];
    network_.count_senders(e);
    const std::vector<TrafficEnd> members = members_of(entry.members, scenario.cluster.node);
    for (int g = 0; g < entry.groups.count; ++g) {
      add_group(e, group_of(members, entry.groups, g), static_cast<std::uint32_t>(g));
    }
  }
}

void TrafficPlan::add_group(std::uint32_t entry_number, std::vector<TrafficEnd> members,
                            std::uint32_t number) {
  const TrafficEntry& entry = scenario_.entries[entry_number];
  if (entry.servers) {
    const auto servers = members_of(*entry.servers, scenario_.cluster.node);
    members.insert(members.end(), servers.begin(), servers.end());
  }
  const auto group = static_cast<std::uint32_t>(groups_.size());
  groups_.push_back({.entry = entry_number,
                     .number = number,
                     .first = static_cast<std::uint32_t>(demands_.size()),
                     .members = std::move(members)});
  if (entry.grain == Grain::nccl) {
    add_nccl(entry, group);
  } else if (info(entry.kind).is_ring) {
    add_rings(entry, group);
  } else if (entry.grain == Grain::flows) {
    add_pairs(entry, group);
  } else if (entry.grain == Grain::sources) {
    add_sources(entry, group);
  } else {
    add_coupled(entry, group);
  }
  groups_[group].count = static_cast<std::uint32_t>(demands_.size()) - groups_[group].first;
}

const std::vector<int>& TrafficPlan::partners(std::uint32_t group, int round) {
  if (partners_.size() <= group) partners_.resize(group + 1);
  std::vector<std::vector<int>>& rounds = partners_[group];
  if (rounds.size() <= at(round)) rounds.resize(at(round) + 1);
  std::vector<int>& drawn = rounds[at(round)];
  if (drawn.empty()) {
    const TrafficGroup& g = groups_[group];
    RandomStream random(draw_name(Draw::partners, scenario_.entries[g.entry].seed,
                                  static_cast<std::uint32_t>(round), g.number));
    drawn = random_cycle(g.members.size(), random);
  }
  return drawn;
}

/// Calls use(from, to) for the first messages of a pattern of pairs, sender by sender.
template <class Use>
void TrafficPlan::for_each_pair(const TrafficEntry& entry, std::uint32_t group, Use use) {
  const int all = static_cast<int>(groups_[group].members.size());
  const int members = entry.members.count / entry.groups.count;
  const auto others = [&](int one, auto&& call) {
    for (int i = 0; i < members; ++i) {
      if (i != one) call(i);
    }
  };
  switch (entry.kind) {
    case TrafficKind::permutation: {
      const std::vector<int>& to = partners(group, 0);
      for (int i = 0; i < members; ++i) use(i, to[at(i)]);
      break;
    }
    case TrafficKind::shift:
    case TrafficKind::send_receive:
      for (int i = 0; i < members; ++i) use(i, (i + entry.by) % members);
      break;
    case TrafficKind::incast:
      others(entry.root, [&](int i) { use(i, entry.root); });
      break;
    case TrafficKind::outcast:
      others(entry.root, [&](int i) { use(entry.root, i); });
      break;
    case TrafficKind::pairs:
      for (const auto& [from, to] : entry.pairs) use(from, to);
      break;
    case TrafficKind::storage:
      for (int i = 0; i < members; ++i) {
        // In turn, and every group starts at another server.
        const int server =
            members + (i + static_cast<int>(groups_[group].number)) % (all - members);
        entry.reads ? use(server, i) : use(i, server);
      }
      break;
    case TrafficKind::all_to_all:
      for (int i = 0; i < members; ++i) {
        others(i, [&](int j) { use(i, j); });
      }
      break;
    default:
      assert(false && "a ring has no pairs");
  }
}

void TrafficPlan::add_way(const TrafficEntry& entry, std::uint32_t group, int from, int to,
                          std::uint64_t queue_pair) {
  const std::vector<TrafficEnd>& members = groups_[group].members;
  network_.add_way(members[at(from)], members[at(to)], queue_pair, info(entry.kind).is_ring);
  if (delays()) note_latency(entry, group, from, to);
}

/// One variable for what NCCL does: the links of the algorithm's shape, at the law's latency and no
/// faster than its pace.
void TrafficPlan::add_nccl(const TrafficEntry& entry, std::uint32_t group) {
  const std::vector<TrafficEnd>& ends = groups_[group].members;
  const TrafficCollective call = traffic_collective(scenario_, entry, ends);
  // Progress is that of one of the messages that the report counts.
  const double bytes = call.sent / call.pairs;
  const double scale = entry.size.least.base_units() / bytes;
  network_.add_pace(call.cost.payload_rate / scale);
  for (const TrafficEnd& end : ends) {
    if (call.cost.nvlink_coefficient <= 0) break;
    for (const bool in : {false, true}) {
      network_.add_port(end, in, scale * call.cost.nvlink_coefficient);
    }
  }
  CollectiveLoad load(network_.fabric());
  load.add(call.shape, call.members, queue_pair_of(entry, 0));
  // What a slow NIC carries is the average of the law, as in steps and in `comm` as a collective.
  const auto slow = load.slow_nics(call.members, call.cost.network_coefficient,
                                   nic_ports(scenario_.cluster.node).bandwidth);
  for (const FabricLink link : load.used()) {
    const auto nic = slow.find(link);
    const double bytes_over = nic == slow.end() ? load.by_link()[link] : nic->second;
    network_.add_link(link, scale * bytes_over);
  }
  latency_ = to_step_time(call.cost.latency);
  Demand& demand = add_demand(group, -1, -1, bytes);
  demand.pairs = call.pairs;
  if (scenario_.cluster.transport.congestion_control == CongestionControl::none) return;
  const GroupCollective collective{.op = info(entry.kind).op.value(),
                                   .algorithm = call.cost.algorithm,
                                   .peer_channels = call.peer_channels,
                                   .channels = call.cost.channels};
  demand.messages = messages_per_byte(collective, call.members, load, network_.fabric()) / scale;
}

/// Of the flow under construction: the longest of its ways counts.
void TrafficPlan::note_latency(const TrafficEntry& entry, std::uint32_t group, int from, int to) {
  const std::vector<TrafficEnd>& members = groups_[group].members;
  const Seconds latency =
      network_.latency(members[at(from)], members[at(to)], info(entry.kind).is_ring);
  latency_ = std::max(latency_, to_step_time(latency));
}

/// Ends the flow under construction.
Demand& TrafficPlan::add_demand(std::uint32_t group, int from, int to, double bytes) {
  const FlowIndex flow = network_.add_flow();
  demands_.push_back({.group = group,
                      .from = from,
                      .to = to,
                      .flow = flow,
                      .bytes = bytes,
                      .into_fabric = network_.fabric_weight(),
                      .latency = latency_});
  latency_ = {};
  return demands_.back();
}

void TrafficPlan::draw_size(const TrafficEntry& entry, std::uint32_t index, int round) {
  if (!entry.size.varies()) return;
  RandomStream random(draw_name(Draw::sizes, entry.seed, static_cast<std::uint32_t>(round),
                                index - groups_[demands_[index].group].first));
  const double span = (entry.size.most - entry.size.least).base_units();
  demands_[index].bytes = std::floor(entry.size.least.base_units() + span * random.uniform());
}

void TrafficPlan::add_pairs(const TrafficEntry& entry, std::uint32_t group) {
  const std::uint64_t queue_pair = queue_pair_of(entry, 0);
  double bytes = entry.size.least.base_units();
  if (entry.kind == TrafficKind::all_to_all) {
    bytes /= static_cast<double>(groups_[group].members.size());
  }
  for_each_pair(entry, group, [&](int from, int to) {
    add_way(entry, group, from, to, queue_pair);
    add_demand(group, from, to, bytes);
    draw_size(entry, static_cast<std::uint32_t>(demands_.size() - 1), 0);
  });
}

void TrafficPlan::add_coupled(const TrafficEntry& entry, std::uint32_t group) {
  const std::uint64_t queue_pair = queue_pair_of(entry, 0);
  double pairs = 0;
  double bytes = entry.size.least.base_units();
  if (entry.kind == TrafficKind::all_to_all) {
    const auto members = static_cast<double>(groups_[group].members.size());
    network_.add_all_ways(groups_[group].members, queue_pair);
    pairs = members * (members - 1);
    bytes /= members;
    if (delays()) {
      for_each_pair(entry, group, [&](int from, int to) { note_latency(entry, group, from, to); });
    }
  } else {
    for_each_pair(entry, group, [&](int from, int to) {
      add_way(entry, group, from, to, queue_pair);
      ++pairs;
    });
  }
  add_demand(group, -1, -1, bytes).pairs = pairs;
}

void TrafficPlan::add_sources(const TrafficEntry& entry, std::uint32_t group) {
  const std::uint64_t queue_pair = queue_pair_of(entry, 0);
  Pairs pairs;
  for_each_pair(entry, group, [&](int from, int to) { pairs.emplace_back(from, to); });
  std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return pair.first; });
  double bytes = entry.size.least.base_units();
  if (entry.kind == TrafficKind::all_to_all) {
    bytes /= static_cast<double>(groups_[group].members.size());
  }
  for (std::size_t i = 0; i < pairs.size();) {
    const int from = pairs[i].first;
    const std::size_t begin = i;
    for (; i < pairs.size() && pairs[i].first == from; ++i) {
      add_way(entry, group, from, pairs[i].second, queue_pair);
    }
    const int to = i - begin == 1 ? pairs[begin].second : -1;
    add_demand(group, from, to, bytes).pairs = static_cast<double>(i - begin);
  }
}

void TrafficPlan::add_rings(const TrafficEntry& entry, std::uint32_t group) {
  const std::vector<TrafficEnd>& members = groups_[group].members;
  const std::vector<GroupMember> places = ring_places(members, scenario_.cluster.node);
  const auto n = static_cast<double>(members.size());
  const double bytes = ring_factor(entry.kind, n) * entry.size.least.base_units() / entry.channels;
  double pairs = 0;
  int channel = 0;
  for (RingChannel& ring : ring_channels(places, entry.channels)) {
    const std::uint64_t queue_pair = queue_pair_of(entry, channel++);
    const Pairs edges = neighbours(std::move(ring.order), entry);
    pairs += static_cast<double>(edges.size());
    if (entry.grain == Grain::messages) {
      add_ring_messages(entry, group, edges, queue_pair);
      continue;
    }
    for (const auto& [from, to] : edges) {
      add_way(entry, group, from, to, queue_pair);
      if (entry.grain == Grain::flows) add_demand(group, from, to, bytes);
    }
  }
  if (entry.grain != Grain::coupled) return;
  // Every step of the ring waits for the slowest hop of the step before.
  const auto steps = static_cast<std::uint64_t>(std::llround(ring_factor(entry.kind, n) * n));
  latency_.ps *= info(entry.kind).is_chain ? static_cast<std::uint64_t>(n) - 1 : steps;
  add_demand(group, -1, -1, bytes).pairs = pairs;
}

void TrafficPlan::add_ring_messages(const TrafficEntry& entry, std::uint32_t group,
                                    const Pairs& ring, std::uint64_t queue_pair) {
  const auto n = static_cast<double>(ring.size());
  const double steps = ring_factor(entry.kind, n) * n;
  groups_[group].steps = static_cast<int>(std::lround(steps));
  const auto first = static_cast<std::uint32_t>(demands_.size());
  const auto count = static_cast<std::uint32_t>(ring.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    add_way(entry, group, ring[i].first, ring[i].second, queue_pair);
    add_demand(group, ring[i].first, ring[i].second,
               entry.size.least.base_units() / n / entry.channels)
        .next = first + (i + 1) % count;
  }
}

void TrafficPlan::prepare(std::uint32_t index, int round) {
  if (round == 0) return;
  Demand& demand = demands_[index];
  const TrafficEntry& entry = entry_of(demand);
  if (draws_rounds(entry)) {
    demand.to = partners(demand.group, round)[at(demand.from)];
    add_way(entry, demand.group, demand.from, demand.to, queue_pair_of(entry, 0));
    network_.count_senders(groups_[demand.group].entry);
    demand.flow = network_.add_flow();
    demand.latency = std::exchange(latency_, StepTime{});
    demand.into_fabric = network_.fabric_weight();
  }
  draw_size(entry, index, round);
}

std::string TrafficPlan::name_of(const Demand& demand) const {
  const TrafficGroup& group = groups_[demand.group];
  const TrafficEntry& entry = scenario_.entries[group.entry];
  const auto member = [&](int place) { return lockstep::name_of(group.members[at(place)]); };
  if (demand.from >= 0 && demand.to >= 0) return member(demand.from) + " to " + member(demand.to);
  if (demand.from >= 0) return "from " + member(demand.from);
  if (entry.groups.count == 1) return std::string(info(entry.kind).name);
  return fmt::format("{}, group {}", info(entry.kind).name, group.number);
}

std::string TrafficPlan::steady_name_of(const Demand& demand) const {
  Demand sender = demand;
  if (draws_rounds(entry_of(demand))) sender.to = -1;
  return name_of(sender);
}

}  // namespace lockstep
