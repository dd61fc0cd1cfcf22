/// Why one job waits, from instant to instant.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// The first of these that holds.
enum class WaitReason : std::uint8_t {
  held,                 ///< its user or an administrator holds it
  dependency,           ///< another job has not started, ended, or ended as it has to
  begin_time,           ///< it is not to start before; or it was requeued a moment ago
  array_limit,          ///< as many tasks of its array run as may
  limit,                ///< of a quality of service or an association
  advance_reservation,  ///< its own is not open, or others keep the nodes that it would fit on
  quota,                ///< its user's, its account's or its ClusterQueue's would be exceeded
  order,          ///< it fits; a job before it in the order does not, and all wait behind that one
  reservation,    ///< it fits; it would be in the way of a job that has been promised its GPUs
  scheduler,      ///< it fits; the scheduler has not looked since, or not as far
  fragmentation,  ///< as many GPUs are free as it asks for, but not on the nodes that it needs
  broken,         ///< it lacks no more GPUs than are in repair
  busy,           ///< others hold the GPUs
  suspended,      ///< it has started, and a job that preempted it holds its GPUs
  licenses,       ///< others hold the licences that it asks for
  drained,        ///< it lacks no more GPUs than are free on nodes that take no jobs
  power,          ///< it fits; the site would draw more than its cap
};
constexpr std::array<std::string_view, 17> kWaitReasonNames{
    "held",  "dependency", "begin_time",  "array_limit", "limit",         "advance_reservation",
    "quota", "order",      "reservation", "scheduler",   "fragmentation", "broken",
    "busy",  "suspended",  "licenses",    "drained",     "power"};

/// A stretch of waiting for one reason.
struct WaitSpan {
  RunTime begin = 0, end = 0;
  WaitReason reason = WaitReason::busy;
  std::int64_t free_gpus = 0;            ///< when it began, on nodes that the job may have
  std::size_t before = 0;                ///< jobs before it in the order that waited then
  std::optional<std::uint32_t> first{};  ///< the first of these
};

/// Follows a job through a simulation. The spans add up to what the job waits and is suspended.
class WaitWatch {
 public:
  explicit WaitWatch(std::uint32_t job) : job_(job) {}

  /// To be called when all that happens in an instant has happened, and at the end.
  void note(const QueueState& state);
  [[nodiscard]] const std::vector<WaitSpan>& spans() const { return spans_; }

 private:
  std::uint32_t job_;
  bool open_ = false;  ///< the last span still goes on
  std::vector<WaitSpan> spans_;
};

}  // namespace lockstep
