/// Slurm's main and backfill schedulers, in their cycles.
///
/// Source: Slurm 22.05, src/slurmctld/job_scheduler.c (schedule), src/plugins/sched/backfill/
/// backfill.c (_attempt_backfill) and src/plugins/select/cons_tres/job_test.c (_will_run_test).
/// Not modelled: what a pass itself takes, yielding of locks, features and licences, and the
/// moments between a preemption and the start for which it was made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

class SlurmScheduler {
 public:
  explicit SlurmScheduler(const SlurmCycles& cycles);

  /// When it wants to run next.
  [[nodiscard]] RunTime next() const;
  /// A job came or ended: the main scheduler is to look soon.
  void something_changed(RunTime now);
  /// Runs what is due.
  void run(QueueState& state);

  /// Jobs that backfill started so far.
  [[nodiscard]] int backfilled() const { return backfilled_; }

 private:
  /// Times between which the same whole nodes are not reserved.
  struct Record {
    RunTime begin, end;
    NodeSet free;
  };
  /// Where and when a job would start.
  struct Plan {
    RunTime at;
    Holding where;
  };

  void run_main(QueueState& state, int depth);
  void run_backfill(QueueState& state);
  void plan(QueueState& state, std::uint32_t j);
  [[nodiscard]] std::optional<Plan> will_run(const QueueState& state, std::uint32_t j,
                                             const NodeSet& usable) const;
  /// On the controller's clock: the first multiple after the time.
  [[nodiscard]] RunTime next_multiple(RunTime time, RunTime of) const;
  /// Nodes of the partition that no reservation takes from `start` to `end`, and the end of the
  /// first record after which other nodes come free; 0: there is none.
  struct Usable {
    NodeSet nodes;
    RunTime later = 0;
  };
  [[nodiscard]] Usable usable_between(RunTime start, RunTime end, const NodeSet& partition) const;
  /// The nodes that a job's partition and the advance reservations leave it, no record considered.
  [[nodiscard]] static NodeSet open_nodes(const QueueState& state, std::uint32_t j, RunTime at);
  /// When to try a job that is not to start before its reservation begins.
  [[nodiscard]] static RunTime first_try(const QueueState& state, std::uint32_t j);
  /// Starts the job on the nodes, where others go for it if they must. Whether it did.
  static bool start_now(QueueState& state, std::uint32_t j, const NodeSet& usable);
  [[nodiscard]] bool is_reserved(const NodeSet& nodes, RunTime start, RunTime end) const;
  [[nodiscard]] RunTime slot_of(RunTime time) const;
  void reserve(const Holding& where, RunTime start, RunTime end);
  void split(RunTime at);

  SlurmCycles cycles_;
  RunTime next_main_, next_event_, next_backfill_;
  RunTime last_main_;
  std::vector<Record> records_;     ///< of the present pass, in order
  std::vector<int> planned_tasks_;  ///< of the present pass, by array
  int backfilled_ = 0;
};

}  // namespace lockstep
