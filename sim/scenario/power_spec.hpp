/// What a scenario says about power and money.
#pragma once

#include <optional>

#include "models/base/units.hpp"
#include "models/power/cost.hpp"
#include "models/spec/specs.hpp"

namespace lockstep {

/// Replicas of a job that begin their step one group after the other, so that the site's power
/// rises and falls in stairs.
struct StaggerSpec {
  Seconds over;    ///< from the first group's begin to the last one's; 0: all begin at once
  int groups = 1;  ///< of replicas, as even as they can be
};

/// What evens out the swing of a step; nothing by default.
struct SmoothingSpec {
  Watts floor;       ///< the card burns up to that much while the job runs
  Joules capacitor;  ///< energy storage in the supply, per GPU
  /// By which a card's power changes at the most, up and down; 0: it follows at once.
  double ramp_w_per_s = 0;
  StaggerSpec stagger{};
};

struct PowerSpec {
  std::optional<Watts> cap;  ///< of each GPU, instead of its limit
  Watts gpu_nameplate;       ///< the card's own limit, by its datasheet
  FacilitySpec facility;
  double outside_celsius = 20;
  Seconds meter{2};          ///< averaging time of the meter whose readings are reported
  Seconds ramp_window{0.1};  ///< ramp rates are differences over that time
  SmoothingSpec smoothing;
  std::optional<Watts> site_limit;
  CostSpec cost;
};

}  // namespace lockstep
