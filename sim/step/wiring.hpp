/// The links of a step and the flows over them: pipeline messages, gradient and parameter
/// collectives, and what ranks exchange inside layers where it leaves a node or shares NVLink.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/step/data_routes.hpp"
#include "sim/step/lanes.hpp"
#include "sim/step/layer_routes.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/site.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

class DcqcnStart;

constexpr FlowIndex kNoFlow = std::numeric_limits<FlowIndex>::max();

/// Flows of one actor: a stage of a replica class.
struct ActorWires {
  std::array<FlowIndex, 2> message{kNoFlow, kNoFlow};  ///< to the next, to the previous stage
  std::array<StepTime, 2> message_latency{};
  /// Of a message's transfer by itself the part that links slower than its NICs add.
  std::array<double, 2> slowed{};
  /// Of transfers inside layers, by Axis; those of experts belong to all actors of a block.
  std::array<FlowIndex, kAxes> layer{kNoFlow, kNoFlow, kNoFlow, kNoFlow};
};

/// What a flow is for.
struct WiredFlow {
  enum class Use : std::uint8_t { message, layer, data, exchange } use;
  /// message: 2 x actor + direction; layer: kAxes x actor (of a block the first) + axis; data:
  /// stage; exchange: replica class x exchanges of the plan + exchange
  std::uint32_t subject = 0;
  FlowIndex flow = kNoFlow;
  std::uint32_t channel = 0;  ///< data: of the stage
  std::uint32_t group = 0;    ///< data: of those that data_groups_of() tells apart
  bool on_fabric = false;     ///< crosses the fabric at all
  bool stalled = false;       ///< crosses a dead link
  double messages = 1;        ///< of a NIC; counted where congestion control slows the transport
};

/// Classes that exchange tokens with each other, as indices; one that does with nobody is alone.
std::vector<std::vector<std::size_t>> blocks_of(const std::vector<ReplicaClass>& classes);

/// Classes whose replicas are in one data-parallel group of the kind, or in groups that are alike:
/// each goes on by itself. As indices, in the order of first members.
std::vector<std::vector<std::size_t>> data_groups_of(const std::vector<ReplicaClass>& classes,
                                                     DataGroupKind kind);

/// A class of links is one link here; a folded class puts on it what its copies put on each.
class Wiring {
 public:
  /// Adds the job's flows to the network of the site, always in the same order. `links` belongs to
  /// `classes`: both come from classes_of_replicas(). `crowd`, by fabric link, is how many times
  /// what the flows of replicas put on it counts, because replicas that are not simulated share it;
  /// empty: once. All but `site` outlive this, as what it points to.
  Wiring(const Scenario& scenario, const StepPlan& plan, const std::vector<ReplicaClass>& classes,
         const Site& site, LinkClasses links = {}, std::vector<double> crowd = {});

  [[nodiscard]] FlowNetwork& network() const { return network_; }
  /// The flows, in the order in which they were made.
  [[nodiscard]] const std::vector<WiredFlow>& flows() const { return flows_; }
  /// True where a flow would cross a dead link: it waits for another way.
  [[nodiscard]] bool stalled(FlowIndex flow) const {
    return flow - first_ < flows_.size() && flows_[flow - first_].stalled;
  }
  [[nodiscard]] const ActorWires& actor(std::size_t index) const { return actors_[index]; }
  /// Flow of a group on a stage's data-parallel channel.
  [[nodiscard]] FlowIndex data(std::size_t stage, std::size_t channel, std::size_t group) const {
    return data_[stage][channel] + static_cast<FlowIndex>(group);
  }
  /// Bytes of progress of a flow per byte of a collective's payload.
  [[nodiscard]] static double data_unit(const CollectiveCost& cost);
  /// By replica class x exchanges of the plan + exchange.
  [[nodiscard]] FlowIndex exchange(std::size_t subject) const { return exchanges_[subject]; }
  /// The network's link that a fabric link is or stands for; FabricLinks::kNoLink where the job
  /// does not use it. Where routes are symmetric only links of tensor rank 0 are used.
  [[nodiscard]] LinkIndex known_link(FabricLink link) const;
  /// Tells it of the links and flows that cross the fabric.
  void tell(DcqcnStart& start) const;
  /// The process that takes the start of DCQCN off links, of this job alone; null where nothing
  /// slows its transport.
  [[nodiscard]] std::unique_ptr<DcqcnStart> dcqcn_start() const;
  /// Whether links slower than NICs are on any message's way.
  [[nodiscard]] bool slows_messages() const { return slows_messages_; }
  /// False where folding had to approximate: hashed paths differ between copies.
  [[nodiscard]] bool exact() const { return exact_; }

 private:
  struct Edges;

  LinkIndex fabric_link(FabricLink link);
  FlowIndex add_flow(const Edges& edges, WiredFlow::Use use, std::size_t subject,
                     std::size_t channel = 0, std::size_t group = 0);
  [[nodiscard]] const StagePlan& plan_of(std::size_t actor) const;
  LinkIndex port(std::size_t actor, int direction);
  LinkIndex rate_limit(double bytes_per_second);
  [[nodiscard]] bool counts_messages() const {
    return scenario_.transport.congestion_control != CongestionControl::none;
  }
  /// Messages of two that send to each other over so many connections.
  [[nodiscard]] double messages_over(int connections) const;
  /// Whether copies of a class are alike in what they put on links.
  [[nodiscard]] bool alike() const { return lanes_.comparable() || !link_classes_.of.empty(); }
  /// Adds what `copies` replicas like one with these uses put on links.
  void add_uses(const std::vector<RouteHop>& uses, double copies, Edges& edges);

  void wire_messages();
  void wire_message(std::size_t actor, int data, int stage, int next, int direction, int copies);
  /// Of the time of a transfer at `pace` over these links what the slowest of them adds to it.
  [[nodiscard]] double slowed_part(const std::vector<RouteHop>& uses, BytesPerSecond pace) const;
  void wire_layers();
  void wire_layer(const std::vector<std::size_t>& actors, Axis axis);
  void wire_data(DataRoutes& routes);
  Edges data_edges(const StagePlan& stage, const DataWay& way,
                   const std::vector<std::size_t>& classes, DataRoutes& routes);
  void add_hashed_ring(int stage, const DataGroup& group, int representative,
                       std::vector<RouteHop>& ring);
  FlowIndex wire_data_channel(std::size_t stage, std::size_t number, std::size_t group,
                              const std::vector<std::size_t>& classes, const Edges& way);
  void wire_exchanges();

  const Scenario& scenario_;
  const StepPlan& plan_;
  const std::vector<ReplicaClass>& classes_;
  LinkClasses link_classes_;
  std::vector<double> crowd_;
  Lanes lanes_;
  LayerRoutes layers_;
  FabricLinks& links_;
  FlowNetwork& network_;
  bool exact_ = true;
  bool slows_messages_ = false;
  std::vector<LinkIndex> class_links_;  ///< by class of links
  FlowIndex first_ = kNoFlow;
  std::vector<WiredFlow> flows_;
  std::vector<std::array<LinkIndex, 2>> ports_;
  std::vector<LinkIndex> pairs_;  ///< pace between a stage and the next, when they send in turn
  std::vector<ActorWires> actors_;
  std::vector<std::vector<FlowIndex>> data_;  ///< by stage and channel: of its first group
  std::vector<double> share_;                 ///< by link; all 0 between calls
  std::vector<FlowIndex> exchanges_;
};

}  // namespace lockstep
