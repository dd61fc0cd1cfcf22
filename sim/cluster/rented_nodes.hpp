/// Nodes that are rented in a cloud for jobs of a queue that have waited too long: which are there,
/// who is on them, and what they cost.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster/free_gpus.hpp"
#include "sim/cluster/gpu_time.hpp"
#include "sim/core/indexed_heap.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Where the GPU time that is rented goes. Together: all GPUs of rented nodes, from when they are
/// rented until they are given back.
enum class RentedBucket : std::uint8_t {
  useful,    ///< work, as long as it takes on the cluster
  slowed,    ///< held by a job beyond what its work takes there; below 0 on faster nodes
  starting,  ///< held by a job whose nodes do not serve yet, or that restarts
  moving,    ///< held by a job that moves its data
  unused,    ///< of nodes that are kept for the next job, and what jobs leave of their nodes
};
constexpr std::size_t kRentedBuckets = 5;
constexpr std::array<std::string_view, kRentedBuckets> kRentedBucketNames{
    "useful", "slowed", "starting", "moving", "unused"};

/// What bursting came to.
struct BurstCounts {
  std::int64_t jobs = 0;   ///< starts of jobs on rented nodes
  std::int64_t nodes = 0;  ///< how often a node was rented
  int most_nodes = 0;      ///< at a time
  GpuTime rented{};
  std::array<GpuTime, kRentedBuckets> books{};
  double gpu_usd = 0;
  double egress_usd = 0;  ///< for what was moved back, of jobs that have ended

  [[nodiscard]] double usd() const { return gpu_usd + egress_usd; }
};

/// Jobs share rented nodes as they share the cluster's: one of less than a node goes on the fullest
/// that has room, a wider one on idle nodes, those that are rented already first. What runs there
/// is neither preempted nor moved, and no node fails.
class RentedNodes {
 public:
  /// `spec` outlives it. Requires that its trainings are timed.
  explicit RentedNodes(const QueueSpec& spec);

  [[nodiscard]] bool used() const { return of_ != nullptr; }

  /// The job waits from now on, or does not any more.
  void waits(std::uint32_t j, RunTime now);
  void waits_no_more(std::uint32_t j);
  /// When the next job will have waited too long, or the next unused node is given back.
  [[nodiscard]] RunTime next_at() const;
  /// Nodes that were kept for long enough are given back, and whoever has waited too long may
  /// burst.
  void pass(RunTime now);
  [[nodiscard]] std::size_t overdue() const { return overdue_count_; }
  [[nodiscard]] bool is_overdue(std::uint32_t j) const { return overdue_[j]; }
  /// Whether there is room for a job of so many GPUs.
  [[nodiscard]] bool has_room(int gpus) const { return place(gpus).has_value(); }

  /// The job starts with so much work left, as time at its reference pace; it restarts for so long
  /// when its nodes serve. Its end; nothing, without effect, where there is neither room nor money.
  std::optional<RunTime> start(std::uint32_t j, RunTime now, RunTime left, RunTime restart);
  /// Its end has come. What it held beyond its work at the reference pace.
  RunTime finish(std::uint32_t j, RunTime now);
  [[nodiscard]] const Holding& held(std::uint32_t j) const { return runs_.at(j).held; }
  /// Jobs that run there.
  [[nodiscard]] std::vector<std::uint32_t> running() const;

  void advance(RunTime passed) { counts_.rented += GpuTime(rented_gpus(), passed); }
  [[nodiscard]] std::int64_t rented_gpus() const { return std::int64_t{rented_} * gpus_per_node_; }
  /// Counts those that run as far as they have come.
  void close(RunTime now);
  /// Complete after close().
  [[nodiscard]] const BurstCounts& counts() const { return counts_; }
  /// GPU time that each job that burst has held there, after close().
  [[nodiscard]] const std::map<std::uint32_t, GpuTime>& held_time() const { return held_time_; }

 private:
  /// When a job on rented nodes comes to what. It holds them from `begin` to `end`.
  struct Run {
    RunTime begin = 0;
    RunTime up = 0;      ///< its nodes serve
    RunTime staged = 0;  ///< its data are there
    RunTime ready = 0;   ///< it works
    RunTime worked = 0;  ///< its work is done
    RunTime end = 0;     ///< its results are back
    RunTime left = 0;    ///< work, as time at the reference pace
    double speed = 1;
    Holding held{};
  };
  struct Node {
    int free = 0;
    RunTime up = 0;          ///< when it serves
    RunTime until = 0;       ///< given back by then, whatever jobs do within their limits
    RunTime empty_till = 0;  ///< kept so long; while nobody is on it
  };

  [[nodiscard]] bool may(std::uint32_t j) const;
  [[nodiscard]] double speed_of(const QueueJob& job) const;
  [[nodiscard]] std::optional<Holding> place(int gpus) const;
  [[nodiscard]] Run plan(const QueueJob& job, RunTime now, RunTime left, RunTime restart,
                         Holding where) const;
  [[nodiscard]] RunTime given_back_by(const QueueJob& job, const Run& run) const;
  /// What all bursts cost at most, with this one.
  [[nodiscard]] double most_usd_with(const QueueJob& job, const Run& run, RunTime now) const;
  void take(const Holding& where, RunTime up, RunTime until);
  void give(const Holding& where, RunTime now);
  void list(int node);
  void unlist(int node);
  void end_lease(int node);
  /// Books what the run has held until now. Its work so far.
  RunTime book(std::uint32_t j, const Run& run, RunTime now);
  [[nodiscard]] double usd_of(GpuTime time) const { return time.gpu_hours() * price_; }
  [[nodiscard]] double egress_usd() const;

  const QueueSpec* spec_;
  const QueueBurst* of_ = nullptr;  ///< null: nobody bursts
  int gpus_per_node_ = 1;
  double price_ = 0;

  std::vector<bool> overdue_;
  std::size_t overdue_count_ = 0;
  IndexedHeap<RunTime> due_;

  std::map<int, Node> nodes_;  ///< that are rented, by number
  int rented_ = 0;
  std::set<std::pair<int, int>> partly_free_;  ///< of those (free GPUs, number), some of each
  std::set<int> idle_;                         ///< of those, all of whose GPUs are free
  std::set<int> returned_;                     ///< numbers to be used again
  int fresh_ = 0;                              ///< the lowest number that was never used
  std::set<std::pair<RunTime, int>> kept_;     ///< idle ones, by when they are given back

  std::map<std::uint32_t, Run> runs_;
  std::map<std::uint32_t, GpuTime> held_time_;
  BurstCounts counts_;
};

}  // namespace lockstep
