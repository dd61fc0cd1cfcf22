/// What a checkpoint weighs, and how long it takes to write and read.
#pragma once

#include <cstdint>
#include <string>

#include "models/hardware.hpp"
#include "models/transformer.hpp"
#include "models/units.hpp"

namespace lockstep {

/// A file system or object store that all nodes share.
struct StorageSpec {
  std::string name;
  std::string about;
  BytesPerSecond write, read;                ///< of all servers together
  BytesPerSecond client_write, client_read;  ///< of one node; 0: its NICs decide
  Seconds metadata;                          ///< to open and to close all files of a checkpoint
};

struct CheckpointBytes {
  Bytes all;      ///< what storage gets
  Bytes per_gpu;  ///< of the GPU that has most to copy out
};

/// 16-bit weights, fp32 master weights and both moments of Adam: 2 + 4 + 4 + 4 bytes for each
/// parameter. Replicas save nothing twice; without a sharded optimiser the first one saves all of
/// it. Source of the 14 bytes: Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1 (gradients, 2
/// bytes, are not saved); BLOOM's 2.3 TB for 176 B are 13.1 (BigScience chronicles).
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
/// Copy: per_gpu / PCIe bandwidth. Write: the slowest of all / storage, of a node's share / its
/// client bandwidth, plus metadata; for peers a node's share / its NICs; for a local drive a node's
/// share / `drive`. Reading takes the read bandwidths; one replica reads a shard, and its peers get
/// it from there.
CheckpointCost checkpoint_cost(const CheckpointBytes& bytes, const NodeSpec& node, int nodes,
                               CheckpointTarget target, bool asynchronous,
                               const StorageSpec& storage, BytesPerSecond drive);

}  // namespace lockstep
