/// What a simulated queue comes to: waits, completion times, slowdowns, and what was recorded
/// beside what was simulated.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/campaign_summary.hpp"
#include "sim/cluster/queue_bill.hpp"
#include "sim/cluster/queue_spread.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// What jobs that have something in common had on rented nodes.
struct GroupBurst {
  std::size_t jobs = 0;
  double gpu_hours = 0;  ///< held there
};

/// Jobs that have something in common.
struct QueueGroup {
  std::string name;
  std::size_t jobs = 0, ended = 0;
  std::size_t waiting = 0;            ///< at the end, whose waits count as far as they have come
  double gpu_hours = 0;               ///< held on the cluster
  std::optional<GroupBurst> burst{};  ///< where the scenario says "burst"
  /// For both, by QueueBill::usd_per_held_gpu_hour() and BurstSummary::usd_per_held_gpu_hour().
  std::optional<double> usd{};
  /// Of those that have started or wait: time in which they held nothing. Nothing without any.
  std::optional<QueueSpread> wait_s{};
  /// Of those that have ended: from submission to end. Nothing without any.
  std::optional<QueueSpread> completion_s{};
  std::optional<QueueSpread> slowdown{};  ///< of those: completion over duration, at least 10 s
};

/// Starts and nodes as they were recorded, against those simulated.
struct RecordedQueue {
  std::size_t jobs = 0;
  double mean_wait_s = 0, simulated_mean_wait_s = 0;
  double median_gap_s = 0, most_gap_s = 0;  ///< between the two starts of a job
  std::size_t with_nodes = 0, same_nodes = 0;
  double inverted_pairs = 0;  ///< share of pairs that started in the other order
};

/// Jobs of one training: how its step was slowed by where they were and who was beside them.
struct TrainingSummary {
  std::string name;
  std::size_t jobs = 0, ended = 0;
  double reference_step_s = 0;  ///< alone on the cluster's first nodes
  /// Of ended jobs: time that they worked, over that at the reference pace. Nothing without any.
  std::optional<double> mean_slowdown{}, most_slowdown{};
};

/// How many of a licence jobs held.
struct LicenseUse {
  std::string name;
  int count = 0;
  double held_mean = 0;  ///< over what was simulated
};

/// What bursting into a cloud cost, and what it saved.
struct BurstSummary {
  BurstCounts counts;
  std::size_t jobs = 0;  ///< that burst, each once
  double held_gpu_hours = 0;
  std::optional<WithoutBursts> without{};
  std::optional<double> wait_saved_s{};  ///< mean of a job
  std::optional<double> saved_hours{};   ///< of waiting, all jobs together

  /// Nothing where nobody burst.
  [[nodiscard]] std::optional<double> usd_per_held_gpu_hour() const;
  /// Nothing where no waiting was saved, or that is not known.
  [[nodiscard]] std::optional<double> usd_per_saved_hour() const;
};

struct QueueSummary {
  QueueGroup all;
  std::vector<QueueGroup> by_gpus, by_account, by_user, by_partition,
      by_qos;  ///< the last four: of several
  std::vector<TrainingSummary> trainings;
  std::vector<CampaignSummary> campaigns;
  std::optional<TrialOrder> campaign_order;
  std::vector<LicenseUse> licenses;
  std::size_t never_started = 0, cut = 0, cancelled = 0;
  std::optional<double> makespan_s;  ///< from the first submission to the last end, if any
  double utilisation = 0;            ///< share of GPU time that jobs held
  std::optional<RecordedQueue> recorded;
  std::optional<QueuePower> power;
  QueueBill bill;
  std::optional<BurstSummary> burst{};  ///< where the scenario says "burst"

  /// What the cluster costs, by QueueBill, and what was rented. Nothing without either.
  [[nodiscard]] std::optional<double> usd_with_burst() const;
};

/// Requires a settled queue (campaign_summary.hpp).
QueueSummary summary_of(const QueueSpec& spec, const QueueResult& result);

/// Time that a job held its GPUs.
double held_seconds(const QueueJob& job, const JobOutcome& outcome, RunTime end);

}  // namespace lockstep
