/// What the campaigns of a simulated queue come to: when they are done, what they held, and what
/// stopping the worse trials early has saved.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/queue_spread.hpp"
#include "sim/cluster/simulate_queue.hpp"
#include "sim/cluster/trial_order.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Trials of a bracket that came to a rung.
struct RungSummary {
  std::size_t bracket = 0, rung = 0;  ///< from 0
  double end = 1;                     ///< of the rung, as a share of a trial
  std::size_t trials = 0, ended = 0, went_on = 0;
  double gpu_hours = 0;  ///< held
};

struct CampaignSummary {
  std::string name;
  StoppingKind stopping = StoppingKind::none;
  std::size_t trials = 0, finished = 0;  ///< begun, or yet to begin; run to their ends
  std::size_t jobs = 0;                  ///< submitted, of all rungs
  std::optional<double> done_s;          ///< when its last job ended; nothing before that
  std::optional<double> makespan_s;      ///< from its submission to that
  /// At least so long, if the cluster, or its partition, were its own: what its longest trial
  /// worked, or what all worked over as many as fit at a time.
  std::optional<double> ideal_s;
  double gpu_hours = 0;                   ///< held
  double unstopped_gpu_hours = 0;         ///< if all trials ran to their ends undisturbed
  std::optional<double> saved_gpu_hours;  ///< of those; when it is done
  std::optional<double> usd;              ///< by QueueBill::usd_per_held_gpu_hour()
  std::optional<Joules> energy;           ///< of its GPUs with their share of nodes and cooling
  std::optional<QueueSpread> wait_s;      ///< of its jobs that have started or wait
  std::vector<RungSummary> rungs;         ///< by bracket
  /// From its submission to the end of the best of the trials that ran to their ends; when it is
  /// done.
  std::optional<double> best_s;
  /// Its brackets, where it has several and is done: each counts as much as the best of all trials
  /// is likely to be in it, by their number.
  std::optional<TrialOrder> brackets;
};

/// Jobs of trials that went on are submitted when they were, all jobs are numbered in the order of
/// their submission, and those of trials that were stopped are gone: what follows need not know of
/// campaigns. Requires that the result is that of the queue. Does nothing without campaigns.
void settle_campaigns(QueueSpec& spec, QueueResult& result);

/// Requires a settled queue. Trials pay for what they held on the cluster and on rented nodes.
std::vector<CampaignSummary> campaigns_of(const QueueSpec& spec, const QueueResult& result,
                                          std::optional<double> usd_per_held_gpu_hour,
                                          std::optional<double> usd_per_rented_gpu_hour);

/// One campaign after another, each with the cluster its own; all count alike. Nothing of fewer
/// than two, or while one is not done.
std::optional<TrialOrder> order_of_campaigns(const std::vector<CampaignSummary>& campaigns,
                                             std::optional<double> usd_per_held_gpu_hour);

}  // namespace lockstep
