/// How much of a node's free GPUs is of no use to the pods that are to be expected: FGD's measure
/// of fragmentation (Weng et al. 2023, USENIX ATC, section 4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/scenario/filling_spec.hpp"

namespace lockstep {

/// What is left of a node.
struct NodeLeft {
  std::int64_t cpu_milli = 0;
  std::span<const int> gpu_milli;  ///< of each of its GPUs
  int model = 0;                   ///< number of its GPUs' model
};

/// A request that many pods make, and how likely the next one makes it.
struct TypicalPod {
  std::int64_t cpu_milli = 0;
  int gpus = 0, gpu_milli = 0;
  double share = 0;           ///< all shares add up to 1
  std::vector<bool> accepts;  ///< by number of a model: whether its GPUs will do
};

/// Whether GPUs of a model will do for a pod.
bool accepts_model(const PodShape& pod, const std::string& model);

/// The most frequent requests of a workload, as many as `share` of its pods make; memory apart they
/// are told apart by all that they ask for. Equals: whoever asks for more comes first.
/// Requires a pod, and share in (0, 1].
std::vector<TypicalPod> typical_pods(std::span<const PodShape> pods,
                                     std::span<const std::string> models, double share);

/// Thousandths of a GPU of the node that are free and of no use, in the mean over the next pod
/// (equations 1 to 3): all that is free where the pod asks for no GPU, for another model, for more
/// CPUs than are left, or for more GPUs; else what is left of those GPUs that alone hold too
/// little.
double fragments(const NodeLeft& node, std::span<const TypicalPod> typical);

}  // namespace lockstep
