/// The fabric links that a transfer between two places of a pipeline crosses: one lane for each
/// tensor-parallel rank.
#pragma once

#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabric.hpp"
#include "topologies/placement.hpp"

namespace lockstep {

/// A stage of a replica.
struct Place {
  int data = 0;
  int stage = 0;
};

/// Where routes are symmetric lane 0 stands for its group: the others load like links in the same
/// way, and what they add to links of lane 0 is counted. Under ECMP every lane is routed.
class Lanes {
 public:
  Lanes(const Scenario& scenario, const StepPlan& plan);

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] bool symmetric() const { return symmetric_; }
  [[nodiscard]] int rank(Place at) const {
    return placement_.rank({.tensor = 0, .data = at.data, .pipeline = at.stage});
  }

  /// Adds to `uses` what all lanes put on links for each byte that one lane sends, times `bytes`;
  /// when `only_known`, only on links that are among `uses` already.
  void add(Place from, Place to, bool only_known, double bytes, std::vector<RouteHop>& uses);
  /// Adds a stage's tensor-parallel transfers through the NIC of its lane 0.
  void add_tensor(Place at, std::vector<RouteHop>& uses) const;
  /// Adds the ring between the NVLink domains of a stage's replicas, as far as `replica` sends.
  void add_ring(int replica, int stage, int per_domain, std::vector<RouteHop>& uses);

 private:
  const StepPlan& plan_;
  Placement placement_;
  Fabric fabric_;
  bool symmetric_;
  std::vector<RouteHop> hops_;
};

}  // namespace lockstep
