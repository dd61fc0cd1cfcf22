/// Jobs that start because a real scheduler started them then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// Those with a recorded start before a moment. One whose GPUs are still taken, or that something
/// keeps, starts as soon as neither is so; the others do not wait for it.
class RecordedStarts {
 public:
  /// `spec` outlives it. With `until` 0 there are none.
  RecordedStarts(const QueueSpec& spec, RunTime until);

  [[nodiscard]] RunTime until() const { return until_; }
  /// When something has to be done next: a start, or `until`; INT64_MAX: never more.
  [[nodiscard]] RunTime next_at(RunTime now) const;
  /// Starts those whose time has come.
  void run(QueueState& state);

 private:
  [[nodiscard]] bool start(QueueState& state, std::uint32_t j) const;

  const QueueSpec* spec_;
  RunTime until_;
  std::vector<std::uint32_t> order_;  ///< by their starts
  std::size_t next_ = 0;
  std::vector<std::uint32_t> late_;  ///< due, and not started yet
};

}  // namespace lockstep
