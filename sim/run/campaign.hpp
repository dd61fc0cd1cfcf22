/// A training run of days to months, as numbers: what fails and how often, what a checkpoint costs,
/// how long each part of a recovery takes. Nothing here knows where the numbers come from.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/checkpoint_rule_extension.hpp"
#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

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
  /// From a moment to the next one, where the rule of an extension says it; empty: the interval.
  std::function<Seconds(const CheckpointCall& call)> rule{};
};

/// What the site lets the job have, up to a moment.
struct SitePace {
  RunTime until = INT64_MAX;
  double speed = 1;     ///< of the speed that it has otherwise; 0: it pauses
  double machines = 1;  ///< what speed would be if only machines that are not there yet slowed it
  bool down = false;    ///< no power for its nodes
  bool abrupt = false;  ///< it went without a warning: what was not saved is lost
  /// What a stop of the job saves, it can have afterwards: the pace is asked for after each.
  bool gives_back = false;
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

/// Time in which the job stood still: detection, diagnosis, restart or repair_wait.
struct RunStop {
  RunTime begin, end;
  RunBucket bucket;
};
constexpr bool stands_still(RunBucket bucket) { return bucket >= RunBucket::detection; }

/// The pace from a moment on, with the run's stops until then; asked with rising times. `stops` are
/// empty before a pace has said gives_back.
using PaceLaw = std::function<SitePace(RunTime now, std::span<const RunStop> stops)>;

/// From a moment of the run on: the share of its nodes that are there.
struct NodesThere {
  RunTime from = 0;
  double share = 1;
};

/// A run that is not done after so many times its work is given up.
constexpr int kGivenUpAfter = 100;

struct Campaign {
  int nodes = 1;
  int nodes_per_replica = 1;
  int replicas_per_node = 1;  ///< where a node holds several; else 1
  Seconds work{};             ///< time of all steps if nothing ever goes wrong
  /// The run ends then at the latest; 0: when its work is done, or it is given up.
  RunTime horizon = 0;
  std::vector<FailureMode> modes;
  /// Rising in time; empty: all nodes, from the start. Modes that say themselves when their
  /// components are there go by that; of the others only what is there fails.
  std::vector<NodesThere> nodes_there;
  /// Instead of drawing failures of the modes: these, rising in time.
  std::vector<LoggedFailure> log;
  /// Nodes that a failure of each scope takes down.
  std::array<int, kFailureScopes> scope_nodes{0, 1, 1, 1, 1};
  std::vector<CheckpointTier> tiers;  ///< none: every failure starts from nothing
  Seconds step{};  ///< checkpoints hold whole steps: no interval that is advised is shorter
  RecoverySpec recovery;
  SpareSpec spares;
  /// Speed over full speed with 0, 1, 2, ... replicas missing; with more than that the job waits.
  std::vector<double> width_speed{1.0};
  std::uint64_t seed = 1;
  /// The pace of a trajectory, by its number; empty: the site gives all that the job wants.
  std::function<PaceLaw(std::uint32_t trajectory)> pace;
};

}  // namespace lockstep
