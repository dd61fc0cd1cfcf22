/// A training run of days to months, as numbers: what fails and how often, what a checkpoint costs,
/// how long each part of a recovery takes. Nothing here knows where the numbers come from.
///
/// Times are whole nanoseconds (292 years fit), so that every book balances exactly and every
/// machine gives the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/units.hpp"

namespace lockstep {

/// Nanoseconds since the run began, or how many of them something takes.
using RunTime = std::int64_t;

constexpr double kRunTicksPerSecond = 1e9;
/// Rounded to the nearest nanosecond. Requires at most 9e9 seconds.
constexpr RunTime to_run_time(Seconds s) {
  return static_cast<RunTime>(s.base_units() * kRunTicksPerSecond +
                              (s.base_units() < 0 ? -0.5 : 0.5));
}
constexpr Seconds to_seconds(RunTime t) {
  return Seconds{static_cast<double>(t) / kRunTicksPerSecond};
}

/// What a failure does to the job.
enum class FailureEffect : std::uint8_t {
  crash,     ///< the job stops at once
  hang,      ///< the job stands still until a watchdog's time-out
  slow,      ///< a straggler: every step is slower until the node is evicted
  silent,    ///< wrong numbers until somebody finds out; what was trained since is thrown away
  planned,   ///< maintenance: the job saves first, then stops
  degraded,  ///< every step is slower until the part is mended under the running job
};

/// What goes down together, and comes back together.
enum class FailureScope : std::uint8_t {
  process,  ///< nothing but the job: software
  node,
  rack,
  switch_nodes,  ///< the nodes of a leaf switch
  feed,          ///< the racks of a power feed
};
constexpr int kFailureScopes = 5;

/// A way to fail.
struct FailureMode {
  std::string name;
  FailureEffect effect = FailureEffect::crash;
  FailureScope scope = FailureScope::node;
  std::uint32_t components = 1;  ///< of the job, each of which fails by itself
  /// Of one component: mean time between failures.
  Seconds mean_time{1e9};
  /// Weibull: below 1 most failures come early (infant mortality), above 1 late; 1: exponential.
  double shape = 1;
  /// How likely hardware has to be replaced; else a restart on the same nodes is enough.
  double replaced = 1;
  double slowdown = 1;    ///< slow, degraded: time of a step over a healthy one's
  Seconds found_after{};  ///< slow, silent: mean time until somebody notices
  Seconds lasts{};        ///< degraded: mean time until it is mended
  /// Whether the job ever stands still for it.
  [[nodiscard]] bool stops_job() const { return effect != FailureEffect::degraded; }
};

/// Where checkpoints of one kind go.
struct CheckpointTier {
  std::string name;
  Seconds interval{600};      ///< from one to the next while the job runs
  Seconds blocks{};           ///< the job waits that long
  Seconds finishes{};         ///< after that, until it can be restored
  double drag = 0;            ///< share of the job's speed that it takes while it finishes
  Seconds restores{};         ///< reading it back
  bool survives_node = true;  ///< a node that is lost; process failures leave all tiers
  bool survives_rack = true;  ///< a rack, a switch or a power feed
  double corrupt = 0;         ///< how likely it turns out to be unreadable
};

/// How a job gets going again.
struct RecoverySpec {
  Seconds detects_crash{};
  Seconds detects_hang{};
  Seconds diagnoses{};
  double misdiagnosed = 0;  ///< how likely the bad node stays in, and fails again after the restart
  Seconds restarts{};       ///< scheduler, processes, communicators, warm-up: without reading
};

/// Nodes that wait to take a broken one's place, and the way back of a broken one.
struct SpareSpec {
  int hot = 0;   ///< idle, healthy, at hand
  int warm = 0;  ///< in other use: taking one costs `warm_takes`
  Seconds warm_takes{};
  Seconds repair{86'400};  ///< mean; exponential
  int crews = 0;           ///< that repair one node each at a time; 0: as many as needed
};

/// A failure that is not drawn but known: it comes out of a log.
struct LoggedFailure {
  RunTime at = 0;
  std::uint32_t mode = 0;
};

struct Campaign {
  int nodes = 1;
  int nodes_per_replica = 1;
  int replicas_per_node = 1;  ///< where a node holds several; else 1
  Seconds work{};             ///< time of all steps if nothing ever goes wrong
  /// The run ends then at the latest; 0: when its work is done, or at a hundred times that.
  RunTime horizon = 0;
  std::vector<FailureMode> modes;
  /// Instead of drawing failures of the modes: these, rising in time.
  std::vector<LoggedFailure> log;
  /// Nodes that a failure of each scope takes down.
  std::array<int, kFailureScopes> scope_nodes{0, 1, 1, 1, 1};
  std::vector<CheckpointTier> tiers;  ///< none: every failure starts from nothing
  RecoverySpec recovery;
  SpareSpec spares;
  /// Speed over full speed with 0, 1, 2, ... replicas missing; with more than that the job waits.
  std::vector<double> width_speed{1.0};
  std::uint64_t seed = 1;
};

/// Where wall time goes; the sum of all is the wall time, to the nanosecond.
enum class RunBucket : std::uint8_t {
  productive,  ///< advances training at full speed
  degraded,    ///< what the same work took longer than that: stragglers, slow parts of the
               ///< network, missing replicas
  checkpoint,  ///< waiting for checkpoints
  lost,        ///< work that had to be done again, with its checkpoints
  detection,
  diagnosis,
  restart,      ///< processes, communicators, reading the checkpoint
  repair_wait,  ///< no node to go on with
};
constexpr int kRunBuckets = 8;

}  // namespace lockstep
