#include "sim/cluster/usage_limits.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

bool exceeds_one(std::int64_t limit, std::int64_t used, std::int64_t more, bool& settled) {
  if (limit < 0 || settled) return false;
  settled = true;
  return used + more > limit;
}

}  // namespace

UsageBook::UsageBook(const QueueSpec& spec, const AssociationTree& tree)
    : spec_(&spec), tree_(&tree) {
  const auto has_any = [](const auto& of) { return of.limits.any(); };
  const auto has_time = [](const auto& of) { return of.limits.grp_gpu_s >= 0; };
  used_ = std::ranges::any_of(spec.qos, has_any) || std::ranges::any_of(spec.associations, has_any);
  limits_time_ =
      std::ranges::any_of(spec.qos, has_time) || std::ranges::any_of(spec.associations, has_time);
  if (!used_) return;
  qos_.resize(spec.qos.size());
  associations_.resize(tree.nodes().size());
  until_.resize(spec.jobs.size());
}

UsageBook::Ask UsageBook::ask_of(std::int32_t gpus, std::uint16_t shape, std::uint16_t partition,
                                 std::uint16_t qos, std::uint16_t user,
                                 std::uint16_t account) const {
  return {.gpus = gpus,
          .nodes = spec_->nodes_of(gpus, shape),
          .cpus = std::llround(std::ceil(gpus * spec_->cpus_of_gpu())),
          .user = user,
          .account = account,
          .qualities = {spec_->partitions[partition].qos, qos},
          .association = tree_->of(account, user)};
}

UsageBook::Ask UsageBook::ask_of(std::uint32_t j) const {
  const QueueJob& job = spec_->jobs[j];
  return ask_of(job.gpus, job.shape, job.partition, job.qos, job.user, job.account);
}

bool UsageBook::exceeds(const TresAmount& limit, const Use& use, const Ask& ask, Settled& settled) {
  // All three are evaluated, because each one settles later limits of its kind.
  const bool gpus = exceeds_one(limit.gpus, use.gpus, ask.gpus, settled.gpus);
  const bool nodes = exceeds_one(limit.nodes, use.nodes, ask.nodes, settled.nodes);
  const bool cpus = exceeds_one(limit.cpus, use.cpus, ask.cpus, settled.cpus);
  return gpus || nodes || cpus;
}

const UsageBook::Use& UsageBook::in(const std::map<Owner, Use>& uses, Owner owner) {
  static const Use none;
  const auto found = uses.find(owner);
  return found == uses.end() ? none : found->second;
}

bool UsageBook::over_qualities(const Ask& ask, Settled& group, bool& jobs, bool& own) const {
  Settled user, account;
  bool by_account = false;
  for (const std::uint16_t q : ask.qualities) {
    if (q == 0) continue;
    const UsageLimits& limits = spec_->qos[q].limits;
    const Use& of_user = in(users_, {q, ask.user});
    const Use& of_account = in(accounts_, {q, ask.account});
    const bool tres = exceeds(limits.grp_tres, qos_[q], ask, group) ||
                      exceeds(limits.per_user, of_user, ask, user) ||
                      exceeds(limits.per_account, of_account, ask, account);
    if (tres || exceeds_one(limits.grp_jobs, qos_[q].jobs, 1, jobs) ||
        exceeds_one(limits.jobs_per_user, of_user.jobs, 1, own) ||
        exceeds_one(limits.jobs_per_account, of_account.jobs, 1, by_account)) {
      return true;
    }
  }
  return false;
}

bool UsageBook::over(const JobClass& of) const {
  const Ask ask = ask_of(of.gpus, of.shape, of.partition, of.qos, of.user, of.account);
  Settled group;
  bool jobs = false, own = false;
  if (over_qualities(ask, group, jobs, own)) return true;
  const UsageLimits& leaf = tree_->nodes()[ask.association].limits;
  if (exceeds_one(leaf.jobs_per_user, associations_[ask.association].jobs, 1, own)) return true;
  for (auto node = static_cast<std::int32_t>(ask.association); node >= 0;) {
    const auto n = static_cast<std::size_t>(node);
    const UsageLimits& limits = tree_->nodes()[n].limits;
    Settled here = group;
    bool jobs_here = jobs;
    if (exceeds(limits.grp_tres, associations_[n], ask, here) ||
        exceeds_one(limits.grp_jobs, associations_[n].jobs, 1, jobs_here)) {
      return true;
    }
    node = tree_->nodes()[n].parent;
  }
  return false;
}

