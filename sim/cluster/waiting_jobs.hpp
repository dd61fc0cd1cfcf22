/// Jobs that wait, in their order, apart by what decides whether they can start.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A job's place in the order: the lowest comes first.
struct JobRank {
  double key;
  std::uint32_t job;
  std::uint32_t since = 0;  ///< second of its submission, where a requeued job is a new one

  friend bool operator<(const JobRank& a, const JobRank& b) {
    if (a.key != b.key) return a.key < b.key;
    return a.since != b.since ? a.since < b.since : a.job < b.job;
  }
  friend bool operator>(const JobRank& a, const JobRank& b) { return b < a; }
  friend bool operator==(const JobRank&, const JobRank&) = default;
};

/// Jobs of one width, partition and quota start or wait together: of each such class only the first
/// need be looked at, however many wait behind it.
struct JobClass {
  std::int32_t gpus;
  std::uint16_t partition, user, account;  ///< the latter two 0 where no quota is on them
  std::uint16_t qos = 0;                   ///< 0 where there are no limits
  std::uint16_t reservation = 0;           ///< QueueSpec::reservations, from 1
  std::uint16_t licenses = 0;              ///< QueueSpec::license_sets
  std::uint16_t shape = 0;                 ///< QueueSpec::shapes
  std::int32_t draws_as = -1;  ///< QueueSpec::trainings where power is capped; else below 0

  friend auto operator<=>(const JobClass&, const JobClass&) = default;
};

class WaitingJobs {
 public:
  explicit WaitingJobs(const QueueSpec& spec);

  [[nodiscard]] std::uint32_t class_of(std::uint32_t job) const { return class_of_[job]; }
  [[nodiscard]] const std::vector<JobClass>& classes() const { return classes_; }
  [[nodiscard]] const std::set<JobRank>& of(std::uint32_t job_class) const {
    return waiting_[job_class];
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::int64_t gpus() const { return gpus_; }

  void add(JobRank rank);
  void remove(JobRank rank);
  /// Gives every waiting job the rank that it has now.
  void sort_anew(const std::function<JobRank(std::uint32_t)>& rank_of);

 private:
  std::vector<JobClass> classes_;
  std::vector<std::uint32_t> class_of_;
  std::vector<std::set<JobRank>> waiting_;
  std::size_t size_ = 0;
  std::int64_t gpus_ = 0;
};

/// The waiting jobs of some classes, in the order of all. A job leaves WaitingJobs
/// meanwhile only when the walk has gone past it.
class WaitingWalk {
 public:
  template <class Open>
  WaitingWalk(const WaitingJobs& waiting, const Open& is_open) : waiting_(&waiting) {
    for (std::uint32_t c = 0; c < waiting.classes().size(); ++c) {
      if (waiting.of(c).empty() || !is_open(c)) continue;
      heads_.push({waiting.of(c).begin(), c});
    }
  }

  WaitingWalk(const WaitingJobs& waiting, const std::vector<std::uint32_t>& classes)
      : waiting_(&waiting) {
    for (const std::uint32_t c : classes) {
      if (!waiting.of(c).empty()) heads_.push({waiting.of(c).begin(), c});
    }
  }

  [[nodiscard]] bool empty() const { return heads_.empty(); }
  [[nodiscard]] JobRank front() const { return *heads_.top().at; }
  [[nodiscard]] std::uint32_t front_class() const { return heads_.top().job_class; }
  /// Goes on behind the front, which may leave the waiting jobs afterwards.
  void pop() {
    Head head = heads_.top();
    heads_.pop();
    if (++head.at != waiting_->of(head.job_class).end()) heads_.push(head);
  }
  /// Nobody of the front's class is looked at any more.
  void pop_class() { heads_.pop(); }

 private:
  struct Head {
    std::set<JobRank>::const_iterator at;
    std::uint32_t job_class;
    friend bool operator>(const Head& a, const Head& b) { return *a.at > *b.at; }
  };
  const WaitingJobs* waiting_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
};

}  // namespace lockstep
