#include "sim/trace/trace_wiring.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/collectives/algorithms.hpp"
#include "sim/fabric/connections.hpp"
#include "sim/trace/group_call.hpp"
#include "topologies/fabrics/switch_limits.hpp"

namespace lockstep {
namespace {

constexpr LinkIndex kNoPort = FabricLinks::kNoLink;

}  // namespace

TraceWiring::TraceWiring(const Trace& trace, const Cluster& cluster,
                         const std::optional<CollectiveOptions>& options, const Site& site)
    : trace_(trace),
      cluster_(cluster),
      options_(options),
      placement_(placement_in_order(trace.ranks, cluster.node)),
      nodes_(site.nodes),
      links_(*site.links),
      fabric_(links_.fabric()),
      network_(links_.network()),
      limits_(!switch_limits(fabric_).empty()),
      nic_(nic_share(cluster.node)),
      message_connections_(connections_of_pair({.op = CollectiveOp::send_receive,
                                                .payload = Bytes{1},
                                                .ranks = 2,
                                                .ranks_per_node = 1})),
      ports_(2 * static_cast<std::size_t>(trace.ranks), kNoPort),
      groups_(fabric_) {
  assert(trace.ranks <= cluster.gpus());
  for (const TraceCollective& collective : trace.collectives) {
    collectives_.push_back(wire(collective));
  }
}

LinkIndex TraceWiring::port(int rank, int direction) {
  LinkIndex& index =
      ports_[2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(direction)];
  if (index == kNoPort) {
    const GpuSpec& gpu = cluster_.node.gpu;
    index = network_.add_link(gpu.nvlink_bandwidth > BytesPerSecond{} ? gpu.nvlink_bandwidth
                                                                      : gpu.pcie_bandwidth);
  }
  return index;
}

int TraceWiring::connections_of_pair(const CollectiveCall& call) const {
  const CollectiveOptions options;
  return peer_channels(unpack(call, cluster_.node.gpu, cluster_.transport, nic_, options));
}

/// Over so many connections, hashed as those of a simulated step are.
void TraceWiring::add_route(int from, int to, int connections, double bytes, Uses& uses) {
  const FabricMember a = member(from), b = member(to);
  hops_.clear();
  route_connections(fabric_, {a.node, a.nic}, {b.node, b.nic},
                    queue_pair_of_turns(kFirstHashSeed, a.turn, b.turn), connections, hops_);
  for (const RouteHop& hop : hops_) uses.add(links_[hop.link], bytes * hop.share);
}

CollectiveCost TraceWiring::cost_of(const CollectiveCall& call) {
  const std::tuple key{
      call.op,       call.payload.base_units(), call.ranks,        call.ranks_per_node,
      call.nodes,    call.ranks_per_node_max,   call.skew.fullest, call.skew.whole_domain,
      call.skew.back};
  if (const auto known = costs_.find(key); known != costs_.end()) return known->second;
  const GpuSpec& gpu = cluster_.node.gpu;
  if (!options_ || call.op == CollectiveOp::send_receive) {
    return costs_.emplace(key, collective_cost(call, gpu, cluster_.transport, nic_)).first->second;
  }
  const CollectiveChoice choice = choose_collective(call, gpu, cluster_.transport, nic_, *options_);
  if (!choice.cost) {
    throw InputError(
        {.file = "--algorithm and --protocol",
         .pointer = {},
         .found = fmt::format("none that can run {} among {} ranks, {} in a node",
                              collective_kinds()[static_cast<std::size_t>(call.op)].name,
                              call.ranks, call.ranks_per_node),
         .allowed = "one that can; " + choice.reason,
         .nearest = {}});
  }
  return costs_.emplace(key, *choice.cost).first->second;
}

/// Rings between the NVLink domains: every member sends to its like in the next one, but for those
/// beyond as many as the smallest domain has, of which rings run through none.
void TraceWiring::add_rings(const std::vector<std::vector<int>>& domains, double bytes_each,
                            Uses& uses) {
  const std::size_t rings = std::ranges::min_element(domains, {}, &std::vector<int>::size)->size();
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const std::vector<int>& next = domains[(d + 1) % domains.size()];
    for (std::size_t m = 0; m < rings; ++m)
      add_route(domains[d][m], next[m], kChannelsPerRail, bytes_each, uses);
  }
}

std::vector<FabricMember> TraceWiring::members_of(const TraceCollective& collective) const {
  std::vector<FabricMember> members;
  for (const int rank : trace_.groups[collective.group]) members.push_back(member(rank));
  return members;
}

/// The links of any other algorithm, for each byte that a member sends.
const std::vector<RouteHop>& TraceWiring::shape_uses(const TraceCollective& collective,
                                                     const GroupCollective& shape) {
  const auto [at, is_new] =
      shapes_.try_emplace({collective.group, collective.op, std::string(shape.algorithm),
                           shape.skew.fullest, shape.skew.whole_domain, shape.skew.back});
  if (is_new) groups_.add(shape, members_of(collective), at->second);
  return at->second;
}

