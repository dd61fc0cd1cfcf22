#include "sim/cluster/job_priorities.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

// Slurm's own approximation of ln 2, in the decay of a second: 1 - 0.693 / half-life.
constexpr double kLn2 = 0.693;  // NOLINT(modernize-use-std-numbers)

double seconds_of(RunTime time) { return to_seconds(time).base_units(); }

bool needs_usage(const QueueSpec& spec) {
  const auto limits_time = [](const auto& of) { return of.limits.grp_gpu_s >= 0; };
  return spec.order == QueueOrder::multifactor || std::ranges::any_of(spec.qos, limits_time) ||
         std::ranges::any_of(spec.associations, limits_time);
}

}  // namespace

JobPriorities::JobPriorities(const QueueSpec& spec, const AssociationTree& tree)
    : spec_(&spec), tree_(&tree), used_(needs_usage(spec)) {
  if (!used_) {
    next_ = std::numeric_limits<RunTime>::max();
    return;
  }
  const double half_life_s = seconds_of(spec.priorities.half_life);
  if (half_life_s > 0) decay_ = std::max(0.0, 1 - kLn2 / half_life_s);
  for (const QualityOfService& of : spec.qos) most_qos_ = std::max(most_qos_, 1.0 * of.priority);
  for (const QueuePartition& of : spec.partitions) {
    most_partition_ = std::max(most_partition_, 1.0 * of.priority);
  }
  for (const Association& of : tree.nodes()) {
    most_association_ = std::max(most_association_, 1.0 * of.priority);
  }
  eligible_.resize(spec.jobs.size());
  usage_.resize(tree.nodes().size());
  new_usage_.resize(usage_.size());
  for (std::size_t n = 0; n < usage_.size(); ++n) new_usage_[n] = tree.nodes()[n].usage_gpu_s;
  qos_usage_.resize(spec.qos.size());
  new_qos_usage_.resize(spec.qos.size());
  reckon(0);
}

void JobPriorities::count(std::uint32_t j, RunTime from, RunTime to) {
  const double seconds = seconds_of(to - std::max(from, last_));
  if (seconds <= 0) return;
  const QueueJob& job = spec_->jobs[j];
  const double used =
      job.gpus * seconds * std::pow(decay_, seconds) * spec_->qos[job.qos].usage_factor;
  new_usage_[leaf_of(job)] += used;
  new_qos_usage_[job.qos] += used;
}

void JobPriorities::reckon(RunTime now) {
  const double kept = std::pow(decay_, seconds_of(now - last_));
  // Children come after their parents: from the end on, new usage is added to the parents.
  for (std::size_t node = usage_.size(); node-- > 0;) {
    const std::int32_t parent = tree_->nodes()[node].parent;
    if (parent >= 0) new_usage_[static_cast<std::size_t>(parent)] += new_usage_[node];
    usage_[node] = usage_[node] * kept + new_usage_[node];
    new_usage_[node] = 0;
  }
  for (std::size_t q = 0; q < qos_usage_.size(); ++q) {
    qos_usage_[q] = qos_usage_[q] * kept + new_qos_usage_[q];
    new_qos_usage_[q] = 0;
  }
  last_ = now;
  next_ = now + spec_->priorities.calc_period;
  if (spec_->priorities.fair_share == 0) return;
  factors_ = spec_->priorities.fair_tree
                 ? fair_tree_factors(*tree_, usage_)
                 : classic_fair_share_factors(*tree_, usage_, spec_->priorities.damping);
}

double JobPriorities::job_size(const QueueJob& job) const {
  const PriorityRules& rules = spec_->priorities;
  const double all_nodes = spec_->cluster.nodes, all_cpus = all_nodes * spec_->cpus_of_node();
  const double nodes = spec_->nodes_of(job), cpus = job.gpus * spec_->cpus_of_gpu();
  double out = 0;
  if (rules.size_relative_to_time) {
    const double minutes = std::max(1.0, std::ceil(seconds_of(job.limit) / 60));
    out = std::max(cpus, nodes * all_cpus / all_nodes) / minutes / all_cpus;
    if (rules.favor_small) out = 1 - out;
  } else if (rules.favor_small) {
    out = ((all_nodes - nodes) / all_nodes + (all_cpus - cpus) / all_cpus) / 2;
  } else {
    out = (nodes / all_nodes + cpus / all_cpus) / 2;
  }
  return std::clamp(out, 0.0, 1.0);
}

double JobPriorities::partition_gpus(std::uint16_t partition) const {
  const auto& nodes = spec_->partitions[partition].nodes;
  return (nodes.empty() ? spec_->cluster.nodes : static_cast<double>(nodes.size())) *
         spec_->cluster.node.gpus;
}

double JobPriorities::priority_of(std::uint32_t j, RunTime now) const {
  const QueueJob& job = spec_->jobs[j];
  const PriorityRules& rules = spec_->priorities;
  const auto part_of = [](double value, double most) { return most > 0 ? value / most : 0; };
  const double age = rules.max_age > 0 ? seconds_of(std::max<RunTime>(0, now - eligible_[j])) /
                                             seconds_of(rules.max_age)
                                       : 0;
  double sum = rules.age * std::min(1.0, age);
  if (!factors_.empty()) sum += rules.fair_share * factors_[leaf_of(job)];
  if (rules.job_size != 0) sum += rules.job_size * job_size(job);
  sum += rules.partition * part_of(spec_->partitions[job.partition].priority, most_partition_);
  sum += rules.qos * part_of(spec_->qos[job.qos].priority, most_qos_);
  if (rules.association != 0) {
    sum += rules.association * part_of(tree_->nodes()[leaf_of(job)].priority, most_association_);
  }
  const double gpus = partition_gpus(job.partition), node_gpus = spec_->cluster.node.gpus;
  sum += rules.tres_gpu * job.gpus / gpus;
  sum +=
      rules.tres_cpu * job.gpus * spec_->cpus_of_gpu() / (gpus / node_gpus * spec_->cpus_of_node());
  sum += rules.tres_node * spec_->nodes_of(job) / (gpus / node_gpus);
  sum += job.priority;  // an administrator's own, or minus what its user was nice by
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  return std::floor(std::clamp(sum, 1.0, kMost));
}

}  // namespace lockstep
