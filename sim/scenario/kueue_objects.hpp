/// What a Kubernetes manifest says of Kueue: ClusterQueues, LocalQueues, classes of priority, jobs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/cluster_queue.hpp"

namespace lockstep {

struct KueueLocalQueue {
  std::string name;  ///< "namespace/name"; without a namespace its name alone
  std::string cluster_queue;
};

/// A Workload. Times are seconds since 1970; below 0: not said.
struct KueueWorkload {
  std::string name;         ///< "namespace/name"
  std::string local_queue;  ///< "namespace/name"
  std::optional<int> priority{};
  std::string priority_class{};
  std::int64_t gpus = 0;
  double submit = -1, start = -1, end = -1;
  double limit = -1;  ///< seconds: maximumExecutionTimeSeconds
  bool active = true;
};

struct KueueObjects {
  std::vector<ClusterQueue> queues;  ///< those with a quota of GPUs
  std::vector<std::string> without;  ///< those without one
  std::vector<QueueCohort> cohorts;
  std::vector<FairStrategy> fair_sharing;  ///< of a Configuration that enables it
  bool weighted = false;                   ///< some queue or cohort says fairSharing/weight
  std::vector<KueueLocalQueue> local_queues;
  std::map<std::string, int> priorities;  ///< WorkloadPriorityClasses by name
  std::vector<KueueWorkload> workloads;
};

/// Reads the documents of a YAML file, also those in a List, as `kubectl get -o yaml` writes it.
/// `notes` has a line for each kind and each setting that does not act. Throws InputError for a
/// text that is no YAML, and for values that mean nothing.
KueueObjects read_kueue_objects(const std::string& file, std::string_view text,
                                std::vector<std::string>& notes);

}  // namespace lockstep
