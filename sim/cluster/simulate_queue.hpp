/// Simulates a cluster with a queue of jobs under a scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/cluster/node_upkeep.hpp"
#include "sim/cluster/queue_state.hpp"
#include "sim/cluster/wait_watch.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// What became of a job. Times below 0: it never came to that.
struct JobOutcome {
  RunTime start = -1;  ///< the first
  RunTime end = -1;
  RunTime waited = 0;  ///< in which it held nothing, from submission to its end or to the queue's
  bool waits = false;  ///< at the end of what was simulated: it waits for longer than that
  RunTime slowed = 0;  ///< held, beyond what its work takes at its reference pace
  std::int32_t evictions = 0;
  std::int32_t resizes = 0;               ///< changes of its width
  std::optional<GpuTime> elastic_held{};  ///< of a job of several widths
  std::int32_t failures = 0;
  RunTime cancelled = -1;  ///< refused, preempted for good, or its dependency cannot be met
  bool stopped = false;    ///< before its work was done, for its reservation was over
  RunTime suspended = 0;   ///< all times in which it was
  std::int32_t suspensions = 0;
  bool is_suspended = false;  ///< at the end of what was simulated
  RunTime most_done = 0;      ///< of its work, at any time: before some of it was lost, too
  RunTime submitted = -1;     ///< beside campaigns, whose later rungs are submitted when others end
  std::optional<GpuTime> rented{};  ///< held on rented nodes; nothing: it did not burst
};

/// Means over equal bins of time.
struct QueueSeries {
  double bin_s = 0;
  std::vector<double> held_gpus, broken_gpus;
  std::vector<double> drained_gpus;  ///< empty unless the scenario says "health"
  std::vector<double> waiting_jobs, waiting_gpus;
  std::vector<double> facility_w;   ///< empty unless the scenario says "power"
  std::vector<double> rented_gpus;  ///< empty unless nodes can be rented
};

/// The same queue if nobody bursts.
struct WithoutBursts {
  std::size_t waiting = 0;  ///< at the end, whose waits count as far as they have come
  double wait_mean_s = 0;   ///< of jobs that have started or wait
  std::optional<double> completion_mean_s{};  ///< of jobs that have ended
};

struct QueueResult {
  std::vector<JobOutcome> jobs;  ///< in the order of QueueSpec::jobs
  std::vector<JobSpan> spans;    ///< by end; empty unless they are kept
  RunTime end = 0;               ///< of what was simulated
  std::array<GpuTime, kQueueBuckets> books{};
  GpuTime held{};    ///< by jobs, as it was counted from instant to instant
  GpuTime given{};   ///< of that, by jobs of given duration
  Watts most_drawn;  ///< by the site at any time; with "power"
  std::vector<GpuTime> account_held;
  std::vector<GpuTime> license_held;  ///< by QueueSpec::licenses: how many, times for how long
  std::vector<WaitSpan> waits;        ///< of the job that was watched
  QueueSeries series;
  std::optional<NodeHealthCounts> health{};  ///< where the scenario says "health"
  std::optional<BurstCounts> burst{};        ///< where it says "burst"
  std::optional<WithoutBursts> unburst{};    ///< if that was asked for
  std::int64_t node_failures = 0;
  std::int64_t evictions = 0;
  std::int64_t resizes = 0;
  std::int64_t suspensions = 0;
  std::size_t groups_simulated = 0;  ///< of neighbouring trainings
  int backfilled = 0;                ///< by Slurm's backfill scheduler
  bool stopped = false;              ///< somebody stopped it
};

struct QueueOptions {
  std::optional<std::uint32_t> watch{};  ///< the job whose waiting is explained
  /// Up to then jobs start when it was recorded, on the nodes that were recorded where these are
  /// free, and else on those that the rules choose; the scheduler's rules hold from then on.
  RunTime recorded_until = 0;
  bool keep_spans = false;  ///< also done where a recording says which nodes jobs had
  /// The queue is simulated once more without bursts, if nodes can be rented.
  bool without_bursts = false;
  /// Told of ended and of all jobs now and then; false stops the simulation, and what there is
  /// stays.
  std::function<bool(std::size_t, std::size_t)> go_on{};
};

/// Whether its wait is among those of its group: a job that has not started has waited, too. One
/// that was cancelled before it could start waited for nothing.
inline bool counts_wait(const JobOutcome& outcome) { return outcome.start >= 0 || outcome.waits; }

/// Requires that trainings are timed (job_speeds.hpp). Throws InputError where one cannot be
/// planned.
QueueResult simulate_queue(const QueueSpec& spec, const QueueOptions& options = {});

}  // namespace lockstep
