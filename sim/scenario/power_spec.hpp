/// What a scenario says about power and money.
#pragma once

#include <optional>

#include "models/base/units.hpp"
#include "models/power/cost.hpp"
#include "models/spec/specs.hpp"

namespace lockstep {

/// What evens out the swing of a step, per GPU; nothing by default.
struct SmoothingSpec {
  Watts floor;       ///< the card burns up to that much while the job runs
  Joules capacitor;  ///< energy storage in the supply
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
