#include "sim/cluster/waiting_jobs.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace lockstep {
namespace {

bool has_quota(const std::vector<QueueQuota>& quotas, std::uint16_t of) {
  return std::ranges::any_of(quotas, [of](const QueueQuota& quota) { return quota.of == of; });
}

}  // namespace

WaitingJobs::WaitingJobs(const QueueSpec& spec) {
  std::map<JobClass, std::uint32_t> known;
  class_of_.reserve(spec.jobs.size());
  const auto has_limits = [](const auto& of) { return of.limits.any(); };
  const bool limits = std::ranges::any_of(spec.qos, has_limits) ||
                      std::ranges::any_of(spec.associations, has_limits);
  for (const QueueJob& job : spec.jobs) {
    JobClass of{.gpus = job.gpus, .partition = job.partition, .user = 0, .account = 0};
    if (limits || has_quota(spec.user_quotas, job.user)) of.user = job.user;
    const bool by_account = limits || !spec.cluster_queues.empty();
    if (by_account || has_quota(spec.account_quotas, job.account)) of.account = job.account;
    if (limits) of.qos = job.qos;
    of.licenses = job.licenses;
    of.shape = job.shape;
    if (spec.power_cap) of.draws_as = job.training;
    const JobTerms* const terms = spec.terms_of(class_of_.size());
    if (terms != nullptr) of.reservation = terms->reservation;
    const auto [at, is_new] = known.try_emplace(of, static_cast<std::uint32_t>(classes_.size()));
    if (is_new) classes_.push_back(of);
    class_of_.push_back(at->second);
  }
  waiting_.resize(classes_.size());
}

void WaitingJobs::add(JobRank rank) {
  const std::uint32_t of = class_of_[rank.job];
  waiting_[of].insert(rank);
  ++size_;
  gpus_ += classes_[of].gpus;
}

void WaitingJobs::sort_anew(const std::function<JobRank(std::uint32_t)>& rank_of) {
  for (std::set<JobRank>& of_class : waiting_) {
    if (of_class.empty()) continue;
    std::vector<JobRank> ranks;
    ranks.reserve(of_class.size());
    for (const JobRank& rank : of_class) ranks.push_back(rank_of(rank.job));
    of_class = std::set<JobRank>(ranks.begin(), ranks.end());
  }
}

void WaitingJobs::remove(JobRank rank) {
  const std::uint32_t of = class_of_[rank.job];
  [[maybe_unused]] const std::size_t removed = waiting_[of].erase(rank);
  assert(removed == 1 && "a job that does not wait");
  --size_;
  gpus_ -= classes_[of].gpus;
}

}  // namespace lockstep
