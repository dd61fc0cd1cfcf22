#include "sim/fabric/dcqcn_collective.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/core/engine.hpp"
#include "sim/fabric/dcqcn_start.hpp"

namespace lockstep {
namespace {

/// The flows of all groups, which begin at once, and how long each link held one.
class GroupFlows final : public Process, public FlowObserver {
 public:
  GroupFlows(FlowNetwork& network, Bytes payload) : network_(network), payload_(payload) {
    network.observe(this);
  }
  void add(FlowIndex flow) { flows_.push_back(flow); }

  void begin(StepTime now) override {
    for (const FlowIndex flow : flows_) network_.start(flow, payload_, now);
  }
  [[nodiscard]] StepTime next_event() const override { return kNever; }
  void flows_ended(std::span<const FlowIndex> flows, StepTime /*now*/) override {
    ended_ += flows.size();
  }
  void handle_events(StepTime /*now*/) override {}
  [[nodiscard]] bool done() const override { return ended_ == flows_.size(); }

  void started(FlowIndex /*flow*/, Bytes /*amount*/, StepTime /*now*/) override {}
  void moved(FlowIndex /*flow*/, StepTime from, StepTime to, BytesPerSecond /*rate*/,
             LinkIndex held_by) override {
    held_[held_by] += to - from;
  }
  void ended(FlowIndex /*flow*/, StepTime /*now*/) override {}

  /// The link that held flows longest, of those that `of` accepts.
  template <class Of>
  [[nodiscard]] std::optional<LinkIndex> slowest(Of of) const {
    std::optional<LinkIndex> out;
    for (const auto& [link, time] : held_) {
      if (of(link) && (!out || time > held_.at(*out))) out = link;
    }
    return out;
  }

 private:
  FlowNetwork& network_;
  Bytes payload_;
  std::vector<FlowIndex> flows_;
  std::size_t ended_ = 0;
  std::map<LinkIndex, StepTime> held_;
};

}  // namespace

double messages_per_byte(const GroupCollective& collective, std::span<const FabricMember> members,
                         CollectiveLoad& load, const Fabric& fabric) {
  double over_nics = 0;  // out of one, and into another
  for (const FabricLink link : load.used()) {
    if (fabric.joins_nic(link)) over_nics += load.by_link()[link];
  }
  if (over_nics <= 0) return 1;
  const double messages = GroupUses(fabric).messages(collective, members);
  return 2 * messages * static_cast<double>(members.size()) / over_nics;
}

StartedCollective move_with_dcqcn(const Fabric& fabric, std::span<const StartedGroup> groups,
                                  const GroupCollective& collective, BytesPerSecond pace,
                                  Bytes payload, double efficiency) {
  FlowNetwork network;
  DcqcnStart start(fabric, network, efficiency);
  GroupFlows flows(network, payload);
  std::map<FabricLink, LinkIndex> known;
  std::map<LinkIndex, FabricLink> of_fabric;
  const auto link_of = [&](FabricLink link) {
    const auto [at, is_new] = known.try_emplace(link);
    if (is_new) {
      at->second = network.add_link(payload_bandwidth(fabric.capacity(link), efficiency));
      start.add_link(at->second, link);
      of_fabric.emplace(at->second, link);
    }
    return at->second;
  };
  CollectiveLoad load(fabric);
  for (const StartedGroup& group : groups) {
    load.clear();
    load.add(group.shape, group.members, kFirstHashSeed);
    std::vector<FlowEdge> edges{{network.add_link(pace), 1}};
    for (const FabricLink link : load.used())
      edges.push_back({link_of(link), load.by_link()[link]});
    const FlowIndex flow = network.add_flow(edges);
    flows.add(flow);
    start.add_flow(flow, messages_per_byte(collective, group.members, load, fabric));
  }
  Engine engine(network);
  engine.add(flows);
  engine.add_change(start);
  const Seconds moving = to_seconds(engine.run());
  StartedCollective out{.moving = moving, .slowest = {}};
  const auto held = flows.slowest([&](LinkIndex link) { return of_fabric.contains(link); });
  if (held) out.slowest = of_fabric.at(*held);
  return out;
}

}  // namespace lockstep
