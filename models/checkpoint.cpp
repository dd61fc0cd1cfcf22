#include "models/checkpoint.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {

CheckpointBytes checkpoint_bytes(const TrainingJob& job) {
  constexpr double kWeights = 2, kMaster = 4, kMoments = 8;
  const double parameters = trained_parameters(job);
  const Parallelism& cut = job.parallelism;
  const double model_ranks = static_cast<double>(cut.tensor) * cut.pipeline;
  const double sharing = cut.shards();
  return {.all = Bytes{parameters * (kWeights + kMaster + kMoments)},
          .per_gpu = Bytes{parameters / model_ranks * (kWeights + (kMaster + kMoments) / sharing)}};
}

void add_up_servers(StorageSpec& storage) {
  assert(storage.servers >= 1);
  const auto of_one = [&](BytesPerSecond drives) {
    return storage.server_link > BytesPerSecond{} ? std::min(drives, storage.server_link) : drives;
  };
  storage.write = static_cast<double>(storage.servers) * of_one(storage.server_write);
  storage.read = static_cast<double>(storage.servers) * of_one(storage.server_read);
}

StorageRates storage_rates(const StorageSpec& storage, const NodeSpec& node,
                           const TransportSpec& transport, int nodes) {
  assert(nodes >= 1);
  const auto all = static_cast<double>(nodes);
  if (storage.network == StorageNetwork::local) return {all * storage.write, all * storage.read};
  const BytesPerSecond nics = payload_bandwidth(node, transport);
  const auto rate = [&](BytesPerSecond servers, BytesPerSecond client) {
    return std::min(servers, all * (client > BytesPerSecond{} ? std::min(client, nics) : nics));
  };
  return {rate(storage.write, storage.client_write), rate(storage.read, storage.client_read)};
}

CheckpointCost checkpoint_cost(const CheckpointBytes& bytes, const NodeSpec& node,
                               const TransportSpec& transport, int nodes, CheckpointTarget target,
                               bool asynchronous, const StorageSpec& storage) {
  assert(nodes >= 1);
  const Seconds copy = bytes.per_gpu / node.gpu.pcie_bandwidth;
  Seconds write, read;
  if (target == CheckpointTarget::peers) {
    write = read = bytes.all / (static_cast<double>(nodes) * payload_bandwidth(node, transport));
  } else {
    const StorageRates rates = storage_rates(storage, node, transport, nodes);
    write = storage.metadata + bytes.all / rates.write;
    read = storage.metadata + bytes.all / rates.read;
  }
  return {.blocks = asynchronous ? copy : copy + write,
          .finishes = asynchronous ? write : Seconds{},
          .restores = read + copy};
}

}  // namespace lockstep
