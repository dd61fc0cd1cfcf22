/// How jobs of a queue burst into a cloud: who may, when, on what kind of rented nodes, and what
/// that costs.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/scenario/failure_mode.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

struct QueueBurst {
  /// The machines that are rented: so many `nodes` at a time at most.
  Cluster rented;
  bool unlike = false;  ///< of another kind than the cluster's: trainings have another step there
  int nodes = 0;        ///< at a time; 0: nobody bursts
  RunTime after = 0;    ///< since a job was free to start, or was sent back
  RunTime starts = 0;   ///< from when a node is rented until it serves
  RunTime keeps = 0;    ///< how long an empty node is kept
  double usd_per_gpu_hour = 0;  ///< of every GPU of a rented node, from then until it is given back
  double speed = 1;             ///< of jobs of given duration, as a share of that on the cluster

  // Who may. Empty: anybody.
  std::vector<std::uint16_t> accounts, partitions, qos;
  int least_gpus = 1, most_gpus = std::numeric_limits<int>::max();
  std::optional<int> least_priority{};

  // What a job moves, at a rate of its own.
  Bytes data_in{}, data_out{};
  BytesPerSecond data_rate{};
  double usd_per_gb_out = 0;  ///< of 1e9 bytes

  std::optional<double> most_usd{};  ///< that all bursts may cost together

  [[nodiscard]] RunTime moves_in() const { return moving(data_in); }
  [[nodiscard]] RunTime moves_out() const { return moving(data_out); }

 private:
  [[nodiscard]] RunTime moving(Bytes data) const {
    return data > Bytes{} ? to_run_time(data / data_rate) : 0;
  }
};

}  // namespace lockstep
