#include "sim/step/wiring.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "models/layer/operations.hpp"
#include "sim/fabric/dcqcn_start.hpp"

namespace lockstep {
namespace {

constexpr LinkIndex kNoLink = FabricLinks::kNoLink;
/// A folded collective looks for its fullest link among this many replicas: beyond a pod nothing
/// new comes up.
constexpr int kScan = 1024;

/// Classes of one number, as indices, in the order of first members; those of kNoBlock are alone.
template <class Number>
std::vector<std::vector<std::size_t>> classes_by_number(const std::vector<ReplicaClass>& classes,
                                                        Number number) {
  std::vector<std::vector<std::size_t>> out;
  std::map<std::uint32_t, std::size_t> known;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const std::uint32_t own = number(classes[c]);
    std::size_t place = out.size();
    if (own != kNoBlock) place = known.try_emplace(own, place).first->second;
    if (place == out.size()) out.emplace_back();
    out[place].push_back(c);
  }
  return out;
}

/// What a call along the axis puts on a NIC, on average over the bytes of all layers.
Bytes mean_call(const Scenario& scenario, const StepPlan& plan, std::uint32_t pool, Axis axis) {
  const WorkloadContext context = workload_context(scenario, Placement{plan.placement}, pool);
  const Parallelism& par = scenario.job.parallelism;
  const bool experts = is_of_experts(axis);
  const int ranks = experts ? par.expert : axis == Axis::tensor ? par.tensor : par.context;
  const DomainSpreads& spreads = experts                ? context.expert_groups
                                 : axis == Axis::tensor ? context.tensor_groups
                                                        : context.context_groups;
  const NodeSpec& node = context.node;
  const NicShare nic = nic_share(node);
  double all = 0, calls = 0;
  for (int i = 0; i < scenario.job.model.layers; ++i) {
    for (const Operation& o : layer_operations(context, scenario.job.kind(i))) {
      const double bytes = (o.network + o.hidden.network).base_units();
      if (o.kind != OperationKind::collective || o.axis != axis || bytes <= 0) continue;
      const bool pair = o.op == CollectiveOp::send_receive;
      const CollectiveCall call{.op = o.op, .payload = o.payload, .ranks = pair ? 2 : ranks};
      const CollectiveCost cost =
          slowest_cost(call, pair ? DomainSpreads{1} : spreads, node.gpu, scenario.transport, nic);
      all += bytes;
      calls += bytes / std::max(1.0, cost.network_coefficient * o.payload.base_units());
    }
  }
  return Bytes{std::max(1.0, all / std::max(1.0, calls))};
}

}  // namespace

/// Links of a flow under construction, in order of first use.
struct Wiring::Edges {
  std::vector<FlowEdge> list;
  bool on_fabric = false;
  bool stalled = false;
  double messages = 1;

  void add(LinkIndex link, double coefficient) {
    for (FlowEdge& e : list) {
      if (e.link != link) continue;
      e.coefficient += coefficient;
      return;
    }
    list.push_back({link, coefficient});
  }
};

Wiring::Wiring(const Scenario& scenario, const StepPlan& plan,
               const std::vector<ReplicaClass>& classes, const Site& site, LinkClasses links,
               std::vector<double> crowd)
    : scenario_(scenario),
      plan_(plan),
      classes_(classes),
      link_classes_(std::move(links)),
      crowd_(std::move(crowd)),
      lanes_(plan, site.links->fabric(), site.nodes),
      layers_(plan, lanes_),
      links_(*site.links),
      network_(links_.network()),
      class_links_(link_classes_.links.size(), kNoLink),
      first_(static_cast<FlowIndex>(network_.flows())) {
  const std::size_t actors = classes.size() * plan.stages.size();
  ports_.assign(actors, {kNoLink, kNoLink});
  actors_.resize(actors);
  pairs_.assign(actors, kNoLink);
  wire_messages();
  wire_layers();
  if (site.data_routes != nullptr) {
    assert(&site.data_routes->fabric() == &lanes_.fabric());
    wire_data(*site.data_routes);
  } else {
    DataRoutes routes{plan, lanes_.fabric(), site.nodes};
    wire_data(routes);
  }
  wire_exchanges();
}

double Wiring::data_unit(const CollectiveCost& cost) {
  if (cost.network_coefficient > 0) return cost.network_coefficient;
  return cost.nvlink_coefficient > 0 ? cost.nvlink_coefficient : 1.0;
}

