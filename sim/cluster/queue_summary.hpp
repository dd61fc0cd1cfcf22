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

/// Jobs that have something in common.
struct QueueGroup {
  std::string name;
  std::size_t jobs = 0, ended = 0;
  double gpu_hours = 0;         ///< held
  std::optional<double> usd{};  ///< for these, by QueueBill::usd_per_held_gpu_hour()
  QueueSpread wait_s;           ///< of those that have started: in which they held nothing
  QueueSpread completion_s;     ///< of those that have ended: from submission to end
  QueueSpread slowdown;  ///< of those: completion over duration, of which 10 s count at least
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
  double mean_slowdown =
      0;  ///< of ended jobs: time that they worked, over that at the reference pace
  double most_slowdown = 0;
};

/// How many of a licence jobs held.
struct LicenseUse {
  std::string name;
  int count = 0;
  double held_mean = 0;  ///< over what was simulated
};

struct QueueSummary {
  QueueGroup all;
  std::vector<QueueGroup> by_gpus, by_account, by_user, by_partition,
      by_qos;  ///< the last four: of several
  std::vector<TrainingSummary> trainings;
  std::vector<CampaignSummary> campaigns;
  std::vector<LicenseUse> licenses;
  std::size_t never_started = 0, cut = 0, cancelled = 0;
  double makespan_s = 0;   ///< from the first submission to the last end
  double utilisation = 0;  ///< share of GPU time that jobs held
  std::optional<RecordedQueue> recorded;
  std::optional<QueuePower> power;
  QueueBill bill;
};

/// Requires a settled queue (campaign_summary.hpp).
QueueSummary summary_of(const QueueSpec& spec, const QueueResult& result);

/// Time that a job held its GPUs.
double held_seconds(const QueueJob& job, const JobOutcome& outcome, RunTime end);

}  // namespace lockstep
