/// Several jobs, other traffic and failures on one fabric. read_shared_scenario() makes it from
/// JSON, shared_run.hpp simulates it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// A training job that repeats its step.
struct SharedJob {
  std::string name;
  Scenario scenario;       ///< on nodes 0, 1, ... of its own; its fabric is the cluster's
  std::vector<int> nodes;  ///< of the cluster, in the order of the job's
  Seconds start;
};

struct TrafficProcess;  // traffic_process_extension.hpp

/// Checkpoints, storage, other tenants: every sender's NICs send to the receivers in turn.
struct BackgroundTraffic {
  std::string name;
  std::vector<int> from, to;  ///< nodes
  Bytes size;                 ///< of one sending node, over all its NICs
  Seconds start;
  Seconds
      every;  ///< from start to start, while jobs run; 0: once. One that is late delays the next
  /// Of code outside the tree, which says when rounds begin and what they send; null: `every` does.
  const TrafficProcess* process = nullptr;
};

/// Something breaks or slows down, and may be repaired.
struct FabricEvent {
  FabricFault fault;
  Seconds at;
  Seconds lasts;          ///< 0: for good
  Seconds every;          ///< from one to the next, while jobs run (flapping); 0: once
  Seconds reroute_after;  ///< until routes avoid it; what would cross it waits or crawls
};

struct SharedScenario {
  std::string file;
  std::string about;
  Cluster cluster;
  int steps = 3;  ///< that every job completes at least; all go on until the last has
  std::vector<SharedJob> jobs;
  std::vector<BackgroundTraffic> background;
  std::vector<FabricEvent> events;
  std::optional<PowerSpec> power;          ///< asked for; that of every job too
  std::optional<double> usd_per_gpu_hour;  ///< asked for, or known beside "power"
  std::vector<std::string> assumptions;
};

/// Throws InputError. scenarios/README.md describes the format. `profiles`: of the cluster's card
/// and network (read_profile.hpp), for all jobs.
SharedScenario read_shared_scenario(const JsonCursor& root, const PresetStore& presets,
                                    std::span<const std::string> profiles = {});

/// A list of nodes of a cluster, or {"first", "count", "stride"}. Throws InputError.
std::vector<int> read_node_list(const JsonCursor& from, int cluster_nodes);

/// "jobs" of a scenario about something else that shares the cluster, which holds all but the nodes
/// `taken`. Throws InputError.
SharedScenario read_jobs_beside(const JsonCursor& jobs, const Cluster& cluster,
                                std::span<const int> taken, const PresetStore& presets);

/// A training on so many nodes of a cluster, as its object says it: model, layout, batch and so on.
/// Which nodes they are is up to the caller. Throws InputError; the object's other keys are the
/// caller's to read, before.
ScenarioDraft draft_training(const JsonCursor& from, const Cluster& cluster, int nodes,
                             const PresetStore& presets);
/// Completes a drafted training on the cluster's fabric.
Scenario complete_training(ScenarioDraft& draft, const Cluster& cluster, const PresetStore& presets,
                           std::span<const Profile> profiles = {});

}  // namespace lockstep