bool UsageBook::accepts(std::uint32_t j) const {
  const Ask ask = ask_of(j);
  bool group = false, user = false, account = false;
  for (const std::uint16_t q : ask.qualities) {
    if (q == 0) continue;
    const UsageLimits& limits = spec_->qos[q].limits;
    if (exceeds_one(limits.grp_submit_jobs, qos_[q].submitted, 1, group) ||
        exceeds_one(limits.submit_per_user, in(users_, {q, ask.user}).submitted, 1, user) ||
        exceeds_one(limits.submit_per_account, in(accounts_, {q, ask.account}).submitted, 1,
                    account)) {
      return false;
    }
  }
  const UsageLimits& leaf = tree_->nodes()[ask.association].limits;
  if (exceeds_one(leaf.submit_per_user, associations_[ask.association].submitted, 1, user)) {
    return false;
  }
  for (auto node = static_cast<std::int32_t>(ask.association); node >= 0;) {
    const auto n = static_cast<std::size_t>(node);
    bool here = group;
    if (exceeds_one(tree_->nodes()[n].limits.grp_submit_jobs, associations_[n].submitted, 1,
                    here)) {
      return false;
    }
    node = tree_->nodes()[n].parent;
  }
  return true;
}

bool UsageBook::never(std::uint32_t j) const {
  const Ask ask = ask_of(j);
  Settled settled;
  bool wall = false;
  const auto too_much = [&](const UsageLimits& limits) {
    return exceeds(limits.per_job, {}, ask, settled) ||
           exceeds_one(limits.max_wall, 0, spec_->jobs[j].limit, wall);
  };
  for (const std::uint16_t q : ask.qualities) {
    if (q != 0 && too_much(spec_->qos[q].limits)) return true;
  }
  return too_much(tree_->nodes()[ask.association].limits);
}

bool UsageBook::over_time(std::uint32_t j, const JobPriorities& priorities, RunTime now) const {
  const Ask ask = ask_of(j);
  const double now_s = to_seconds(now).base_units();
  const double asks = to_seconds(spec_->jobs[j].limit).base_units() * static_cast<double>(ask.gpus);
  const auto exceeds_time = [&](double limit, double used, const Use& use) {
    const double promised = use.promised - now_s * static_cast<double>(use.gpus);
    return limit >= 0 && used + std::max(0.0, promised) + asks > limit;
  };
  bool settled = false;
  for (const std::uint16_t q : ask.qualities) {
    if (q == 0 || settled) continue;
    const double limit = spec_->qos[q].limits.grp_gpu_s;
    settled = limit >= 0;
    if (exceeds_time(limit, priorities.qos_usage(q), qos_[q])) return true;
  }
  for (auto node = static_cast<std::int32_t>(ask.association); node >= 0 && !settled;) {
    const auto n = static_cast<std::uint32_t>(node);
    if (exceeds_time(tree_->nodes()[n].limits.grp_gpu_s, priorities.usage(n), associations_[n])) {
      return true;
    }
    node = tree_->nodes()[n].parent;
  }
  return false;
}

template <class Change>
void UsageBook::change(std::uint32_t j, const Change& by) {
  const Ask ask = ask_of(j);
  for (const std::uint16_t q : ask.qualities) {
    if (q == 0 || (&q != ask.qualities && q == ask.qualities[0])) continue;
    by(qos_[q]);
    by(users_[{q, ask.user}]);
    by(accounts_[{q, ask.account}]);
  }
  for (auto node = static_cast<std::int32_t>(ask.association); node >= 0;) {
    by(associations_[static_cast<std::size_t>(node)]);
    node = tree_->nodes()[static_cast<std::size_t>(node)].parent;
  }
}

void UsageBook::count_submitted(std::uint32_t j, int by) {
  change(j, [by](Use& use) { use.submitted += by; });
}

void UsageBook::started(std::uint32_t j, RunTime until) {
  const Ask ask = ask_of(j);
  until_[j] = until;
  const double promised = to_seconds(until).base_units() * static_cast<double>(ask.gpus);
  change(j, [&](Use& use) {
    use.gpus += ask.gpus;
    use.nodes += ask.nodes;
    use.cpus += ask.cpus;
    use.promised += promised;
    ++use.jobs;
  });
}

void UsageBook::stopped(std::uint32_t j) {
  const Ask ask = ask_of(j);
  const double promised = to_seconds(until_[j]).base_units() * static_cast<double>(ask.gpus);
  change(j, [&](Use& use) {
    use.gpus -= ask.gpus;
    use.nodes -= ask.nodes;
    use.cpus -= ask.cpus;
    use.promised -= promised;
    --use.jobs;
  });
}

}  // namespace lockstep
