/// Queues for tests: a cluster of any size, jobs that are written down or drawn.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/queue_summary.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep::test {

constexpr RunTime seconds(double s) { return to_run_time(Seconds{s}); }

/// A cluster without jobs.
inline QueueSpec empty_queue(int nodes, int gpus_per_node) {
  QueueSpec spec;
  spec.file = "queue.json";
  spec.cluster.nodes = nodes;
  spec.cluster.node.gpus = gpus_per_node;
  return spec;
}

struct WrittenJob {
  double submit_s, runs_s;
  int gpus;
  double limit_s = 0;  ///< 0: as long as it runs
  int priority = 0;
};
/// Jobs by submission.
inline QueueSpec queue_of(int nodes, int gpus_per_node, std::initializer_list<WrittenJob> jobs) {
  QueueSpec spec = empty_queue(nodes, gpus_per_node);
  for (const WrittenJob& job : jobs) {
    QueueJob out;
    out.submit = seconds(job.submit_s);
    out.runs = seconds(job.runs_s);
    out.limit = job.limit_s > 0 ? seconds(job.limit_s) : out.runs;
    out.gpus = job.gpus;
    out.priority = job.priority;
    spec.jobs.push_back(out);
  }
  return spec;
}

inline double start_s(const QueueResult& result, std::size_t job) {
  return to_seconds(result.jobs[job].start).base_units();
}
inline double end_s(const QueueResult& result, std::size_t job) {
  return to_seconds(result.jobs[job].end).base_units();
}

}  // namespace lockstep::test
