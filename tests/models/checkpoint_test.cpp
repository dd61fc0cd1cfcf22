#include "models/checkpoint.hpp"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

/// Eight NICs of 50 GB/s: 400 GB/s in all, 320 of them payload.
NodeSpec eight_nics() {
  NodeSpec node;
  node.nics = 8;
  node.nic_bandwidth = BytesPerSecond{50e9};
  node.gpu.pcie_bandwidth = BytesPerSecond{50e9};
  return node;
}
TransportSpec four_fifths() {
  TransportSpec transport;
  transport.efficiency = 0.8;
  return transport;
}
constexpr CheckpointBytes kTwoTerabytes{.all = Bytes{2e12}, .per_gpu = Bytes{10e9}};
constexpr double kCopy_s = 0.2;

StorageSpec shared_storage(double write, double read) {
  StorageSpec storage;
  storage.write = BytesPerSecond{write};
  storage.read = BytesPerSecond{read};
  storage.metadata = Seconds{2};
  return storage;
}

}  // namespace

TEST_CASE("storage: servers add up, each as fast as the slower of its drives and its link") {
  StorageSpec storage;
  storage.servers = 10;
  storage.server_write = BytesPerSecond{5e9};
  storage.server_read = BytesPerSecond{20e9};
  add_up_servers(storage);
  CHECK(storage.write == BytesPerSecond{50e9});
  CHECK(storage.read == BytesPerSecond{200e9});
  storage.server_link = BytesPerSecond{12.5e9};
  add_up_servers(storage);
  CHECK(storage.write == BytesPerSecond{50e9});
  CHECK(storage.read == BytesPerSecond{125e9});
  storage.servers = 20;
  add_up_servers(storage);
  CHECK(storage.read == BytesPerSecond{250e9});
}

TEST_CASE("storage: what nodes carry of payload limits what servers give, as they state it") {
  StorageSpec storage = shared_storage(1e12, 1e12);
  const auto rates = [&](int nodes) {
    return storage_rates(storage, eight_nics(), four_fifths(), nodes);
  };
  CHECK(rates(2).write == BytesPerSecond{0.64e12});
  CHECK(rates(4).write == BytesPerSecond{1e12});
  storage.client_write = BytesPerSecond{25e9};
  CHECK(rates(4).write == BytesPerSecond{0.1e12});
  CHECK(rates(4).read == BytesPerSecond{1e12});
  storage.network = StorageNetwork::local;
  CHECK(rates(4).write == BytesPerSecond{4e12});
}

TEST_CASE("checkpoint: a restart reads all bytes and opens the files, then copies them in") {
  const StorageSpec storage = shared_storage(100e9, 400e9);
  const CheckpointCost cost = checkpoint_cost(kTwoTerabytes, eight_nics(), four_fifths(), 16,
                                              CheckpointTarget::storage, true, storage);
  CHECK(cost.restores.base_units() == doctest::Approx(2 + 2e12 / 400e9 + kCopy_s));
  CHECK(cost.finishes.base_units() == doctest::Approx(2 + 2e12 / 100e9));
  CHECK(cost.blocks.base_units() == doctest::Approx(kCopy_s));
}

TEST_CASE("checkpoint: a job that waits for it waits for the copy and for the storage") {
  const StorageSpec storage = shared_storage(100e9, 400e9);
  const CheckpointCost cost = checkpoint_cost(kTwoTerabytes, eight_nics(), four_fifths(), 16,
                                              CheckpointTarget::storage, false, storage);
  CHECK(cost.blocks.base_units() == doctest::Approx(kCopy_s + 2 + 20));
  CHECK(cost.finishes == Seconds{});
}

TEST_CASE("checkpoint: drives of the nodes write side by side, peers get theirs over all NICs") {
  StorageSpec drives = shared_storage(5e9, 10e9);
  drives.network = StorageNetwork::local;
  drives.metadata = {};
  const CheckpointCost local = checkpoint_cost(kTwoTerabytes, eight_nics(), four_fifths(), 16,
                                               CheckpointTarget::local, true, drives);
  CHECK(local.finishes.base_units() == doctest::Approx(2e12 / 16 / 5e9));
  CHECK(local.restores.base_units() == doctest::Approx(2e12 / 16 / 10e9 + kCopy_s));
  const CheckpointCost peers = checkpoint_cost(kTwoTerabytes, eight_nics(), four_fifths(), 16,
                                               CheckpointTarget::peers, true, {});
  CHECK(peers.finishes.base_units() == doctest::Approx(2e12 / 16 / 320e9));
}

TEST_CASE("checkpoint: 14 bytes of each weight, of which a GPU has its share of the model") {
  // 24 layers of 12 h^2, two matrices of V h, biases and norms: gpt_1_7b's 2 + 4 + 8 bytes each.
  TrainingJob job;
  job.model.layers = 24;
  job.model.hidden = 2048;
  job.model.heads = job.model.kv_heads = 16;
  job.model.head_dim = 128;
  job.model.ffn = 8192;
  job.model.vocabulary = 51200;
  const double h = 2048;
  // RMS norms: two a layer and the last.
  const double weights = 24 * (12 * h * h + 2 * h) + 2 * 51200 * h + h;
  const auto of = [&] { return checkpoint_bytes(job); };
  CHECK(of().all.base_units() == doctest::Approx(14 * weights));
  CHECK(of().per_gpu.base_units() == doctest::Approx(14 * weights));
  job.parallelism.tensor = 2;
  job.parallelism.pipeline = 4;
  job.parallelism.data = 16;
  // Without a sharded optimiser the first replica has all of it, an eighth on each of its GPUs.
  CHECK(of().per_gpu.base_units() == doctest::Approx(14 * weights / 8));
  // A sharded one: each GPU copies a sixteenth of the 12 bytes, and the first the weights.
  job.parallelism.sharding = Sharding::zero1;
  CHECK(of().per_gpu.base_units() == doctest::Approx(weights / 8 * (2 + 12.0 / 16)));
  CHECK(of().all.base_units() == doctest::Approx(14 * weights));
}

TEST_CASE("storage: a client is no faster than its node's NICs") {
  StorageSpec storage = shared_storage(1e13, 1e13);
  storage.client_write = BytesPerSecond{350e9};  // eight NICs carry 320 GB/s
  storage.client_read = BytesPerSecond{300e9};
  const StorageRates rates = storage_rates(storage, eight_nics(), four_fifths(), 2);
  CHECK(rates.write == BytesPerSecond{640e9});
  CHECK(rates.read == BytesPerSecond{600e9});
}

}  // namespace lockstep
