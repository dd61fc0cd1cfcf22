#include "sim/cluster/suspended_jobs.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

namespace lockstep {

void SuspendedJobs::add(std::uint32_t job, Holding held) {
  Holding kept = held;
  for (HeldGpus& of : kept) of.gpus = 0;
  jobs_.push_back({job, std::move(held), std::move(kept)});
}

void SuspendedJobs::claim(FreeGpus& free) {
  for (Job& of : std::views::reverse(jobs_)) {
    for (std::size_t n = 0; n < of.held.size(); ++n) {
      const int lacks = of.held[n].gpus - of.kept[n].gpus;
      const int gets = std::min(lacks, free.on(of.held[n].node));
      if (gets == 0) continue;
      free.take(std::array{HeldGpus{of.held[n].node, gets}});
      of.kept[n].gpus += gets;
      kept_ += gets;
    }
  }
}

std::vector<SuspendedJobs::Job> SuspendedJobs::take_whole() {
  std::vector<Job> out;
  for (const Job& of : jobs_) {
    if (of.kept == of.held) out.push_back(of);
  }
  for (const Job& of : out) {
    for (const HeldGpus& kept : of.kept) kept_ -= kept.gpus;
  }
  std::erase_if(jobs_, [](const Job& of) { return of.kept == of.held; });
  return out;
}

void SuspendedJobs::give_kept(Job& of, FreeGpus& free) {
  for (HeldGpus& kept : of.kept) {
    if (kept.gpus == 0) continue;
    free.give(std::array{kept});
    kept_ -= kept.gpus;
    kept.gpus = 0;
  }
}

void SuspendedJobs::lend(FreeGpus& free, const std::function<bool(std::uint32_t)>& is_lent) {
  for (Job& of : jobs_) {
    if (is_lent(of.job)) give_kept(of, free);
  }
}

const SuspendedJobs::Job* SuspendedJobs::find(std::uint32_t job) const {
  const auto found = std::ranges::find(jobs_, job, &Job::job);
  return found == jobs_.end() ? nullptr : &*found;
}

void SuspendedJobs::remove(std::uint32_t job, FreeGpus& free) {
  const auto found = std::ranges::find(jobs_, job, &Job::job);
  give_kept(*found, free);
  jobs_.erase(found);
}

}  // namespace lockstep
