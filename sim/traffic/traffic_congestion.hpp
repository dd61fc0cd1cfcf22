/// Watches a traffic simulation for a congestion report: how full its links are and when, how much
/// slower every demand is than with its links to itself, and because of which link and demand.
#pragma once

#include "sim/congestion/recorder.hpp"
#include "sim/traffic/simulate_traffic.hpp"

namespace lockstep {

/// A job of the report is an entry of the scenario; a transfer is a demand: the messages of one
/// sender to one receiver or, where its receiver changes from round to round, of one sender.
class TrafficCongestion {
 public:
  /// Sees everything if it is there before run(). `simulation` has a network of its own, outlives
  /// this and stays where it is.
  explicit TrafficCongestion(TrafficSimulation& simulation);

  /// After run(); `totals` are of the same simulation, with times alone if its jobs shall have
  /// them.
  [[nodiscard]] CongestionReport report(const TrafficReport& totals,
                                        const CongestionLimits& limits = {}) const;

 private:
  void add(const Demand& demand);

  TrafficSimulation& simulation_;
  CongestionRecorder recorder_;
  LinkIndex links_ = 0;  ///< that the recorder knows
};

}  // namespace lockstep
