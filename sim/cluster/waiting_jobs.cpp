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
  for (const QueueJob& job : spec.jobs) {
    const JobClass of{job.gpus, job.partition,
                      has_quota(spec.user_quotas, job.user) ? job.user : std::uint16_t{0},
                      has_quota(spec.account_quotas, job.account) ? job.account : std::uint16_t{0}};
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

void WaitingJobs::remove(JobRank rank) {
  const std::uint32_t of = class_of_[rank.job];
  [[maybe_unused]] const std::size_t removed = waiting_[of].erase(rank);
  assert(removed == 1 && "a job that does not wait");
  --size_;
  gpus_ -= classes_[of].gpus;
}

}  // namespace lockstep
