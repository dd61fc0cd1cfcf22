/// Files of a trace that is replayed, and the cluster that it is replayed on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/trace/formats/goal.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

/// The largest file of a rank.
constexpr std::size_t kTraceFileLimit = std::size_t{4} << 30;

/// What is said of a trace, as it was typed.
struct TraceAsked {
  std::vector<std::string> words;       ///< files and folders, one at least
  std::optional<std::string> from{};    ///< --from: a name of trace_formats(); none: as they look
  std::optional<std::string> groups{};  ///< --groups: the file; none: comm_groups.json beside them
  std::optional<std::string> step{};  ///< --step: the number of a mark, or "all"; none: the median
  bool as_recorded = false;           ///< --as-recorded: calls keep their recorded length
};

/// The files that the words name: a folder stands for all of its .et files or, without any, for its
/// .json and .json.gz files, or else for its .sqlite files; in order. Throws InputError for a
/// folder without such files.
std::vector<std::string> trace_files(const std::vector<std::string>& words);

/// Reads them, several at once, in the format that is asked for or the one that each looks like;
/// execution traces of PyTorch together with the Kineto trace of their rank. Throws InputError or
/// UsageError. `gpu` and `ranks` as in TraceReadOptions.
Trace read_trace(const TraceAsked& wanted, const GpuSpec& gpu, int ranks);

/// The ranks of the one GOAL schedule, text or binary, as it stands. Throws InputError or
/// UsageError, also for traces of other formats.
std::vector<GoalRank> read_goal_schedule(const TraceAsked& wanted);

/// What is said of the cluster that a trace is replayed on, as it was typed.
struct TraceClusterAsked {
  std::optional<std::string> cluster{};  ///< --cluster: a scenario's file, which the others change
  std::optional<std::string> node{}, nodes{}, fabric{};
};

/// That cluster, however many ranks the trace turns out to have.
class TraceCluster {
 public:
  /// With `changes` after them ("cluster.fabric.leaf_oversubscription=4"). Throws UsageError
  /// without a node.
  TraceCluster(const TraceClusterAsked& asked, const PresetStore& presets,
               const std::vector<std::string>& changes = {});
  [[nodiscard]] const GpuSpec& gpu() const { return gpu_; }
  /// GPUs of the cluster where its nodes are counted, else 0.
  [[nodiscard]] int ranks() const { return has_nodes_ ? nodes_ * gpus_per_node_ : 0; }
  /// A cluster with a GPU for each of `ranks`; as many nodes as that needs if nothing says. Throws
  /// InputError where it has fewer.
  [[nodiscard]] Cluster cluster(int ranks) const;
  /// What says that cluster, with what was asked for changed.
  [[nodiscard]] JsonCursor written(int ranks) const;

 private:
  [[nodiscard]] int nodes_for(int ranks) const {
    return (ranks + gpus_per_node_ - 1) / gpus_per_node_;
  }

  const PresetStore& presets_;
  std::string file_, text_;
  std::vector<std::string> sets_;
  GpuSpec gpu_;
  int gpus_per_node_ = 1;
  int nodes_ = 0;
  bool has_nodes_ = false;
};

}  // namespace lockstep
