#include "sim/traffic/traffic_network.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <map>
#include <utility>
#include <vector>

#include "sim/fabric/connections.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

TrafficNetwork::Own::Own(const Cluster& cluster, double efficiency)
    : fabric(cluster.fabric, cluster.nodes, nic_ports(cluster.node).count,
             nic_ports(cluster.node).bandwidth),
      links(fabric, flows, efficiency) {}

TrafficNetwork::TrafficNetwork(const Cluster& cluster, double efficiency)
    : TrafficNetwork(cluster, std::make_unique<Own>(cluster, efficiency)) {}

TrafficNetwork::TrafficNetwork(const Cluster& cluster, std::unique_ptr<Own> own)
    : TrafficNetwork(cluster, own->links) {
  own_ = std::move(own);
}

TrafficNetwork::TrafficNetwork(const Cluster& cluster, FabricLinks& links)
    : links_(links),
      fabric_(links.fabric()),
      flows_(links.network()),
      node_(cluster.node),
      ports_(nic_ports(cluster.node).count),
      domain_nodes_(std::max(1, cluster.node.nvlink_domain / cluster.node.gpus)),
      has_nvlink_(cluster.node.gpu.nvlink_bandwidth > BytesPerSecond{}),
      nic_of_(fabric_.link_count(), kNoNic) {
  assert(fabric_.nodes() == cluster.nodes && fabric_.nics_per_node() == ports_);
  const std::size_t gpus =
      static_cast<std::size_t>(cluster.nodes) * static_cast<std::size_t>(cluster.node.gpus);
  weights_.resize(fabric_.link_count() + 2 * gpus);
  first_pace_ = static_cast<MachineLink>(weights_.size());
  link_of_.resize(weights_.size(), kNoLink);
  count_senders(0);
  for (std::uint32_t nic = 0; nic < counted_.front().size(); ++nic) {
    hops_.clear();
    fabric_.nic_ups(static_cast<int>(nic) / ports_, static_cast<int>(nic) % ports_, hops_);
    for (const RouteHop& hop : hops_) nic_of_[hop.link] = nic;
  }
}

void TrafficNetwork::count_senders(std::size_t entry) {
  const auto nics = static_cast<std::size_t>(fabric_.nodes()) * static_cast<std::size_t>(ports_);
  while (counted_.size() <= entry) {
    counted_.emplace_back(nics);
    senders_.push_back(0);
  }
  counting_ = entry;
}

/// Whether the ends are GPUs that NVLink or, in a node, PCIe joins.
bool TrafficNetwork::joined(const TrafficEnd& from, const TrafficEnd& to) const {
  if (from.gpu < 0 || to.gpu < 0) return false;
  return from.node == to.node ||
         (domain_nodes_ > 1 && has_nvlink_ && from.node / domain_nodes_ == to.node / domain_nodes_);
}

bool TrafficNetwork::changes_rail(const TrafficEnd& from, const TrafficEnd& to,
                                  bool on_rail) const {
  return (on_rail || fabric_.spec().pxn) && has_nvlink_ && from.gpu >= 0 && from.nic != to.nic &&
         node_.nvlink_domain >= node_.gpus;
}

void TrafficNetwork::add_local(int from_node, int from_gpu, int to_node, int to_gpu) {
  add(gpu_link(from_node, from_gpu, false), 1);
  add(gpu_link(to_node, to_gpu, true), 1);
}

void TrafficNetwork::add_way(const TrafficEnd& from, const TrafficEnd& to, std::uint64_t queue_pair,
                             bool on_rail) {
  assert(!(from == to));
  if (joined(from, to)) {
    add_local(from.node, from.gpu, to.node, to.gpu);
    return;
  }
  int nic = from.nic;
  if (changes_rail(from, to, on_rail)) {
    nic = to.nic;
    add_local(from.node, from.gpu, from.node, gpu_of(nic));
  }
  hops_.clear();
  fabric_.route(from.node, nic, to.node, to.nic,
                queue_pair_of_turns(queue_pair, turn_of(from), turn_of(to)), hops_);
  for (const RouteHop& hop : hops_) add(hop.link, hop.share);
  // NICs of one node, which PXN joins.
  if (hops_.empty()) add_local(from.node, gpu_of(from.nic), to.node, gpu_of(to.nic));
}

void TrafficNetwork::add_all_ways(std::span<const TrafficEnd> ends, std::uint64_t queue_pair) {
  assert(used_.empty());
  const bool gpus = std::ranges::all_of(ends, [](const TrafficEnd& end) { return end.gpu >= 0; });
  if (gpus && !fabric_.is_drawn()) {
    add_tree_ways(ends, queue_pair);
    return;
  }
  for (const TrafficEnd& from : ends) {
    for (const TrafficEnd& to : ends) {
      if (!(from == to)) add_way(from, to, queue_pair);
    }
  }
}

