/// What held a step's transfers to their rates: for each kind of traffic the links that were full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/core/flow_network.hpp"
#include "sim/step/step_report.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

/// Watches a replay. Time counts once for each flow that moves, in the order of traffic_kind().
class LinkHolds : public FlowObserver {
 public:
  /// Sees the flows of this wiring alone; all must outlive this. `over_time`: for rates().
  LinkHolds(const Wiring& wiring, const Fabric& fabric, bool over_time);

  void started(FlowIndex, Bytes, StepTime) override {}
  void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
             LinkIndex held_by) override;
  void ended(FlowIndex, StepTime) override {}

  /// Kinds of traffic that crossed the fabric, each with its classes of links, longest first.
  [[nodiscard]] std::vector<TrafficHold> report() const;
  /// What each kind moved over each class of links, most first.
  [[nodiscard]] std::vector<TrafficBytes> bytes() const;
  /// What each class of links carried over time; classes that carried nothing are left out.
  [[nodiscard]] std::vector<LinkRates> rates() const;

 private:
  static constexpr std::size_t kKinds = 6;

  const FlowNetwork& network_;
  std::vector<std::size_t> kind_of_;   ///< by flow; kKinds: none of the wiring's
  std::vector<std::size_t> class_of_;  ///< by link; 0: a pace of the flow's own
  std::vector<std::string> classes_;
  std::array<std::vector<double>, kKinds> seconds_, bytes_;  ///< by kind and class
  bool over_time_;
  std::vector<BytesPerSecond> capacity_;                ///< by class
  std::vector<std::map<std::uint64_t, double>> steps_;  ///< by class: changes of its rate, by time
};

}  // namespace lockstep
