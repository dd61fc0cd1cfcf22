/// The links of a step and the flows over them: pipeline messages, gradient and parameter collectives,
/// tensor-parallel transfers that share links with these.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabric.hpp"
#include "topologies/placement.hpp"

namespace lockstep {

/// Data-parallel replicas that do the same at the same time; simulated once.
struct ReplicaClass {
  int representative = 0;
  int copies = 1;
  std::vector<double> slowdown;  ///< of each stage's tensor-parallel group; empty: all 1
};

constexpr FlowIndex kNoFlow = std::numeric_limits<FlowIndex>::max();

/// Flows of one actor: a stage of a replica class.
struct ActorWires {
  std::array<FlowIndex, 2> message{kNoFlow, kNoFlow};  ///< by Pass: to the next, to the previous stage
  std::array<StepTime, 2> message_latency{};
  FlowIndex tensor = kNoFlow;
};

/// One lane (tensor-parallel rank) stands for its group where routes are symmetric: the others load
/// like links in the same way, and what they add to shared links is counted. A folded class counts
/// what its copies add to the links that its representative crosses. Under ECMP every lane is routed.
class Wiring {
 public:
  Wiring(const Scenario& scenario, const StepPlan& plan, const std::vector<ReplicaClass>& classes);

  FlowNetwork& network() { return network_; }
  [[nodiscard]] const ActorWires& actor(std::size_t index) const { return actors_[index]; }
  /// Flow of a stage's data-parallel channel.
  [[nodiscard]] FlowIndex data(std::size_t stage, std::size_t channel) const {
    return data_[stage][channel];
  }
  /// Bytes of progress of a flow per byte of a collective's payload.
  [[nodiscard]] static double data_unit(const CollectiveCost& cost);
  [[nodiscard]] FlowIndex embedding(std::size_t replica_class) const { return embedding_[replica_class]; }
  /// False where folding had to approximate: hashed paths differ between copies.
  [[nodiscard]] bool exact() const { return exact_; }

 private:
  struct Edges;

  [[nodiscard]] RankCoordinates lane(int data, int stage, int tensor) const {
    return {.tensor = tensor, .data = data, .pipeline = stage};
  }
  LinkIndex fabric_link(FabricLink link);
  LinkIndex port(std::size_t actor, int direction);
  LinkIndex rate_limit(double bytes_per_second);
  void hops(const RankCoordinates& from, const RankCoordinates& to);
  /// Adds what all lanes of a message put on links; returns whether they cross a link known before.
  bool add_lanes(int from_data, int from_stage, int to_data, int to_stage, bool only_known,
                 double bytes, Edges& edges);

  void wire_messages();
  void wire_message(std::size_t actor, int data, int stage, int next, Pass pass, bool folded);
  void wire_tensor();
  void wire_data();
  Edges ring_edges(int stage, int per_domain);
  void add_folded_ring(int stage, int per_domain, int representative, Edges& ring);
  FlowIndex wire_data_channel(std::size_t stage, const GroupSpread& spread, const Edges& ring,
                              const DataChannel& channel);
  void wire_embedding();

  const Scenario& scenario_;
  const StepPlan& plan_;
  const std::vector<ReplicaClass>& classes_;
  Placement placement_;
  Fabric fabric_;
  FlowNetwork network_;
  bool symmetric_;
  bool exact_ = true;
  std::vector<LinkIndex> fabric_links_;
  std::vector<std::array<LinkIndex, 2>> ports_;
  std::vector<LinkIndex> pairs_;  ///< pace between a stage and the next, when they send in turn
  std::vector<ActorWires> actors_;
  std::vector<std::vector<FlowIndex>> data_;
  std::vector<FlowIndex> embedding_;
  std::vector<RouteHop> hops_;
};

}  // namespace lockstep
