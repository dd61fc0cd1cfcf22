/// A trace's dependencies the other way round, the longest path through them, and sums over its
/// calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/trace/replay_trace.hpp"

namespace lockstep {

/// Whether a node takes its own duration, whatever other ranks do.
[[nodiscard]] constexpr bool takes_time(TraceNodeKind kind) { return kind <= TraceNodeKind::delay; }

/// Of node n: list[first[n]] to list[first[n + 1]], ascending.
struct TraceSuccessors {
  std::vector<std::uint32_t> first;  ///< by node, and the end
  std::vector<std::uint32_t> list;
};
TraceSuccessors successors_of(const Trace& trace);

/// The longest way through each rank, of the longest rank: nodes that take time one after another,
/// communication in no time. At most kLongestReplay.
StepTime longest_path(const Trace& trace, const TraceSuccessors& successors);

/// All calls of one of Trace::collectives.
struct CallTotals {
  StepTime moving, waiting;  ///< as in TraceCallTimes
  std::uint64_t calls = 0;
};
/// By operation, size, members and algorithm, the longest first. `algorithm`: of a collective that
/// was called.
std::vector<TraceCallTimes> call_times(
    const Trace& trace, const std::vector<CallTotals>& totals,
    const std::function<std::string_view(std::uint32_t collective)>& algorithm);

}  // namespace lockstep
