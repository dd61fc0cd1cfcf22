/// How often a site holds nothing back, by closed forms.
#pragma once

#include <cstddef>
#include <optional>

#include "sim/site/site_plan.hpp"

namespace lockstep {

/// Shares of the time, 0 to 1; none for what the site does not have.
struct SiteAvailability {
  std::optional<double> path;  ///< also none where it has too many states to try them all
  /// The path with its batteries and generators; none without them, and where standby_figures() do
  /// not know its blackouts.
  std::optional<double> path_with_standby;
  std::optional<double> cooling;           ///< mean of the hours
  std::optional<double> grid;              ///< of the hours
  std::optional<double> all;               ///< of the time, in which none of them binds
  std::optional<double> all_with_standby;  ///< the same with path_with_standby
};

/// Of the run's first `hours`, with all machines that are there at full pace, units long after
/// their start:
///
///     path     sum of p(state) over the states of its units in which each node of the job, and no
///              fewer than it has, gets what it draws; p by units_down(), banks on their own;
///              generators and batteries stand by and do not count
///     cooling  mean over the hours of P(coolant lets cards draw what the job wants), over the
///     units
///              of the plant and of its loop that are down: the lowest cap of the pace table with
///              which a step is as fast as without one, by power_share_at()
///     grid     hours in which its limit, sun, wind and the battery, which is charged and emptied
///              as in a run that never stands, cover what the site draws
///     all      path x mean over the hours of (cooling x grid)
///     path_with_standby
///              path + sum of p(state) over the states in which all units that bring power from
///              outside are down, and the others would bring all, x (1 - without), by
///              Blackouts::without; all other states in which the path brings too little count as
///              ones that nothing stands in for: it is a lower bound where they can be covered
///
/// States less likely than 1e-12 count as ones that bind.
SiteAvailability site_availability(const SitePlan& plan, std::size_t hours);

}  // namespace lockstep
