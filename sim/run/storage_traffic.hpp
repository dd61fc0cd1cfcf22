/// What checkpoints on their way and data that is read cost the training step: they share NICs and
/// fabric with gradients and pipeline messages (shared_step.hpp), and servers with each other.
///
/// Left out: PCIe and host memory, which uploads from the host's copy share with a step's transfers
/// only where GPU and NIC have no switch of their own; data that a job has read ahead; uploads
/// shorter than a step, which cost what their mean over a step says.
#pragma once

#include <optional>

#include "models/checkpoint.hpp"
#include "models/data_supply.hpp"
#include "sim/run/shared_step.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// The node that a transfer by all nodes waits for: of a job on several kinds with the slowest NICs
/// and the slowest way from its GPUs to the host.
NodeSpec slowest_node(const Scenario& scenario);

/// The node as a storage meets it: where the fabric lets fewer bytes through to its top than all
/// NICs send, with NICs of a line rate as slow as that.
NodeSpec node_towards(const StorageSpec& storage, const Scenario& scenario);

/// A checkpoint that is written while the job trains.
struct UploadPlan {
  BytesPerSecond rate;  ///< mean, all nodes together; 0: nothing is known of it, or the job waits
  Seconds finishes;     ///< with opening and closing
  double drag = 0;      ///< share of the job's speed that is lost meanwhile
  std::optional<StepBand> step_band{};  ///< of the step beside it, where replicas are a sample
};

class StorageTraffic {
 public:
  /// `step_s` is the step with the NICs to itself, `steps` those of the run: where there are passes
  /// over the dataset after the first one, they may come from the nodes' drives. A job that spends
  /// a share `busy` of its time in such steps leaves its NICs alone in the rest. All outlive this.
  StorageTraffic(const Scenario& scenario, const std::optional<DataSpec>& data, double step_s,
                 double steps = 0, double busy = 1);

  /// What training reads of storage, mean over the run, at most as much as storage gives.
  [[nodiscard]] BytesPerSecond data_read() const { return read_; }
  /// Of the job, over the one that never waits for data and shares no NIC with it.
  [[nodiscard]] double data_speed() const { return speed_; }
  /// Passes over the dataset, below 1 where the run reads a part of it; the share of it that the
  /// nodes' drives hold after the first.
  [[nodiscard]] double epochs() const { return epochs_; }
  [[nodiscard]] double cached() const { return cached_; }
  [[nodiscard]] const EpochSpeed& first_epoch() const { return first_; }
  [[nodiscard]] const EpochSpeed& later_epochs() const { return later_; }
  /// What storage takes from a tier before it.
  [[nodiscard]] BytesPerSecond staging_write() const;
  /// Of the step beside reading, where its replicas are a sample.
  [[nodiscard]] const std::optional<StepBand>& data_step_band() const { return data_step_band_; }

  /// A server that reads and writes divides its time between them: it reads a part of
  /// its read bandwidth and writes the rest of its write bandwidth (its link is full duplex). Data
  /// that needs less than half of that time has it first. A `finishes` that was measured says how
  /// fast the upload is where nothing else slows it.
  [[nodiscard]] UploadPlan upload(const CheckpointSpec& spec, const CheckpointBytes& bytes) const;

 private:
  /// Of its servers' time: what reading data takes while a checkpoint is written, and what it
  /// needs.
  struct ServerTime {
    double reads = 0, needed = 0;
  };
  [[nodiscard]] ServerTime server_time(const StorageSpec& storage) const;
  [[nodiscard]] DataRates data_rates(BytesPerSecond supply) const;
  /// Slower for sharing the NICs with gradients: a pass that reads `needed` at full speed.
  void share_nics(BytesPerSecond needed, EpochSpeed& pass);
  /// Of the job, where its steps have that speed and the rest of its time all of it.
  [[nodiscard]] double slowed(double steps) const { return steps / (busy_ + (1 - busy_) * steps); }
  /// Reads a part of what it reads by itself.
  [[nodiscard]] NodeStream data_stream(double reads) const;

  const Scenario& scenario_;
  const std::optional<DataSpec>& data_;
  double step_s_, busy_;
  BytesPerSecond read_;
  double supplied_ = 1;  ///< of the data that a job at full speed needs
  double speed_ = 1;
  double epochs_ = 1, cached_ = 0;
  EpochSpeed first_, later_;
  std::optional<StepBand> data_step_band_;
};

}  // namespace lockstep
