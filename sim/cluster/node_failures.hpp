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
                    const std::vector<PlannedBreak>& breaks = {}, const LemonNodes& lemons = {});

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

  /// QueueHealth::lemons: nodes that fail more often than others, by number.
  [[nodiscard]] const std::vector<int>& lemons() const { return lemons_; }
  /// Nothing drawn happens to the node until resume().
  void pause(int node);
  void resume(int node, RunTime at);
  /// A lemon fails from now on no more often than others. Requires that it is paused.
  void cure(int node);

 private:
  void draw_failure(std::uint32_t node, RunTime from);

  NodeFailures spec_;
  std::uint64_t seed_;
  IndexedHeap<RunTime> next_;
  std::vector<std::uint32_t> drawn_;
  std::vector<bool> broken_;
  std::vector<Event> planned_;  ///< the next one last
  std::vector<int> lemons_;
  std::vector<double> mean_s_;  ///< between failures, by node; empty: all are alike
  double good_mean_s_ = 0;      ///< of nodes that are no lemons, where there are some
};

}  // namespace lockstep
