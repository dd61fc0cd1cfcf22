/// When which node breaks, and when it is whole again.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/indexed_heap.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// Exponential times between failures and of repairs, each drawn by node and number: what happens
/// to one node does not depend on what happens to others. What is planned comes besides.
class NodeFailureSource {
 public:
  NodeFailureSource(const NodeFailures& spec, int nodes, std::uint64_t seed,
                    const std::vector<PlannedBreak>& breaks = {});

  struct Event {
    RunTime at;
    int node;
    bool breaks;        ///< else it is mended
    bool stays_broken;  ///< it needs a repair; else it is back at once
  };
  /// INT64_MAX: nothing ever fails.
  [[nodiscard]] RunTime next_at() const;
  /// The next event; what follows it on that node is drawn. Requires that there is one.
  Event take();

 private:
  void draw_failure(std::uint32_t node, RunTime from);

  NodeFailures spec_;
  std::uint64_t seed_;
  IndexedHeap<RunTime> next_;
  std::vector<std::uint32_t> drawn_;
  std::vector<bool> broken_;
  std::vector<Event> planned_;  ///< the next one last
};

}  // namespace lockstep
