/// Nodes that are set aside for a while, and who may be placed where because of it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/node_set.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A job keeps off the nodes of every reservation but its own that its time limit would meet. In
/// its own it starts on the reservation's nodes alone, and not before it begins or when it has
/// ended. Source: Slurm 22.05, src/slurmctld/reservation.c, job_test_resv().
class ReservedNodes {
 public:
  /// `spec` outlives it.
  explicit ReservedNodes(const QueueSpec& spec);

  [[nodiscard]] bool any() const { return !nodes_.empty(); }
  /// The next time after `now` at which one is announced, begins or ends; INT64_MAX: none.
  [[nodiscard]] RunTime next_change(RunTime now) const;
  /// Of the nodes `within` (null: all), those that a job of the reservation (0: of none) may have
  /// from `start` to `end`, by what is announced at `now`.
  [[nodiscard]] NodeSet open_to(const NodeSet* within, std::uint16_t reservation, RunTime start,
                                RunTime end, RunTime now) const;
  /// Nodes that are reserved at `now`.
  [[nodiscard]] NodeSet reserved_at(RunTime now) const;
  /// When a job of it is stopped; INT64_MAX: it is not.
  [[nodiscard]] RunTime stops_at(std::uint16_t reservation) const;
  [[nodiscard]] const AdvanceReservation& of(std::uint16_t reservation) const {
    return spec_->reservations[reservation - std::size_t{1}];
  }
  [[nodiscard]] std::uint16_t count() const { return static_cast<std::uint16_t>(nodes_.size()); }

 private:
  const QueueSpec* spec_;
  std::vector<NodeSet> nodes_;
};

}  // namespace lockstep
