#include "models/checkpoint.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {

CheckpointBytes checkpoint_bytes(const TrainingJob& job) {
  constexpr double kWeights = 2, kMaster = 4, kMoments = 8;
  const double parameters = total_parameters(job.model);
  const Parallelism& cut = job.parallelism;
  const double model_ranks = static_cast<double>(cut.tensor) * cut.pipeline;
  const double sharing = cut.sharding == Sharding::none ? 1 : cut.data;
  return {.all = Bytes{parameters * (kWeights + kMaster + kMoments)},
          .per_gpu = Bytes{parameters / model_ranks * (kWeights + (kMaster + kMoments) / sharing)}};
}

CheckpointCost checkpoint_cost(const CheckpointBytes& bytes, const NodeSpec& node, int nodes,
                               CheckpointTarget target, bool asynchronous,
                               const StorageSpec& storage, BytesPerSecond drive) {
  assert(nodes >= 1);
  const BytesPerSecond nics = static_cast<double>(node.nics) * node.nic_bandwidth;
  const Bytes share = bytes.all / static_cast<double>(nodes);
  const Seconds copy = bytes.per_gpu / node.gpu.pcie_bandwidth;
  const auto client = [&](BytesPerSecond given) {
    return given > BytesPerSecond{} ? std::min(given, nics) : nics;
  };
  Seconds write, read;
  switch (target) {
    case CheckpointTarget::storage:
      write = storage.metadata +
              std::max(bytes.all / storage.write, share / client(storage.client_write));
      read = storage.metadata +
             std::max(bytes.all / storage.read, share / client(storage.client_read));
      break;
    case CheckpointTarget::local:
      write = read = share / drive;
      break;
    case CheckpointTarget::peers:
      write = read = share / nics;
      break;
  }
  return {.blocks = asynchronous ? copy : copy + write,
          .finishes = asynchronous ? write : Seconds{},
          .restores = read + copy};
}

}  // namespace lockstep
