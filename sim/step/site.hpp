/// Where a job sits: on which nodes of a fabric, and on which network its transfers run. Several
/// jobs may share both.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/scenario/scenario.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// The links of a fabric as a network has them, each added when somebody first needs it.
class FabricLinks {
 public:
  static constexpr LinkIndex kNoLink = std::numeric_limits<LinkIndex>::max();

  /// Both outlive this. Flows are payload, so every link, of a NIC or between switches, has the
  /// share `efficiency` of its line rate (payload_bandwidth()). `left` is the part of its rate that
  /// each link still has, by FabricLink; empty: all of it.
  FabricLinks(const Fabric& fabric, FlowNetwork& network, double efficiency = 1,
              std::vector<double> left = {})
      : fabric_(fabric),
        network_(network),
        efficiency_(efficiency),
        left_(std::move(left)),
        index_(fabric.link_count(), kNoLink) {}

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  [[nodiscard]] FlowNetwork& network() { return network_; }
  [[nodiscard]] double efficiency() const { return efficiency_; }
  /// Nothing passes until the fabric has found another way.
  [[nodiscard]] bool dead(FabricLink link) const { return !left_.empty() && left_[link] <= 0; }
  [[nodiscard]] BytesPerSecond capacity(FabricLink link) const {
    const double left = left_.empty() ? 1.0 : left_[link];
    return payload_bandwidth(left * fabric_.capacity(link), efficiency_);
  }
  /// Requires !dead(link).
  LinkIndex operator[](FabricLink link) {
    LinkIndex& index = index_[link];
    if (index == kNoLink) index = network_.add_link(capacity(link));
    return index;
  }
  /// kNoLink where nobody has needed the link.
  [[nodiscard]] const std::vector<LinkIndex>& known() const { return index_; }

 private:
  const Fabric& fabric_;
  FlowNetwork& network_;
  double efficiency_;
  std::vector<double> left_;
  std::vector<LinkIndex> index_;
};

class DataRoutes;
struct StepPlan;

/// The fabric that the scenario gives its cluster; its NICs are those of the fastest pool.
Fabric own_fabric(const Scenario& scenario, const StepPlan& plan);

/// What slower NICs leave of each link's capacity in a fabric with those of the fastest pool, by
/// FabricLink; empty: all of it. Pools fill its nodes one after the other. Links of a drawing that
/// came from a file say themselves what they carry.
std::vector<double> nic_shares(std::span<const NodePool> pools, const Fabric& fabric);
/// In own_fabric().
inline std::vector<double> nic_shares(const Scenario& scenario, const Fabric& fabric) {
  return nic_shares(scenario.pools, fabric);
}

struct Site {
  FabricLinks* links = nullptr;
  std::vector<int> nodes;  ///< of the fabric, by node of the job; empty: the same
  /// Of the job on these nodes of this fabric, if anybody asked before; null: found when wired.
  DataRoutes* data_routes = nullptr;
};

}  // namespace lockstep
