/// Priorities of jobs by several factors, and the usage that they and some limits go by.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/association_tree.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Usage decays, and priorities are reckoned anew, once in PriorityRules::calc_period; in between
/// they stay. Source: Slurm 22.05, src/plugins/priority/multifactor/priority_multifactor.c.
class JobPriorities {
 public:
  /// `spec` and `tree` outlive it.
  JobPriorities(const QueueSpec& spec, const AssociationTree& tree);

  /// Whether anything is reckoned: else nothing here needs to be called.
  [[nodiscard]] bool used() const { return used_; }
  /// When it is to be reckoned next.
  [[nodiscard]] RunTime next_at() const { return next_; }

  /// A job held its GPUs from `from` to `to`; counted with the next reckoning.
  void count(std::uint32_t j, RunTime from, RunTime to);
  /// What running jobs held must have been counted up to `now`.
  void reckon(RunTime now);
  /// Up to when jobs have been counted.
  [[nodiscard]] RunTime last() const { return last_; }

  /// A job waits for nothing but GPUs from `now` on: its age counts.
  void set_eligible(std::uint32_t j, RunTime now) { eligible_[j] = now; }
  /// Its priority at `now`: 1 at least, a whole number.
  [[nodiscard]] double priority_of(std::uint32_t j, RunTime now) const;
  [[nodiscard]] double fair_share_of(std::uint32_t j) const {
    return factors_.empty() ? 0 : factors_[leaf_of(spec_->jobs[j])];
  }
  /// GPU seconds that an association or a quality of service has used, decayed.
  [[nodiscard]] double usage(std::uint32_t association) const { return usage_[association]; }
  [[nodiscard]] double qos_usage(std::uint16_t qos) const { return qos_usage_[qos]; }

 private:
  [[nodiscard]] std::uint32_t leaf_of(const QueueJob& job) const {
    return tree_->of(job.account, job.user);
  }
  [[nodiscard]] double job_size(const QueueJob& job) const;
  [[nodiscard]] double partition_gpus(std::uint16_t partition) const;

  const QueueSpec* spec_;
  const AssociationTree* tree_;
  bool used_ = false;
  double decay_ = 1;  ///< of usage, in a second
  RunTime next_ = 0, last_ = 0;
  double most_qos_ = 0, most_partition_ = 0, most_association_ = 0;
  std::vector<RunTime> eligible_;
  std::vector<double> usage_, qos_usage_, new_usage_, new_qos_usage_;
  std::vector<double> factors_;
};

}  // namespace lockstep
