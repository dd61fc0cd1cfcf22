/// What starts now: the passes of a scheduler over its queue, by admission and preemption.
#pragma once

#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// In the order: strict stops at the first job that cannot start, best_effort goes on behind it.
/// With PreemptionMode::evict a job takes the GPUs of running ones that come after it, in the order
/// that the rule of an extension gives where there is one.
void start_in_order(QueueState& state);

/// EASY backfilling: all wait behind the first job that cannot start, but those that do not delay
/// it: they end, by their limits, before it could start, or leave it the GPUs and licences that it
/// will get, as Slurm's backfill does with bf_licenses. Source:
/// Lifka 1995, JSSPP; Mu'alem and Feitelson 2001, IEEE TPDS 12(6).
void start_easy(QueueState& state);

/// By the admission of an extension (queue_policy_extension.hpp): it is asked once, and those that
/// it names start in its order, if they find a place.
void start_by_extension(QueueState& state);

/// All submitted jobs that have not ended, kept in their order from pass to pass.
class ReplanPass {
 public:
  void submitted(std::uint32_t j) { active_.push_back(j); }
  /// Places all of them anew, in the order, on an empty cluster; who does not fit is passed over,
  /// and equals keep the order that they had. A job that ran since the last pass has worked for
  /// that time but its overhead, whether it moves or not. Source: the rules of Muri's simulator for
  /// SRTF and SRSF (Zhao et al. 2022, SIGCOMM; github.com/Rivendile/Muri, simulator/run_sim.py).
  /// las: by those for Tiresias (its dlas_sim_jobs), also whenever a job falls a level. Of a level
  /// those that run come first, whoever came to it first among them; who falls to it comes last.
  void run(QueueState& state);

 private:
  void put_in_order(const QueueState& state);

  std::vector<std::uint32_t> active_;
  std::vector<double> levels_;  ///< las: of jobs, as they were put in order last
};

}  // namespace lockstep
