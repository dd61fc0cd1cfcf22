/// What the start of DCQCN costs flows, and how they share then: a process that takes it off the
/// ports at which they meet, and weighs them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/packet/dcqcn_port.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A change of the engine (Engine::add_change), and an observer of its network. A flow that is
/// known to it stands for so many messages of each NIC that sends for it, all of which begin at
/// line rate when it starts. Where more would arrive at a port then than it can send, the port
/// carries the part that dcqcn_use() says (sim/packet/dcqcn_port.hpp), from the start of the flow
/// until what is left of its flows fits at line rate. Flows that meet there share as their messages
/// do in its queue (MaxMin::set_weight()): DCQCN limits messages, not jobs, so that one with many
/// small messages gets more than one with few, and who comes later waits behind what is queued. Of
/// several such ports, the one with the most arriving for what it sends says a flow's weight, from
/// the last start there on.
///
/// On the way, queues pass on what arrives in proportion, level by level of a tree: NIC, leaf,
/// spine, and down again. Links of a drawn fabric have no levels but those of NICs and switches.
/// Messages that are under way when others start count from their own start, to 1/32 of the time
/// that the port needs for all of them; all ports draw the same marks, and marks are the same in
/// every run.
///
/// Leaves out what sim/packet/dcqcn_port.hpp leaves out, and that a connection which was cut a
/// moment ago begins its next message at less than line rate.
class DcqcnStart final : public Process, public FlowObserver {
 public:
  /// `fabric` and `network` outlive this, which observes the network from here on. `efficiency`:
  /// the share of a link that the network gives to payload.
  DcqcnStart(const Fabric& fabric, FlowNetwork& network, double efficiency);

  /// The network's link `link` is the fabric's `of`, or stands for links like it, of which this may
  /// be told one after another.
  void add_link(LinkIndex link, FabricLink of);
  /// `messages`: those into which a NIC divides each byte of the flow's progress. Where a flow puts
  /// k bytes on a link for each byte of its own, k times as many messages meet there. Above 0.
  /// A flow that carries several calls one after another says what one has, `call`: each begins
  /// like the first.
  void add_flow(FlowIndex flow, double messages, std::optional<Bytes> call = {});
  /// Every flow goes another way, over this fabric: ports are whole again, and what is under way
  /// counts no more.
  void begin_anew(const Fabric& fabric);

  void started(FlowIndex flow, Bytes amount, StepTime now) override;
  void moved(FlowIndex /*flow*/, StepTime /*from*/, StepTime /*to*/, BytesPerSecond /*rate*/,
             LinkIndex /*held_by*/) override {}
  void ended(FlowIndex flow, StepTime now) override;

  [[nodiscard]] StepTime next_event() const override {
    return started_.empty() && freed_.empty() ? kNever : now_;
  }
  /// It has no flows of its own.
  void flows_ended(std::span<const FlowIndex> /*flows*/, StepTime /*now*/) override {}
  void handle_events(StepTime now) override;
  [[nodiscard]] bool done() const override { return true; }

 private:
  /// Of a whole tree, on the way of a message.
  enum Level : std::uint8_t { nic_up, leaf_up, spine_up, spine_down, leaf_down, nic_down, levels };

  struct Port {
    Level level = levels;  ///< levels: not known
    bool cut = false;
    double bundle = 1;               ///< ports that the link stands for: they are sprayed over
    BytesPerSecond capacity;         ///< as the network had it
    BytesPerSecond wire;             ///< what all of the bundle send
    double passes = 1;               ///< the part of what arrives
    std::vector<FlowIndex> flows{};  ///< known ones that are under way over it
    double excess = 0;               ///< what arrived for what it sends, when these were found:
    std::map<FlowIndex, double> weights{};  ///< empty: all are equal
  };
  struct Sender {
    double messages = 0;  ///< 0: not known
    std::optional<Bytes> call{};
    bool active = false;
    Bytes amount{};  ///< of a call
    StepTime start{};
    double sharing = 1;                 ///< messages on its NIC that has most of them
    std::array<double, levels> left{};  ///< of what it sends, at each level
  };

  [[nodiscard]] Port port_of(FabricLink link) const;
  [[nodiscard]] bool known(LinkIndex link) const {
    return link < ports_.size() && ports_[link].level != levels;
  }
  [[nodiscard]] double messages_at(FlowIndex flow, const MaxMin::Edge& edge) const;
  [[nodiscard]] double arriving(FlowIndex flow, const Port& port, const MaxMin::Edge& edge) const;
  [[nodiscard]] double arriving(LinkIndex link) const;
  [[nodiscard]] const MaxMin::Edge& edge_of(FlowIndex flow, LinkIndex link) const;
  void find_sharing(FlowIndex flow);
  void pass_on(FlowIndex flow, Level level);
  void spread(std::span<const FlowIndex> flows);
  [[nodiscard]] std::vector<PortMessage> messages_of(LinkIndex link) const;
  [[nodiscard]] DcqcnUse use_of(LinkIndex link);
  void set_use(LinkIndex link, double use);
  void weigh(LinkIndex link, const DcqcnUse& use);
  [[nodiscard]] double weight_of(FlowIndex flow) const;

  const Fabric* fabric_;
  FlowNetwork& network_;
  double efficiency_;
  DcqcnTuning tuning_;
  std::vector<Port> ports_;  ///< by link of the network
  std::vector<Sender> senders_;
  StepTime now_;
  std::vector<FlowIndex> started_;  ///< since the last change
  std::vector<LinkIndex> freed_;    ///< cut links that a flow has left since then
  std::map<std::vector<double>, DcqcnUse> uses_;
};

}  // namespace lockstep
