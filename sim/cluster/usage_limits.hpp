/// What associations and qualities of service have running and waiting, against their limits.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/cluster/association_tree.hpp"
#include "sim/cluster/job_priorities.hpp"
#include "sim/cluster/waiting_jobs.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Limits of a job: those of its partition's quality of service; where that has none, of its own;
/// where neither has, of its association and of all above. Source: Slurm 22.05,
/// src/slurmctld/acct_policy.c. Nodes are counted by job, also where jobs share one.
class UsageBook {
 public:
  /// They outlive it.
  UsageBook(const QueueSpec& spec, const AssociationTree& tree);

  /// Whether there is any limit: else nothing here needs to be called.
  [[nodiscard]] bool used() const { return used_; }
  /// Whether GPU time is limited: jobs of a class then differ by their time limits.
  [[nodiscard]] bool limits_time() const { return limits_time_; }

  /// Whether the submission is taken.
  [[nodiscard]] bool accepts(std::uint32_t j) const;
  /// Whether the job by itself exceeds a limit.
  [[nodiscard]] bool never(std::uint32_t j) const;
  /// Whether a job of the class would exceed a limit beside those that run.
  [[nodiscard]] bool over(const JobClass& of) const;
  /// Whether the job would exceed a limit of GPU time, with what running jobs have been promised.
  [[nodiscard]] bool over_time(std::uint32_t j, const JobPriorities& priorities, RunTime now) const;

  void submitted(std::uint32_t j) { count_submitted(j, 1); }
  /// `until`: its time limit's end.
  void started(std::uint32_t j, RunTime until);
  void stopped(std::uint32_t j);
  void ended(std::uint32_t j) { count_submitted(j, -1); }

 private:
  struct Use {
    std::int64_t gpus = 0, nodes = 0, cpus = 0;
    int jobs = 0, submitted = 0;
    double promised = 0;  ///< sum of GPUs x the ends of time limits, in GPU seconds
  };
  struct Ask {
    std::int64_t gpus, nodes, cpus;
    std::uint16_t user, account;
    std::uint16_t qualities[2];
    std::uint32_t association;
  };
  /// Which amounts a limit that comes first has settled.
  struct Settled {
    bool gpus = false, nodes = false, cpus = false;
  };
  using Owner = std::pair<std::uint16_t, std::uint16_t>;  // quality of service, user or account

  [[nodiscard]] Ask ask_of(std::int32_t gpus, std::uint16_t shape, std::uint16_t partition,
                           std::uint16_t qos, std::uint16_t user, std::uint16_t account) const;
  [[nodiscard]] Ask ask_of(std::uint32_t j) const;
  static bool exceeds(const TresAmount& limit, const Use& use, const Ask& ask, Settled& settled);
  [[nodiscard]] bool over_qualities(const Ask& ask, Settled& group, bool& jobs, bool& own) const;
  static const Use& in(const std::map<Owner, Use>& uses, Owner owner);
  template <class Change>
  void change(std::uint32_t j, const Change& by);
  void count_submitted(std::uint32_t j, int by);

  const QueueSpec* spec_;
  const AssociationTree* tree_;
  bool used_ = false, limits_time_ = false;
  std::vector<Use> qos_, associations_;
  std::map<Owner, Use> users_, accounts_;
  std::vector<RunTime> until_;
};

}  // namespace lockstep
