/// Steps of trainings on the nodes that they have, with replicas that are alike simulated once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scenario/queue_spec.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A training and its nodes.
struct PlacedTraining {
  std::int32_t training = 0;
  std::vector<int> nodes;
};

/// What a training sends over a link between switches when it is alone: at most at once, and in a
/// step.
struct LinkUse {
  FabricLink link = 0;
  BytesPerSecond peak;
  Bytes bytes;
};

struct LoneStep {
  Seconds step;
  std::vector<LinkUse> uses;  ///< by the numbers of links
};

/// Where what several jobs ever send over a link at once fits on it, all of them go on as they do
/// alone: their rates are those of max-min fairness together, too. So jobs need be simulated
/// together only where they meet on links that could fill; and of each, replicas that are alike on
/// these links and on its own are simulated once, which is exact (replica_classes.hpp).
class FoldedSteps {
 public:
  /// Whether that holds of a queue's trainings: not where flows take from each other on links that
  /// are not full (the start of DCQCN), nor where switches sum, which not all nodes let them.
  [[nodiscard]] static bool can_fold(const QueueSpec& spec);

  /// `spec` outlives this. Requires can_fold().
  explicit FoldedSteps(const QueueSpec& spec);

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  /// What a link carries of flows' bytes.
  [[nodiscard]] BytesPerSecond capacity(FabricLink link) const;

  [[nodiscard]] LoneStep alone(const PlacedTraining& of) const;
  /// Mean steps of trainings that begin together, each of which does three at least. `shared` are
  /// all links between switches on which they meet and that could fill, by their numbers.
  [[nodiscard]] std::vector<Seconds> together(std::span<const PlacedTraining> placed,
                                              std::span<const FabricLink> shared) const;

 private:
  const QueueSpec* spec_;
  Fabric fabric_;
  std::vector<StepPlan> plans_;  ///< by training
};

}  // namespace lockstep
