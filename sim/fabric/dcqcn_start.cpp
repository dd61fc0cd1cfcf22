#include "sim/fabric/dcqcn_start.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "sim/packet/packet_control.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

/// Parts of the time that a port needs, to which starts are rounded, so that what two jobs do again
/// and again has few cases. Draws of the marks move what a port loses by as much.
constexpr double kStartSteps = 32;

template <class T>
void sort_once(std::vector<T>& values) {
  std::ranges::sort(values);
  const auto [first, last] = std::ranges::unique(values);
  values.erase(first, last);
}

}  // namespace

DcqcnStart::DcqcnStart(const Fabric& fabric, FlowNetwork& network, double efficiency)
    : fabric_(&fabric),
      network_(network),
      efficiency_(efficiency),
      tuning_(vendor_tuning(fabric.nic_bandwidth())) {
  network.observe(this);
}

/// Its level, and how many ports it stands for.
DcqcnStart::Port DcqcnStart::port_of(FabricLink link) const {
  Port port;
  if (fabric_->is_drawn()) {
    const ClusterGraph& graph = *fabric_->graph();
    port.level = !fabric_->joins_nic(link)                   ? leaf_up
                 : graph.source()[link] < graph.port_count() ? nic_up
                                                             : nic_down;
    return port;
  }
  // In the order of their numbers.
  if (fabric_->joins_nic(link)) {
    port.level = link < fabric_->nic_down(0, 0) ? nic_up : nic_down;
    return port;
  }
  const FabricCounts& counts = fabric_->counts();
  const bool at_leaf = link < fabric_->spine_up(0, 0, 0);
  const bool up = link < (at_leaf ? fabric_->leaf_down(0, 0) : fabric_->spine_down(0, 0, 0));
  port.level = at_leaf ? (up ? leaf_up : leaf_down) : (up ? spine_up : spine_down);
  port.bundle = std::round(fabric_->capacity(link) /
                           (at_leaf ? counts.leaf_link_capacity : counts.spine_link_capacity));
  return port;
}

void DcqcnStart::add_link(LinkIndex link, FabricLink of) {
  if (link >= ports_.size()) ports_.resize(link + 1);
  Port& port = ports_[link];
  Port here = port_of(of);
  // Links of a folded job stand for ones up and down that carry the same: what is cut on the way up
  // comes down as it is.
  if (here.level >= port.level) return;
  port = std::move(here);
  port.capacity = network_.capacity(link);
  port.wire = port.capacity / efficiency_;
}

void DcqcnStart::add_flow(FlowIndex flow, double messages, std::optional<Bytes> call) {
  assert(messages > 0 && (!call || *call > Bytes{}));
  if (flow >= senders_.size()) senders_.resize(flow + 1);
  senders_[flow].messages = messages;
  senders_[flow].call = call;
}

void DcqcnStart::begin_anew(const Fabric& fabric) {
  fabric_ = &fabric;
  for (LinkIndex link = 0; link < ports_.size(); ++link) {
    set_use(link, 1);
    ports_[link] = {};
  }
  for (FlowIndex flow = 0; flow < senders_.size(); ++flow) {
    senders_[flow].active = false;
    if (!network_.active(flow) || network_.held(flow)) network_.set_weight(flow, 1, now_);
  }
  started_.clear();
  freed_.clear();
}

void DcqcnStart::started(FlowIndex flow, Bytes amount, StepTime now) {
  if (flow >= senders_.size() || senders_[flow].messages <= 0 || network_.held(flow)) return;
  Sender& sender = senders_[flow];
  sender.active = true;
  sender.amount = amount;
  if (sender.call) sender.amount *= 1 / std::max(1.0, std::round(amount / *sender.call));
  sender.start = now_ = now;
  sender.left.fill(1);
  bool crosses = false;
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    if (!known(edge.link)) continue;
    ports_[edge.link].flows.push_back(flow);
    crosses = true;
  }
  if (crosses) started_.push_back(flow);
}

void DcqcnStart::ended(FlowIndex flow, StepTime now) {
  if (flow >= senders_.size() || !senders_[flow].active) return;
  senders_[flow].active = false;
  network_.set_weight(flow, 1, now);
  now_ = now;
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    if (!known(edge.link)) continue;
    Port& port = ports_[edge.link];
    std::erase(port.flows, flow);
    if (port.cut) freed_.push_back(edge.link);
  }
}