LinkIndex Wiring::fabric_link(FabricLink link) {
  if (link_classes_.of.empty()) return links_[link];
  const std::uint32_t number = link_classes_.of[link];
  LinkIndex& index = class_links_[number];
  // A link that stands for no other is one that other jobs may use, too.
  if (index == kNoLink && link_classes_.links[number] == 1) index = links_[link];
  if (index == kNoLink) index = network_.add_link(links_.capacity(link));
  return index;
}

LinkIndex Wiring::known_link(FabricLink link) const {
  if (link_classes_.of.empty()) return links_.known()[link];
  const std::uint32_t number = link_classes_.of[link];
  return number < class_links_.size() ? class_links_[number] : kNoLink;
}

FlowIndex Wiring::add_flow(const Edges& edges, WiredFlow::Use use, std::size_t subject,
                           std::size_t channel, std::size_t group) {
  const FlowIndex flow = network_.add_flow(edges.list);
  flows_.push_back({.use = use,
                    .subject = static_cast<std::uint32_t>(subject),
                    .flow = flow,
                    .channel = static_cast<std::uint32_t>(channel),
                    .group = static_cast<std::uint32_t>(group),
                    .on_fabric = edges.on_fabric,
                    .stalled = edges.stalled,
                    .messages = edges.messages});
  return flow;
}

void Wiring::tell(DcqcnStart& start) const {
  for (FabricLink link = 0; link < lanes_.fabric().link_count(); ++link) {
    const LinkIndex known = known_link(link);
    if (known != kNoLink) start.add_link(known, link);
  }
  for (const WiredFlow& flow : flows_) {
    if (!flow.on_fabric) continue;
    std::optional<Bytes> call;
    if (flow.use == WiredFlow::Use::layer) {
      const std::uint32_t pool = plan_of(flow.subject / kAxes).pool;
      call = mean_call(scenario_, plan_, pool, static_cast<Axis>(flow.subject % kAxes));
    }
    start.add_flow(flow.flow, flow.messages, call);
  }
}

std::unique_ptr<DcqcnStart> Wiring::dcqcn_start() const {
  if (!counts_messages()) return nullptr;
  auto start = std::make_unique<DcqcnStart>(lanes_.fabric(), network_, links_.efficiency());
  tell(*start);
  return start;
}

double Wiring::messages_over(int connections) const {
  return lanes_.fabric().spec().routing == Routing::ecmp ? connections : 1;
}

void Wiring::add_uses(const std::vector<RouteHop>& uses, double copies, Edges& edges) {
  for (const RouteHop& use : uses) {
    edges.on_fabric = true;
    if (links_.dead(use.link)) {
      edges.stalled = true;
      continue;
    }
    // All copies together cross all links of the class: each link has an equal part of that.
    const double links =
        link_classes_.of.empty() ? copies : link_classes_.links[link_classes_.of[use.link]];
    const double crowd = crowd_.empty() ? 1.0 : crowd_[use.link];
    edges.add(fabric_link(use.link), use.share * crowd * copies / links);
  }
}

const StagePlan& Wiring::plan_of(std::size_t actor) const {
  const std::size_t stages = plan_.stages.size();
  return plan_.stage_of(classes_[actor / stages].variant, actor % stages);
}

LinkIndex Wiring::port(std::size_t actor, int direction) {
  LinkIndex& index = ports_[actor][static_cast<std::size_t>(direction)];
  if (index == kNoLink) {
    const GpuSpec& gpu = scenario_.node_of(plan_of(actor).pool).gpu;
    index = network_.add_link(gpu.nvlink_bandwidth > BytesPerSecond{} ? gpu.nvlink_bandwidth
                                                                      : gpu.pcie_bandwidth);
  }
  return index;
}

LinkIndex Wiring::rate_limit(double bytes_per_second) {
  return network_.add_link(BytesPerSecond{bytes_per_second});
}

