/// What a job does and draws when its cards are held below their limit.
#pragma once

#include <optional>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// A step with every card capped at a share of its limit.
struct PacePoint {
  double share = 1;  ///< of each card's limit
  double speed = 1;  ///< of the job at its own limit
  Watts it;          ///< all machines while they train: facility power over PUE
};

/// Points between which speed and power run straight; shares fall from 1 to the lowest that the
/// cards can keep. Requires power that never grows as the share falls.
class PaceTable {
 public:
  explicit PaceTable(std::vector<PacePoint> points);

  [[nodiscard]] const std::vector<PacePoint>& points() const { return points_; }
  [[nodiscard]] PacePoint full() const { return points_.front(); }
  [[nodiscard]] PacePoint lowest() const { return points_.back(); }
  /// Requires lowest().share <= share <= 1.
  [[nodiscard]] PacePoint at(double share) const;
  /// The fastest that draws no more; nothing where even the lowest does.
  [[nodiscard]] std::optional<PacePoint> under(Watts it) const;

 private:
  std::vector<PacePoint> points_;
};

/// Simulates a step at each of some shares: the clock falls as models/power/gpu_power.hpp has it.
/// Requires scenario.power.
PaceTable pace_table(const Scenario& scenario);

}  // namespace lockstep