double DcqcnStart::messages_at(FlowIndex flow, const MaxMin::Edge& edge) const {
  return edge.coefficient * senders_[flow].messages;
}

/// Bytes per second, of a flow whose messages all go at line rate as far as their NIC lets them.
double DcqcnStart::arriving(FlowIndex flow, const Port& port, const MaxMin::Edge& edge) const {
  const Sender& sender = senders_[flow];
  return messages_at(flow, edge) * fabric_->nic_bandwidth().base_units() / sender.sharing *
         sender.left[port.level];
}

const MaxMin::Edge& DcqcnStart::edge_of(FlowIndex flow, LinkIndex link) const {
  return *std::ranges::find(network_.edges(flow), link, &MaxMin::Edge::link);
}

double DcqcnStart::arriving(LinkIndex link) const {
  double sum = 0;
  for (const FlowIndex flow : ports_[link].flows) {
    sum += arriving(flow, ports_[link], edge_of(flow, link));
  }
  return sum;
}

void DcqcnStart::find_sharing(FlowIndex flow) {
  double most = 1;
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    if (!known(edge.link) || ports_[edge.link].level != nic_up) continue;
    double messages = 0;
    for (const FlowIndex other : ports_[edge.link].flows) {
      messages += messages_at(other, edge_of(other, edge.link));
    }
    most = std::max(most, messages);
  }
  senders_[flow].sharing = most;
}

/// What is left of a flow behind a level: on average over its links there.
void DcqcnStart::pass_on(FlowIndex flow, Level level) {
  double bytes = 0, passed = 0;
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    if (!known(edge.link) || ports_[edge.link].level != level) continue;
    bytes += edge.coefficient;
    passed += edge.coefficient * ports_[edge.link].passes;
  }
  Sender& sender = senders_[flow];
  sender.left[level + 1] = sender.left[level] * (bytes > 0 ? passed / bytes : 1);
}

void DcqcnStart::spread(std::span<const FlowIndex> flows) {
  std::array<std::vector<LinkIndex>, levels> links;
  for (const FlowIndex flow : flows) {
    find_sharing(flow);
    for (const MaxMin::Edge& edge : network_.edges(flow)) {
      if (known(edge.link)) links[ports_[edge.link].level].push_back(edge.link);
    }
  }
  // What a NIC does not send at once waits in its memory: no queue grows there.
  for (int level = nic_up; level < nic_down; ++level) {
    std::vector<LinkIndex>& of_level = links[static_cast<std::size_t>(level)];
    sort_once(of_level);
    for (const LinkIndex link : of_level) {
      const double arrives = level == nic_up ? 0 : arriving(link);
      ports_[link].passes = std::min(1.0, ports_[link].wire.base_units() / arrives);
    }
    for (const FlowIndex flow : flows) pass_on(flow, static_cast<Level>(level));
  }
}

/// As one port of the link's bundle sees them.
std::vector<PortMessage> DcqcnStart::messages_of(LinkIndex link) const {
  const Port& port = ports_[link];
  std::vector<PortMessage> out;
  for (std::uint32_t number = 0; number < port.flows.size(); ++number) {
    const FlowIndex flow = port.flows[number];
    const Sender& sender = senders_[flow];
    const MaxMin::Edge& edge = edge_of(flow, link);
    const double count = std::max(1.0, std::round(messages_at(flow, edge)));
    const double each = 1 / (count * port.bundle);
    const Bytes bytes = each * edge.coefficient / kRoceFraming.efficiency() * sender.amount;
    out.insert(out.end(), static_cast<std::size_t>(count),
               {.bytes = bytes,
                .most = BytesPerSecond{each * arriving(flow, port, edge)},
                .line_rate = fabric_->nic_bandwidth(),
                .share = 1 / port.bundle,
                .start = to_seconds(sender.start),
                .sender = number});
  }
  return out;
}