void Wiring::wire_messages() {
  const int stages = plan_.placement.pipeline;
  if (stages == 1) return;
  const bool wraps = plan_.shape.wraps();
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (int s = 0; s < stages; ++s) {
      const std::size_t actor = c * static_cast<std::size_t>(stages) + static_cast<std::size_t>(s);
      const int data = classes_[c].representative;
      const int copies = classes_[c].copies;
      if (s + 1 < stages || wraps) {
        wire_message(actor, data, s, (s + 1) % stages, 0, copies);
      }
      if (s > 0 || wraps) {
        wire_message(actor, data, s, (s + stages - 1) % stages, 1, copies);
      }
    }
  }
}

double Wiring::slowed_part(const std::vector<RouteHop>& uses, BytesPerSecond pace) const {
  constexpr double kRounding = 1e-6;
  double times = 1;
  for (const RouteHop& use : uses) {
    if (links_.dead(use.link)) continue;
    times = std::max(times, use.share * double{pace / links_.capacity(use.link)});
  }
  return times > 1 + kRounding ? 1 - 1 / times : 0;
}

void Wiring::wire_message(std::size_t actor, int data, int stage, int next, int direction,
                          int copies) {
  const auto way = static_cast<std::size_t>(direction);
  const bool local = !lanes_.over_fabric({data, stage}, {data, next});
  const std::size_t receiver =
      actor + static_cast<std::size_t>(next) - static_cast<std::size_t>(stage);
  const NodeCosts& own = plan_.costs(plan_of(actor).pool);
  const NodeCosts& other = plan_.costs(plan_of(receiver).pool);
  const CollectiveCost& cost =
      local ? own.local_message_cost : slower(own.message_cost, other.message_cost, plan_.message);
  Seconds latency = cost.latency;
  Edges edges;
  const std::size_t first = actor - static_cast<std::size_t>(stage);
  const double pace = cost.payload_rate.base_units();
  if (scenario_.stack.communication.half_duplex_pipeline) {
    // Both directions between two stages share one pace.
    const int lower = direction == 0 ? stage : next;
    LinkIndex& pair = pairs_[first + static_cast<std::size_t>(lower)];
    if (pair == kNoLink) pair = rate_limit(pace);
    edges.list.push_back({pair, 1.0});
  } else {
    edges.list.push_back({rate_limit(pace), 1.0});
  }
  if (local) {
    edges.add(port(actor, 0), 1.0);
    edges.add(port(first + static_cast<std::size_t>(next), 1), 1.0);
  } else {
    std::vector<RouteHop> uses;
    lanes_.add({data, stage}, {data, next}, plan_.connections.message, false, 1.0, uses);
    add_uses(uses, copies, edges);
    const double slowed = slowed_part(uses, cost.payload_rate);
    actors_[actor].slowed[way] = slowed;
    slows_messages_ = slows_messages_ || slowed > 0;
    edges.messages = messages_over(plan_.connections.message);
    latency += lanes_.switches_between({data, stage}, {data, next}) *
               lanes_.fabric().spec().switch_latency;
    exact_ = exact_ && (copies == 1 || alike());
  }
  actors_[actor].message[way] = add_flow(edges, WiredFlow::Use::message, 2 * actor + way);
  actors_[actor].message_latency[way] = to_step_time(latency);
}

std::vector<std::vector<std::size_t>> blocks_of(const std::vector<ReplicaClass>& classes) {
  return classes_by_number(classes, [](const ReplicaClass& c) { return c.block; });
}

std::vector<std::vector<std::size_t>> data_groups_of(const std::vector<ReplicaClass>& classes,
                                                     DataGroupKind kind) {
  const auto of_kind = static_cast<std::size_t>(kind);
  return classes_by_number(classes,
                           [of_kind](const ReplicaClass& c) { return c.data_group[of_kind]; });
}

void Wiring::wire_layers() {
  const std::size_t stages = plan_.stages.size();
  for (std::size_t a = 0; a < actors_.size(); ++a) {
    wire_layer({a}, Axis::tensor);
    wire_layer({a}, Axis::context);
  }
  for (const std::vector<std::size_t>& block : blocks_of(classes_)) {
    for (std::size_t s = 0; s < stages; ++s) {
      std::vector<std::size_t> actors;
      actors.reserve(block.size());
      for (const std::size_t c : block) actors.push_back(c * stages + s);
      wire_layer(actors, Axis::expert);
      wire_layer(actors, Axis::expert_return);
    }
  }
}