/// Of GPUs, sender by sender: all ports are looked up before. Messages to GPUs of the same turn
/// hash alike.
void TrafficNetwork::add_tree_ways(std::span<const TrafficEnd> ends, std::uint64_t queue_pair) {
  std::vector<FabricPort> own, targets;  // own: every port of the sender's node
  std::map<int, std::pair<std::vector<FabricPort>, std::vector<FabricPort>>> to_turn;
  for (const TrafficEnd& end : ends) targets.push_back(fabric_.port(end.node, end.nic));
  for (const TrafficEnd& sender : ends) {
    own.clear();
    for (int nic = 0; nic < ports_; ++nic) own.push_back(fabric_.port(sender.node, nic));
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const TrafficEnd& end = ends[i];
      if (end == sender) continue;
      if (joined(sender, end)) {
        add_local(sender.node, sender.gpu, end.node, end.gpu);
        continue;
      }
      const bool changes = changes_rail(sender, end, false);
      if (changes) add_local(sender.node, sender.gpu, sender.node, gpu_of(end.nic));
      const int nic = changes || fabric_.spec().pxn ? end.nic : sender.nic;
      auto& [from, to] = to_turn[turn_of(end)];
      from.push_back(own[static_cast<std::size_t>(nic)]);
      to.push_back(targets[i]);
    }
    for (auto& [turn, messages] : to_turn) {
      auto& [from, to] = messages;
      fabric_.add_loads(from, to, queue_pair_of_turns(queue_pair, turn_of(sender), turn), weights_,
                        used_);
      from.clear(), to.clear();
    }
  }
  std::ranges::sort(used_);
}

void TrafficNetwork::add_pace(BytesPerSecond rate) {
  paces_.push_back(rate);
  weights_.push_back(0);
  link_of_.push_back(kNoLink);
  add(static_cast<MachineLink>(weights_.size() - 1), 1);
}

FlowIndex TrafficNetwork::add_flow() {
  assert(!used_.empty());
  // Growing by doubling would copy the links of a pattern of a whole machine many times.
  if (used_.size() > flows_.links()) {
    flows_.reserve(flows_.links() + used_.size(), flows_.links() + 2 * used_.size());
    known_.reserve(flows_.links() + used_.size());
    edges_.reserve(used_.size());
  }
  edges_.clear();
  fabric_weight_ = 0;
  for (const MachineLink link : used_) {
    double& weight = weights_[link];
    const LinkIndex known = link_of_[link];
    edges_.push_back({known != kNoLink ? known : new_link(link), weight});
    if (link < nic_of_.size() && nic_of_[link] != kNoNic) {
      fabric_weight_ += weight;
      std::vector<bool>& counted = counted_[counting_];
      const std::uint32_t nic = nic_of_[link];
      if (!counted[nic]) ++senders_[counting_];
      counted[nic] = true;
    }
    weight = 0;
  }
  used_.clear();
  return flows_.add_flow(edges_);
}

Seconds TrafficNetwork::latency(const TrafficEnd& from, const TrafficEnd& to, bool on_rail) const {
  if (fabric_.spec().switch_latency <= Seconds{} || joined(from, to)) return {};
  const int nic = changes_rail(from, to, on_rail) ? to.nic : from.nic;
  return fabric_.switches_crossed(from.node, nic, to.node, to.nic) * fabric_.spec().switch_latency;
}

BytesPerSecond TrafficNetwork::rate_of_own(MachineLink link) const {
  if (link >= first_pace_) return paces_[link - first_pace_];
  return has_nvlink_ ? node_.gpu.nvlink_bandwidth : node_.gpu.pcie_bandwidth;
}

LinkIndex TrafficNetwork::new_link(MachineLink link) {
  LinkIndex index = 0;
  if (link < fabric_.link_count()) {
    index = links_[link];
  } else {
    index = flows_.add_link(rate_of_own(link));
  }
  while (known_.size() <= index) known_.push_back(kNoLink);
  known_[index] = link;
  link_of_[link] = index;
  return index;
}

std::string TrafficNetwork::link_name(LinkIndex link) const {
  const MachineLink known = known_[link];
  if (known < fabric_.link_count()) return fabric_.link_name(known);
  if (known >= first_pace_) return "the pace of GPUs and NICs in NCCL";
  const auto number = static_cast<int>(known - fabric_.link_count());
  const int gpu = number / 2;
  return fmt::format("node {} gpu {} {} ({})", gpu / node_.gpus, gpu % node_.gpus,
                     number % 2 == 0 ? "out" : "in", has_nvlink_ ? "NVLink" : "PCIe");
}

}  // namespace lockstep
