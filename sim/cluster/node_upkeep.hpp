/// Takes nodes out of a cluster with a queue and back again: drains, repairs, lemons, burn-in.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/node_failures.hpp"
#include "sim/cluster/queue_state.hpp"

namespace lockstep {

/// What became of nodes that were looked after.
struct NodeHealthCounts {
  std::int64_t drained = 0;         ///< nodes that drains took out, when their last jobs had ended
  RunTime emptying = 0;             ///< of these, all times from the drain to that end
  std::int64_t stopped_jobs = 0;    ///< by a drain's deadline
  std::int64_t lemons = 0;          ///< nodes that fail more often, when the queue begins
  std::int64_t lemon_failures = 0;  ///< of `node_failures`
  std::int64_t taken_out = 0;       ///< how often a node broke too often
  std::int64_t lemons_found = 0;    ///< of those, lemons
};

/// What happens to nodes beside failures that are repaired as usual. A drain of a node that is
/// broken begins with its repair's end; one of a node that is out already makes that longer.
class NodeUpkeep {
 public:
  /// `spec` outlives it, and the failures.
  NodeUpkeep(const QueueSpec& spec, NodeFailureSource& failures);

  /// Without it there is nothing to do, and failures go to QueueState.
  [[nodiscard]] bool used() const { return used_; }
  /// INT64_MAX: nothing happens by itself.
  [[nodiscard]] RunTime next_at() const;
  /// Drains that begin, deadlines, ends of maintenance and of burn-in, up to now.
  void run(QueueState& state);
  /// A failure, or the end of a repair. Whether it hit a node that was there.
  bool fail_or_mend(QueueState& state, const NodeFailureSource::Event& event);
  /// Drained nodes whose last jobs have ended are gone from now on. To be called when all that
  /// happens in an instant has happened.
  void take_emptied(QueueState& state);
  [[nodiscard]] const NodeHealthCounts& counts() const { return counts_; }

 private:
  enum class Stage : std::uint8_t {
    serving,
    broken,
    emptying,    ///< it takes no new jobs
    out,         ///< in maintenance, or in a lemon's repair
    burning_in,  ///< it is tested
  };
  struct Node {
    Stage stage = Stage::serving;
    bool lemon = false;
    RunTime work = 0;                 ///< of a drain that has not begun
    RunTime since = 0;                ///< emptying
    RunTime until = 0;                ///< out, burning_in
    std::vector<RunTime> failures{};  ///< the last ones, the oldest first
  };
  struct Planned {
    RunTime at;
    std::uint32_t drain;
    int node;
  };

  Node& of(int node) { return nodes_[static_cast<std::size_t>(node)]; }
  void drain(QueueState& state, int node, const NodeDrain& drain);
  void wake(QueueState& state, int node);
  void take_out(QueueState& state, int node, RunTime lasts);
  void end_repair(QueueState& state, int node);
  /// Whether the node broke too often, with this failure.
  bool breaks_too_often(Node& node, RunTime now) const;

  const QueueSpec* spec_;
  NodeFailureSource* failures_;
  bool used_;
  std::vector<Node> nodes_;
  std::vector<Planned> planned_;  ///< the next one last
  IndexedHeap<RunTime> wakes_;    ///< of nodes: deadlines and ends
  std::vector<int> emptying_;
  NodeHealthCounts counts_;
};

}  // namespace lockstep