/// One flow of all these actors: what they send together, at the pace of the slowest of them.
void Wiring::wire_layer(const std::vector<std::size_t>& actors, Axis axis) {
  const std::size_t stages = plan_.stages.size();
  double rate = std::numeric_limits<double>::infinity();
  for (const std::size_t a : actors) {
    rate = std::min(rate, plan_.costs(plan_of(a).pool).layer(axis).rate);
  }
  if (rate <= 0) return;
  Edges edges;
  edges.list.push_back({rate_limit(rate), 1.0});
  for (const std::size_t a : actors) {
    const LayerTransfer& transfer = plan_.costs(plan_of(a).pool).layer(axis);
    const ReplicaClass& c = classes_[a / stages];
    const Place place{c.representative, static_cast<int>(a % stages)};
    const std::array<double, 2> shares = layers_.nvlink_shares(place, axis);
    for (const int direction : {0, 1}) {
      const double share = transfer.nvlink_share * shares[static_cast<std::size_t>(direction)];
      if (share > 0) edges.add(port(a, direction), share);
    }
    if (transfer.network_share <= 0) continue;
    std::vector<RouteHop> uses;
    layers_.add(place, axis, uses);
    add_uses(uses, c.copies, edges);
    if (counts_messages() && a == actors.front()) edges.messages = layers_.messages(place, axis);
    exact_ = exact_ && (c.copies == 1 || alike());
  }
  const FlowIndex flow = add_flow(edges, WiredFlow::Use::layer,
                                  kAxes * actors.front() + static_cast<std::size_t>(axis));
  for (const std::size_t a : actors) actors_[a].layer[static_cast<std::size_t>(axis)] = flow;
}

void Wiring::wire_data(DataRoutes& routes) {
  data_.resize(plan_.stages.size());
  std::array<std::vector<std::vector<std::size_t>>, kDataGroups> groups;
  for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
    groups[kind] = data_groups_of(classes_, static_cast<DataGroupKind>(kind));
  }
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    const StagePlan& stage = plan_.stages[s];
    std::vector<std::vector<Edges>> ways(1);  // by way and group; the first: nothing is crossed
    std::vector<std::size_t> way_of(stage.channels.size());
    for (const DataWay& way : data_ways(stage)) {
      for (const std::size_t channel : way.channels) way_of[channel] = ways.size();
      ways.emplace_back();
      for (const auto& classes : groups[static_cast<std::size_t>(way.first->group)]) {
        ways.back().push_back(data_edges(stage, way, classes, routes));
        if (!counts_messages()) continue;
        ways.back().back().messages =
            routes.messages(stage, way, classes_[classes.front()].representative);
      }
    }
    for (std::size_t c = 0; c < stage.channels.size(); ++c) {
      const auto& of_kind = groups[static_cast<std::size_t>(stage.channels[c].group)];
      const std::vector<Edges>& edges = ways[way_of[c]];
      for (std::size_t g = 0; g < of_kind.size(); ++g) {
        const FlowIndex flow =
            wire_data_channel(s, c, g, of_kind[g], edges.empty() ? Edges{} : edges[g]);
        if (g == 0) data_[s].push_back(flow);
      }
    }
  }
}

/// Links between the NVLink domains of the groups in which these classes are, one byte of each
/// member.
Wiring::Edges Wiring::data_edges(const StagePlan& stage, const DataWay& way,
                                 const std::vector<std::size_t>& classes, DataRoutes& routes) {
  std::vector<RouteHop> uses;
  const DataGroup& group = stage.groups[static_cast<std::size_t>(way.first->group)];
  const bool every_replica =
      std::ranges::all_of(classes_, [](const ReplicaClass& c) { return c.copies == 1; });
  exact_ = exact_ && (every_replica || alike());
  double groups = 1;  // that are alike
  if (classes.size() < classes_.size()) {
    const int which = group.group_of(classes_[classes.front()].representative);
    routes.add(stage, way, which, uses);
    groups = 0;
    for (const std::size_t c : classes) groups += classes_[c].copies;
    groups /= group.replicas;
  } else if (alike() || !crowd_.empty() || every_replica || !way.is_ring) {
    routes.add(stage, way, kEveryGroup, uses);
  } else {
    for (const ReplicaClass& c : classes_) {
      if (c.copies == 1) {
        lanes_.add_ring(c.representative, stage.stage, group, uses);
        continue;
      }
      std::vector<RouteHop> own;
      add_hashed_ring(stage.stage, group, c.representative, own);
      uses.insert(uses.end(), own.begin(), own.end());
    }
  }
  Edges edges;
  share_.resize(std::max(share_.size(), network_.links() + uses.size()));
  for (const RouteHop& use : uses) {
    edges.on_fabric = true;
    if (links_.dead(use.link)) {
      edges.stalled = true;
      continue;
    }
    const double links =
        link_classes_.of.empty() ? 1.0 : link_classes_.links[link_classes_.of[use.link]];
    const LinkIndex link = fabric_link(use.link);
    if (share_[link] == 0) edges.list.push_back({link, 0});
    share_[link] += use.share * groups / links;
  }
  for (FlowEdge& e : edges.list) e.coefficient = std::exchange(share_[e.link], 0.0);
  return edges;
}

