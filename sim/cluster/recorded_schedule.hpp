/// What a scheduler made of jobs, run by run, and how much two of these have in common: a real
/// one's and a simulated one's.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// GPUs that a job held, from a start to an end.
struct JobRun {
  double start_s = 0, end_s = 0;
  std::vector<int> nodes{};  ///< numbers from 1, rising; empty: not recorded
};
/// Runs of each job by their starts; several of a job that was preempted or requeued.
using JobSchedule = std::map<std::string, std::vector<JobRun>>;

/// Of a CSV with the columns "job", "start_s" and "end_s", and maybe "nodes" ("n[1-4]"), in any
/// order beside others: a row for each run; jobs that never ran have no start. Throws InputError
/// with the row.
JobSchedule read_recorded_schedule(const std::string& file, std::string_view text);

/// Of a simulated queue. Requires that its spans were kept.
JobSchedule schedule_of(const QueueSpec& spec, const QueueResult& result);

/// How many there are, and how many of these are alike.
struct AlikeCount {
  std::size_t of = 0, alike = 0;
};

/// What a simulated schedule has of a recorded one. The n-th run of a job is held against its n-th.
struct ScheduleMatch {
  std::size_t runs = 0, simulated_runs = 0;
  AlikeCount starts, ends;  ///< recorded runs; alike: not further apart than the gap
  AlikeCount nodes;         ///< those whose nodes were recorded; alike: the same
  AlikeCount order;  ///< pairs of recorded starts further apart than the gap; alike: in that order.
                     ///< None of more than 4,000 runs
  double wait_mean_s = 0;            ///< from the scenario's submission to the first recorded start
  double simulated_wait_mean_s = 0;  ///< of the same jobs: those that start in both
};
ScheduleMatch match_schedule(const QueueSpec& spec, const JobSchedule& recorded,
                             const JobSchedule& simulated, Seconds gap);

}  // namespace lockstep
