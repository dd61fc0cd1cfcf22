/// From a scenario's run to a campaign: steps, checkpoints and failure rates as numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/run/campaign.hpp"
#include "sim/run/data_plan.hpp"
#include "sim/run/run_work.hpp"
#include "sim/run/storage_traffic.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// What checkpoints of one kind write, against what takes them.
struct CheckpointWrites {
  Bytes each;
  Seconds blocks;            ///< the job waits: longer from one to the next than the interval
  BytesPerSecond sustained;  ///< of the storage, the drives or the peers' NICs; 0: not known
  double most_share = 1;     ///< of that, for an interval that is advised

  /// Mean while steps run, one saved every `interval` of them. Not of the whole
  /// run: recoveries write nothing, intervals that a failure cuts short end without a checkpoint,
  /// and planned stops save once more.
  [[nodiscard]] BytesPerSecond rate(Seconds interval) const { return each / (interval + blocks); }
  /// Of what the storage sustains; 0 where that is not known.
  [[nodiscard]] double share(Seconds interval) const {
    return sustained > BytesPerSecond{} ? rate(interval) / sustained : 0.0;
  }
  /// The shortest interval whose writes stay within `most_share`.
  [[nodiscard]] Seconds least_interval() const;
};

struct CampaignPlan {
  Campaign campaign;
  double step_s = 0;                     ///< of a healthy step, or iteration of "rl"
  double tokens_per_step = 0;            ///< that one trains on
  Flops flops_per_step;                  ///< model FLOP of training in it, attention in full
  std::optional<RlReport> iteration;     ///< of "rl"
  double steps = 0;                      ///< that the work is made of
  CheckpointBytes checkpoint;            ///< of one checkpoint
  std::vector<UploadPlan> uploads;       ///< by tier, beside training
  std::vector<CheckpointWrites> writes;  ///< by tier
  double data_read_bytes_per_s = 0;      ///< training data; 0: not asked for
  /// Of the job, over one that never waits for its data; in campaign.width_speed already.
  double data_speed = 1;
  std::optional<DataPlan> data;  ///< where the run says its dataset or its loader
  std::vector<std::string> assumptions;
};

/// Simulates the steps that the run needs: the healthy one (of "rl" an iteration), one for each
/// number of missing replicas, one for each fault of the fabric that the job goes on with, and one
/// beside each checkpoint or data stream that shares the training NICs. Throws InputError where the
/// run has neither a duration, a number of steps nor tokens to train on.
CampaignPlan plan_campaign(const RunWork& work, const RunSpec& run);

}  // namespace lockstep
