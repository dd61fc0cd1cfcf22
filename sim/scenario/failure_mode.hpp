/// The ways in which a training run of days to months can fail, and how it goes on.
///
/// Times are whole nanoseconds (292 years fit), so that every book balances exactly and every
/// machine gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"

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
/// Components that come late, or go early.
struct Presence {
  std::uint32_t components = 1;
  RunTime from = 0, until = 0;  ///< since the run began; `until` is no part of it
};

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
  /// Somebody takes the node away, and another in its place comes after that mean time (drawn from
  /// an exponential law): it cannot be taken again before. 0: no such thing, it is repaired.
  Seconds away{};
  /// Which components are there when; they sum to `components`. Empty: all, for the whole run.
  std::vector<Presence> there{};
  /// Whether the job ever stands still for it.
  [[nodiscard]] bool stops_job() const { return effect != FailureEffect::degraded; }
};

/// A failure that is not drawn but known: it comes out of a log.
struct LoggedFailure {
  RunTime at = 0;
  std::uint32_t mode = 0;
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

}  // namespace lockstep
