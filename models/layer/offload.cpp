#include "models/layer/offload.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

/// Of a link's rate, by copies of pinned memory. Assumed: 12 to 13 GB/s are usual on PCIe 3.0 x16
/// (15.75), 25 to 26 on 4.0 (31.5) and 50 to 55 on 5.0 (63).
constexpr double kCopyEfficiency = 0.82;
constexpr double kHostGradient = 4;  // bytes; the host's Adam works in fp32

/// GPUs of a node that this job uses.
double gpus_at_work(const TrainingJob& job, const NodeSpec& node) {
  const Parallelism& par = job.parallelism;
  const double all = static_cast<double>(par.tensor) * par.context * par.pipeline * par.data;
  return std::min<double>(node.gpus, all);
}

/// Gradients leave with the pass that makes them, where no later pass adds to them on the GPU.
bool in_backward(const TrainingJob& job, const OffloadPolicy& policy) {
  return policy.gradients_in_backward && job.parallelism.pipeline == 1;
}

}  // namespace

BytesPerSecond host_copy_rate(const NodeSpec& node) {
  assert(node.host);
  return std::min(kCopyEfficiency * node.gpu.pcie_bandwidth,
                  1.0 / node.gpus * node.host->bandwidth);
}

Seconds copy_time(const HostCopies& copies, const NodeSpec& node) {
  const Bytes most = std::max(copies.down, copies.up);
  return most > Bytes{} ? most / host_copy_rate(node) : Seconds{};
}

double activation_share(const TrainingJob& job) {
  return static_cast<double>(job.offload.activation_layers) / job.model.layers;
}

HostCopies weight_copies(const TrainingJob& job, const StackSpec& stack, double weights,
                         double trained) {
  const HostOffload& host = job.offload;
  HostCopies copies;
  if (host.parameters) copies.up = Bytes{stack.offload.parameter_bytes * weights};
  if (in_backward(job, stack.offload)) {
    copies.down = Bytes{host.optimiser * stack.offload.gradient_bytes * trained};
  }
  return copies;
}

HostCopies activation_copies(const TrainingJob& job, Bytes saved, bool backward) {
  const Bytes moved = activation_share(job) * saved;
  return backward ? HostCopies{.down = {}, .up = moved} : HostCopies{.down = moved, .up = {}};
}

Seconds offloaded_step(const TrainingJob& job, const OffloadPolicy& policy, const NodeSpec& node,
                       double parameters, Seconds on_gpu) {
  const double share = job.offload.optimiser;
  if (share == 0) return on_gpu;
  const double moved = share * parameters;
  const BytesPerSecond copies = host_copy_rate(node);
  const BytesPerSecond memory = policy.efficiency / gpus_at_work(job, node) * node.host->bandwidth;
  const Seconds down =
      in_backward(job, policy) ? Seconds{} : Bytes{policy.gradient_bytes * moved} / copies;
  // Weights that live on the host come up where they are used.
  const Seconds up =
      job.offload.parameters ? Seconds{} : Bytes{policy.parameter_bytes * moved} / copies;
  const Seconds adam = Bytes{policy.optimiser_bytes * moved} / memory;
  const Seconds host = policy.overlaps_step ? std::max({down, adam, up}) : down + adam + up;
  return std::max(host, (1 - share) * on_gpu);
}

Bytes host_states(const TrainingJob& job, const StackSpec& stack, double parameters) {
  const double kept = stack.memory.optimiser_state_bytes + kHostGradient;
  // Where what comes up is no copy of the optimiser's own weight, it is kept beside it.
  const double copy = job.offload.parameters && stack.offload.parameter_bytes < 4
                          ? stack.offload.parameter_bytes
                          : 0;
  return Bytes{(job.offload.optimiser * kept + copy) * parameters};
}

}  // namespace lockstep
