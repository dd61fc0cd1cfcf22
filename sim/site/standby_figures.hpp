/// What batteries and generators of a path can stand in for, by closed forms.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "models/base/units.hpp"
#include "sim/site/site_plan.hpp"

namespace lockstep {

/// Losses of every unit that brings power from outside.
struct Blackouts {
  double per_year = 0;
  Seconds lasts;         ///< mean, exponential
  double uncovered = 0;  ///< of them, that outlast what stands in
  double without = 0;    ///< of their time, in which nothing stands in
};

struct StandbyFigures {
  Joules stored;      ///< of all batteries, full
  Seconds bridge;     ///< while they carry all machines alone; infinity: no machine needs them
  Watts generators;   ///< all units; 0: none, or no limit
  double starts = 0;  ///< how likely enough generators start to carry all machines
  /// Of the one bank that is fed from outside and fails; none where there are several, which are
  /// not lost together, or where it never fails.
  std::optional<Blackouts> blackouts{};
};

/// None: the path has neither batteries nor generators. Of a generator's units that are broken the
/// machine repair model says how many (units_down()); banks of generators that differ start each on
/// their own, and all of them have to.
///
///     lasts = repair / min(units, crews),   per year = P(all down) / lasts
std::optional<StandbyFigures> standby_figures(const SitePlan& plan);

/// Index of the one bank that brings power from outside, generators left out; none: there are
/// several, or none.
std::optional<std::size_t> only_bank_outside(std::span<const PowerPart> path);

}  // namespace lockstep
