/// What a sweep's points are compared by.
#pragma once

#include <string>

#include "sim/search/sweep/sweep.hpp"

namespace lockstep {

struct SweepObjective {
  std::string column;
  bool larger_is_better = true;
};

/// Of "NAME", "NAME:max" or "NAME:min"; empty: the sweep's own, else its kind's. `origin` is where
/// it was written, for messages. Throws InputError for a name that is no metric, axis or derived
/// value, and where nobody says which way is better.
SweepObjective read_objective(const Sweep& sweep, const std::string& text,
                              const std::string& origin);

}  // namespace lockstep
