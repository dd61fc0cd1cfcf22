/// One run from its first step to its last, with what fails on the way drawn at random.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/run/campaign.hpp"

namespace lockstep {

/// Something that happened to the job.
struct RunEvent {
  RunTime at = 0;
  std::uint32_t mode = 0;  ///< into Campaign::modes
  RunTime cost = 0;        ///< wall time until it trained on from where it had been
};

/// From `begin` until the next phase begins.
struct RunPhase {
  RunTime begin = 0;
  RunBucket bucket = RunBucket::productive;
};

struct TrajectoryResult {
  RunTime wall = 0;
  RunTime work = 0;  ///< done, of Campaign::work
  std::array<RunTime, kRunBuckets> buckets{};
  std::vector<std::uint32_t> failures;  ///< by mode
  std::vector<RunTime> cost;            ///< by mode: recovery and work done again
  std::uint32_t interruptions = 0;      ///< times that the job stopped
  std::uint32_t checkpoints = 0;
  std::uint32_t fallbacks = 0;   ///< checkpoints that were unreadable or corrupt when needed
  std::uint32_t site_stops = 0;  ///< of the interruptions: times that the site gave no power
  RunTime site_stopped = 0;      ///< that they cost: until it trained on from where it had been
  RunTime site_slowed = 0;       ///< by how much the site's pace slowed or paused the job
  RunTime machines_missing = 0;  ///< and by how much machines that are not there did
  /// Where asked for. Phases begin at 0 and rise; with the wall time they add up to the buckets.
  std::vector<RunEvent> events;
  std::vector<RunPhase> phases;
};

/// Phase by phase, or sums alone.
enum class RunDetail : std::uint8_t { sums, timeline };

/// Asked now and then during a long trajectory, with the share of its work that is done, which a
/// failure can set back. False ends it there, and its result means nothing.
using TrajectoryWatch = std::function<bool(double share)>;

/// Trajectory number `number` of the campaign: a function of (seed, number) alone.
TrajectoryResult run_trajectory(const Campaign& campaign, std::uint32_t number,
                                RunDetail detail = RunDetail::sums,
                                const TrajectoryWatch& watch = {});

}  // namespace lockstep
