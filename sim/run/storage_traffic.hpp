/// What checkpoints on their way and data that is read take from the training step: they share NICs
/// with gradients and pipeline messages, and servers with each other.
///
/// A mean field, not flows: every node sends at the same rate, all the time. What the step itself
/// sends and receives meets that rate on every NIC port, max-min fair, one stream against one: who
/// wants less than half of a port keeps what it wants, else both have half. Compared with
/// simulate_shared(), which moves every flow, in tests/sim/run/storage_traffic_test.cpp.
///
/// Left out: links behind the NICs, so a fabric that is oversubscribed between nodes and storage
/// slows both sides more; nodes that run ahead while others wait; PCIe and host memory, which
/// uploads from the host's copy share with a step's transfers only where GPU and NIC have no switch
/// of their own; uploads shorter than a step, which cost what their mean over a step says.
#pragma once

#include <optional>

#include "models/checkpoint.hpp"
#include "sim/run/run_spec.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// A step that has not all of its NICs.
struct SharedStep {
  double step_s = 0;
  /// Part of the time in which the step has a transfer on the way through a GPU's port, mean over
  /// all GPUs.
  double busy = 0;
};
/// simulate_step() where something else takes `taken` of every node's NICs, evenly over its ports.
/// Both ways: all of a step's transfers leave through one port and arrive through another, so that
/// what all ports send and what they receive slows the same ones; give the greater. Requires a
/// scenario from complete_scenario(), and less than all.
SharedStep shared_step(const Scenario& scenario, BytesPerSecond taken);

/// A checkpoint that is written while the job trains.
struct UploadPlan {
  BytesPerSecond rate;  ///< mean, all nodes together; 0: nothing is known of it, or the job waits
  Seconds finishes;     ///< with opening and closing
  double drag = 0;      ///< share of the job's speed that is lost meanwhile
};

class StorageTraffic {
 public:
  /// `step_s` is the step with the NICs to itself. All outlive this.
  StorageTraffic(const Scenario& scenario, const std::optional<DataSpec>& data, double step_s);

  /// What training reads, at most as much as storage gives.
  [[nodiscard]] BytesPerSecond data_read() const { return read_; }
  /// Of the job, over the one that never waits for data and shares no NIC with it.
  [[nodiscard]] double data_speed() const { return speed_; }

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
  [[nodiscard]] BytesPerSecond all_nics() const;

  const Scenario& scenario_;
  const std::optional<DataSpec>& data_;
  double step_s_;
  BytesPerSecond read_;
  double supplied_ = 1;  ///< of the data that a job at full speed needs
  double speed_ = 1;
};

}  // namespace lockstep
