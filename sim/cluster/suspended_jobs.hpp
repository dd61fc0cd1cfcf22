/// Jobs that were suspended for others, and what of their GPUs is kept for them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/cluster/free_gpus.hpp"

namespace lockstep {

/// A suspended job stays on its nodes, in memory. What comes free of its GPUs there is kept for it,
/// so that nobody but a job that may suspend it gets them; when all of them are, it goes on. Of
/// several whoever was suspended last comes first: it was suspended by a job that goes before
/// it is due again. Source: Slurm 22.05, src/slurmctld/gang.c.
class SuspendedJobs {
 public:
  struct Job {
    std::uint32_t job;
    Holding held;  ///< when it was suspended
    Holding kept;  ///< of that, as many GPUs as are kept for it, by node as in `held`
  };

  [[nodiscard]] bool any() const { return !jobs_.empty(); }
  /// In the order of their suspension.
  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  [[nodiscard]] std::int64_t kept() const { return kept_; }
  /// Null of a job that is not suspended.
  [[nodiscard]] const Job* find(std::uint32_t job) const;

  void add(std::uint32_t job, Holding held);
  /// Keeps what is free for those who lack it.
  void claim(FreeGpus& free);
  /// Those who have all their GPUs, which stay taken: they are suspended no more.
  std::vector<Job> take_whole();
  /// What is kept for some jobs is free until the next claim.
  void lend(FreeGpus& free, const std::function<bool(std::uint32_t)>& is_lent);
  /// It is suspended no more, and nothing is kept for it.
  void remove(std::uint32_t job, FreeGpus& free);

 private:
  void give_kept(Job& of, FreeGpus& free);

  std::vector<Job> jobs_;
  std::int64_t kept_ = 0;
};

}  // namespace lockstep