DcqcnUse DcqcnStart::use_of(LinkIndex link) {
  const Port& port = ports_[link];
  const BytesPerSecond capacity = port.wire / port.bundle;
  std::vector<PortMessage> messages = messages_of(link);
  Bytes all;
  BytesPerSecond least;  // that arrives, however often sources are cut
  for (const PortMessage& message : messages) {
    all += message.bytes;
    least += std::min(message.most, message.share * tuning_.constants.least);
  }
  if (least >= capacity) return {};
  const Seconds step = all / capacity / kStartSteps;
  const Seconds first = std::ranges::min_element(messages, {}, &PortMessage::start)->start;
  std::vector<double> key{capacity.base_units()};
  for (PortMessage& message : messages) {
    message.start = std::round((message.start - first) / step) * step;
    for (const double value : {message.bytes.base_units(), message.most.base_units(), message.share,
                               message.start.base_units(), static_cast<double>(message.sender)}) {
      key.push_back(value);
    }
  }
  const auto [found, is_new] = uses_.try_emplace(std::move(key));
  if (!is_new) return found->second;
  const int switches = fabric_->is_drawn() || fabric_->counts().pods == 1 ? 3 : 5;
  const Bytes packet{static_cast<double>(kRoceFraming.wire())};
  const DcqcnPort one{
      .capacity = capacity,
      .packet = kRoceFraming.wire(),
      .feedback =
          2.0 * switches * (fabric_->spec().switch_latency + packet / fabric_->nic_bandwidth()),
      .number = 0};
  return found->second = dcqcn_use(one, messages, tuning_);
}

void DcqcnStart::set_use(LinkIndex link, double use) {
  Port& port = ports_[link];
  if (use >= 1) port.weights.clear();
  if (!port.cut && use >= 1) return;
  port.cut = use < 1;
  network_.set_capacity(link, use * port.capacity);
}

void DcqcnStart::weigh(LinkIndex link, const DcqcnUse& use) {
  Port& port = ports_[link];
  port.weights.clear();
  if (use.passed.size() != port.flows.size()) return;
  std::vector<double> loads;
  for (const FlowIndex flow : port.flows) loads.push_back(edge_of(flow, link).coefficient);
  const std::vector<double> weights = dcqcn_weights(use.passed, loads);
  for (std::size_t f = 0; f < weights.size(); ++f) port.weights[port.flows[f]] = weights[f];
  port.excess = arriving(link) / port.wire.base_units();
}

double DcqcnStart::weight_of(FlowIndex flow) const {
  double weight = 1, excess = 0;
  for (const MaxMin::Edge& edge : network_.edges(flow)) {
    if (!known(edge.link) || ports_[edge.link].excess <= excess) continue;
    const Port& port = ports_[edge.link];
    const auto found = port.weights.find(flow);
    if (found == port.weights.end()) continue;
    excess = port.excess;
    weight = found->second;
  }
  return weight;
}

void DcqcnStart::handle_events(StepTime now) {
  if (next_event() > now) return;
  std::erase_if(started_, [&](FlowIndex flow) { return !senders_[flow].active; });
  std::vector<LinkIndex> fresh, links = std::move(freed_);
  for (const FlowIndex flow : started_) {
    for (const MaxMin::Edge& edge : network_.edges(flow)) {
      if (known(edge.link) && ports_[edge.link].level != nic_up) fresh.push_back(edge.link);
    }
  }
  links.insert(links.end(), fresh.begin(), fresh.end());
  sort_once(fresh);
  sort_once(links);
  std::vector<FlowIndex> flows = std::move(started_);
  for (const LinkIndex link : links) {
    flows.insert(flows.end(), ports_[link].flows.begin(), ports_[link].flows.end());
  }
  sort_once(flows);
  spread(flows);
  constexpr double kRounding = 1e-6;
  for (const LinkIndex link : links) {
    if (arriving(link) <= (1 + kRounding) * ports_[link].wire.base_units()) {
      set_use(link, 1);
    } else if (std::ranges::binary_search(fresh, link)) {
      const DcqcnUse use = use_of(link);
      set_use(link, use.use);
      weigh(link, use);
    }
  }
  for (const FlowIndex flow : flows) network_.set_weight(flow, weight_of(flow), now);
  freed_.clear();
  started_.clear();
}

}  // namespace lockstep
