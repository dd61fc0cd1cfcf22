/// Traces and clusters for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/replay_trace.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {

/// Nodes of DGX H100 on a fabric that only NICs limit.
inline Cluster trace_cluster(int nodes = 1) {
  const std::string text = R"({"cluster": {"node": "dgx_h100", "fabric": "ideal", "nodes": )" +
                           std::to_string(nodes) + "}}";
  return read_cluster(JsonCursor::parse("test", text).at("cluster"), presets());
}

inline TraceReplay replayed(const Trace& trace, const Cluster& cluster,
                            const TraceReplayOptions& options = {}) {
  return replay_trace(trace, match(trace), cluster, options);
}
inline TraceReplay replayed(std::vector<RankTrace> ranks, const Cluster& cluster,
                            const TraceReplayOptions& options = {}) {
  return replayed(join(std::move(ranks)), cluster, options);
}
inline TraceReplay replayed_goal(const std::string& text, const Cluster& cluster) {
  return replayed(read_goal("plan.goal", text), cluster);
}

}  // namespace lockstep::test
