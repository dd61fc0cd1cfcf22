/// Conservative backfilling: every waiting job has a reservation, and none is ever delayed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// Free GPUs of every node over the time to come.
class FreeProfile {
 public:
  FreeProfile(RunTime now, std::vector<std::int32_t> free);

  /// From `begin` to `end` the holding is taken, or given where `sign` is -1.
  void take(const Holding& held, RunTime begin, RunTime end, int sign = 1);
  /// The earliest time at which a job fits for as long as `lasts`, and where; it fits some time.
  struct Slot {
    RunTime at = 0;
    Holding where{};
  };
  /// Where it goes on what is free, if it starts then.
  using PlaceAt = std::function<std::optional<Holding>(const FreeGpus&, RunTime)>;
  [[nodiscard]] std::optional<Slot> earliest(int gpus_per_node, int gpus, RunTime lasts,
                                             const PlaceAt& place_at) const;
  /// Begins a step at that time: one at which a job may start.
  void cut(RunTime at);

 private:
  std::map<RunTime, std::vector<std::int32_t>> steps_;  ///< by begin; the last lasts for ever
};

/// The reservations of all waiting jobs, kept from pass to pass.
class ConservativePass {
 public:
  /// In the order each job is moved to the earliest time at which it delays nobody: never to a
  /// later one, as its old reservation is still free for it. Whose time has come starts. Source:
  /// Mu'alem and Feitelson 2001, IEEE TPDS 12(6), section 2 (conservative, with compression).
  void run(QueueState& state);

 private:
  [[nodiscard]] FreeProfile profile_of(const QueueState& state) const;

  std::map<std::uint32_t, FreeProfile::Slot> slots_;  ///< by job
};

}  // namespace lockstep