void Wiring::add_hashed_ring(int stage, const DataGroup& group, int representative,
                             std::vector<RouteHop>& ring) {
  const int replicas = plan_.placement.data;
  const auto wrap = [&](int j) { return (j % replicas + replicas) % replicas; };
  const auto add_member = [&](int j, bool only_known, double bytes) {
    lanes_.add({wrap(j), stage}, {group.next(wrap(j)), stage}, plan_.connections.ring, only_known,
               bytes, ring);
  };
  // What the representative sends and receives, and the longest way that any neighbour's bytes go:
  // it has the fullest links between switches.
  const int first = representative - group.replicas_per_domain * group.stride;
  const int end = first + std::min(replicas, kScan);
  int farthest = representative, most = 0;
  for (int j = first; j < end; ++j) {
    const int switches = lanes_.switches_between({wrap(j), stage}, {group.next(wrap(j)), stage});
    if (switches > most) farthest = j, most = switches;
  }
  for (const int j : {representative, first, farthest}) add_member(j, false, 0.0);
  for (int j = first; j < end; ++j) add_member(j, true, 1.0);
}

FlowIndex Wiring::wire_data_channel(std::size_t stage, std::size_t number, std::size_t group,
                                    const std::vector<std::size_t>& classes, const Edges& way) {
  const DataChannel& channel = plan_.stages[stage].channels[number];
  const DataGroup& of_kind = plan_.stages[stage].groups[static_cast<std::size_t>(channel.group)];
  const double unit = data_unit(channel.cost);
  Edges edges;
  edges.list.push_back({rate_limit(channel.cost.payload_rate.base_units() * unit), 1.0});
  const double over_nvlink = channel.cost.nvlink_coefficient / unit;
  if (of_kind.per_domain > 1 && over_nvlink > 0) {
    for (const std::size_t c : classes) {
      for (const int direction : {0, 1}) {
        edges.list.push_back({port(c * plan_.stages.size() + stage, direction), over_nvlink});
      }
    }
  }
  const double over_network = channel.cost.network_coefficient / unit;
  for (const FlowEdge& e : way.list) {
    if (e.coefficient > 0 && over_network > 0) {
      edges.list.push_back({e.link, e.coefficient * over_network});
    }
  }
  edges.on_fabric = way.on_fabric && over_network > 0;
  edges.stalled = way.stalled && over_network > 0;
  edges.messages = way.messages;
  return add_flow(edges, WiredFlow::Use::data, stage, number, group);
}

void Wiring::wire_exchanges() {
  for (const ReplicaClass& c : classes_) {
    for (const StageExchange& exchange : plan_.exchanges) {
      const double unit = data_unit(exchange.cost);
      Edges edges;
      edges.list.push_back({rate_limit(exchange.cost.payload_rate.base_units() * unit), 1.0});
      const Place one{c.representative, static_cast<int>(exchange.stages[0])};
      const Place other{c.representative, static_cast<int>(exchange.stages[1])};
      if (lanes_.over_fabric(one, other)) {
        std::vector<RouteHop> uses;
        lanes_.add(one, other, plan_.connections.ring, false, 1.0, uses);
        lanes_.add(other, one, plan_.connections.ring, false, 1.0, uses);
        add_uses(uses, c.copies, edges);
        edges.messages = messages_over(plan_.connections.ring);
        exact_ = exact_ && (c.copies == 1 || alike());
      }
      exchanges_.push_back(add_flow(edges, WiredFlow::Use::exchange, exchanges_.size()));
    }
  }
}

}  // namespace lockstep