/// Those that a member sends at once.
double TraceWiring::messages_of(const TraceCollective& collective,
                                const GroupCollective& shape) const {
  if (cluster_.transport.congestion_control == CongestionControl::none) return 1;
  return std::max(1.0, groups_.messages(shape, members_of(collective)));
}

void TraceWiring::tell(DcqcnStart& start) const {
  for (FabricLink link = 0; link < fabric_.link_count(); ++link) {
    if (links_.known()[link] != kNoPort) start.add_link(links_.known()[link], link);
  }
  for (const auto& [flow, messages] : sending_) start.add_flow(flow, messages);
}

TraceTransfer TraceWiring::wire(const TraceCollective& collective) {
  const std::vector<int>& group = trace_.groups[collective.group];
  if (group.size() < 2) return {};
  const std::vector<std::vector<int>> domains = by_domain(placement_, group);
  CollectiveCall call = group_call(collective.op, std::max(Bytes{1}, collective.payload), domains);
  call.skew = collective.skew;
  const bool skewed = !call.skew.is_even();
  const CollectiveCost cost = cost_of(call);
  const GroupCollective shape{.op = collective.op,
                              .algorithm = cost.algorithm,
                              .peer_channels = connections_of_pair(call),
                              .skew = call.skew,
                              .channels = cost.channels};
  double unit = cost.network_coefficient;
  if (unit <= 0) unit = cost.nvlink_coefficient > 0 ? cost.nvlink_coefficient : 1.0;
  Uses uses;
  uses.add(network_.add_link(unit * cost.payload_rate), 1.0);
  if (call.ranks_per_node_max > 1) {
    std::span<const PortBytes> ports;
    if (skewed) ports = groups_.ports(shape, members_of(collective));
    for (std::size_t m = 0; m < group.size(); ++m) {
      const PortBytes own = ports.empty() ? PortBytes{1, 1, 1, 1} : ports[m];
      uses.add(port(group[m], 0), own.nvlink_out * cost.nvlink_coefficient / unit);
      uses.add(port(group[m], 1), own.nvlink_in * cost.nvlink_coefficient / unit);
    }
  }
  double messages = 0;
  if (domains.size() > 1 && cost.network_coefficient > 0) {
    const double bytes_each = cost.network_coefficient / unit;
    const bool every_rail = cost.channels >= kChannelsPerRail * call.ranks_per_node;
    // A broadcast and a reduction leave out one edge of the ring: their shape says which.
    const bool open = call.op == CollectiveOp::broadcast || call.op == CollectiveOp::reduce;
    if ((!limits_ && !skewed) || (cost.algorithm == "ring" && every_rail && !open)) {
      add_rings(domains, bytes_each, uses);
      messages = messages_over(kChannelsPerRail);
    } else {
      for (const RouteHop& use : shape_uses(collective, shape)) {
        uses.add(links_[use.link], bytes_each * use.share);
      }
      messages = messages_of(collective, shape) / bytes_each;
    }
  }
  const FlowIndex flow = network_.add_flow(uses.list);
  if (messages > 0) sending_.emplace_back(flow, messages);
  return {.flow = flow,
          .latency = to_step_time(cost.latency),
          .amount = Bytes{std::max(1.0, unit * collective.payload.base_units())},
          .algorithm = cost.algorithm};
}

TraceTransfer TraceWiring::message(int from, int to, Bytes size) {
  const std::tuple key{from, to, size.base_units()};
  if (const auto known = messages_.find(key); known != messages_.end()) return known->second;
  const bool local = placement_.reach(from, to) != Reach::fabric;
  const CollectiveCost cost = cost_of({.op = CollectiveOp::send_receive,
                                       .payload = std::max(Bytes{1}, size),
                                       .ranks = 2,
                                       .ranks_per_node = local ? 2 : 1});
  Seconds latency = cost.latency;
  Uses uses;
  uses.add(network_.add_link(cost.payload_rate), 1.0);
  if (local) {
    uses.add(port(from, 0), 1.0);
    uses.add(port(to, 1), 1.0);
  } else {
    add_route(from, to, message_connections_, 1.0, uses);
    const FabricMember a = member(from), b = member(to);
    latency +=
        fabric_.switches_crossed(a.node, a.nic, b.node, b.nic) * fabric_.spec().switch_latency;
  }
  const FlowIndex flow = network_.add_flow(uses.list);
  if (!local) sending_.emplace_back(flow, messages_over(message_connections_));
  return messages_
      .emplace(key, TraceTransfer{.flow = flow,
                                  .latency = to_step_time(latency),
                                  .amount = Bytes{std::max(1.0, size.base_units())},
                                  .algorithm = cost.algorithm})
      .first->second;
}

}  // namespace lockstep
