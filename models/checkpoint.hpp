/// What a checkpoint weighs, and how long it takes to write and read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

/// What carries a storage's traffic.
enum class StorageNetwork : std::uint8_t {
  own,       ///< a network of its own: gradients do not meet it
  training,  ///< the NICs and the fabric that carry gradients
  local,     ///< none: each node has such a server of its own, its drives
};
constexpr std::array<std::string_view, 3> kStorageNetworks{"own", "training", "local"};

/// A file system or object store: servers that all nodes share, or a node's own drives.
struct StorageSpec {
  std::string name;
  std::string about;
  // Payload, as somebody states or measured it: no transport's share comes off.
  BytesPerSecond write, read;                ///< of all servers together; local: of one node's
  BytesPerSecond client_write, client_read;  ///< of one node; 0: its NICs decide
  Seconds metadata;                          ///< to open and to close all files of a checkpoint
  StorageNetwork network = StorageNetwork::own;
  /// Where it is given by its servers; 0: `write` and `read` are given.
  int servers = 0;
  BytesPerSecond server_write, server_read;  ///< of one server's drives
  BytesPerSecond server_link;                ///< of one server, each way; 0: no limit
  friend bool operator==(const StorageSpec&, const StorageSpec&) = default;
};
/// Sets `write` and `read` to servers x min(drives, link). Requires servers >= 1.
void add_up_servers(StorageSpec& storage);

/// What all nodes together can write and read while nothing else does: the least of what the
/// servers, the clients and (except for local drives) the nodes' NICs carry of payload over this
/// transport. Servers and clients: as stated.
struct StorageRates {
  BytesPerSecond write, read;
};
StorageRates storage_rates(const StorageSpec& storage, const NodeSpec& node,
                           const TransportSpec& transport, int nodes);

struct CheckpointBytes {
  Bytes all;      ///< what storage gets
  Bytes per_gpu;  ///< of the GPU that has most to copy out
};

/// 16-bit weights, fp32 master weights and both moments of Adam: 2 + 4 + 4 + 4 bytes for each
/// parameter that is trained. Replicas save nothing twice; without a sharded optimiser the first
/// one saves all of it. Source of the 14 bytes: Rajbhandari et al. 2020, arXiv:1910.02054,
/// section 3.1 (gradients, 2 bytes, are not saved); BLOOM's 2.3 TB for 176 B are 13.1 (BigScience
/// chronicles).
CheckpointBytes checkpoint_bytes(const TrainingJob& job);

/// Where a checkpoint goes first.
enum class CheckpointTarget : std::uint8_t {
  storage,  ///< the shared storage
  local,    ///< a drive of the node: quick, lost with the node
  peers,    ///< memory of another node, over the NICs: outlives one node
};

/// How a checkpoint is written.
struct CheckpointCost {
  Seconds blocks;    ///< the job waits
  Seconds finishes;  ///< after that, until all of it is there
  Seconds restores;  ///< reading it back
};
/// Synchronous: the job waits for all of it. Asynchronous: for the copy to host memory over PCIe
/// alone; the rest is written while it trains.
/// Copy: per_gpu / PCIe bandwidth. Write: all / storage_rates().write, plus metadata; for peers a
/// node's share / the payload of its NICs. Reading takes the read bandwidths; one replica reads a
/// shard, and its peers get it from there. What training takes of the NICs meanwhile is not in
/// here: sim/run/storage_traffic.hpp has it. `storage` is not used for peers.
CheckpointCost checkpoint_cost(const CheckpointBytes& bytes, const NodeSpec& node,
                               const TransportSpec& transport, int nodes, CheckpointTarget target,
                               bool asynchronous, const StorageSpec& storage);

}  // namespace lockstep
