/// A run of weeks looked at from inside: trajectory by trajectory, to the nanosecond.
#pragma once

#include <cstdint>

#include "sim/laws/law.hpp"
#include "sim/run/campaign.hpp"
#include "sim/run/run_work.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {

/// The run's campaign at the pace that its site lets it have.
Campaign sited_campaign(const RunWork& work, const RunSpec& run);

/// Of a trajectory: every nanosecond is in one bucket and in one phase, every failure that was
/// drawn is met, and what interruptions cost is what recovery was booked as.
void hold_books(const Campaign& campaign, std::uint32_t number, LawBook& book);

/// Fewer failures, faster storage, recovery and repair, and more spares lose no goodput, nor does
/// more power from the grid or the battery, cooler air, or a plant and a path that fail less; of
/// that many trajectories each, which draw the same numbers.
void hold_better_runs(const RunWork& work, const RunSpec& run, std::uint32_t trajectories,
                      LawBook& book);

}  // namespace lockstep
