/// Adapters (LoRA) of a model that serves: what one takes on a GPU, and how much longer a pass
/// takes whose requests have several.
///
/// Beside a product x W run two thin ones, (x A) B, each row with the A and B of its own adapter
/// (Punica, arXiv:2310.18547; S-LoRA, arXiv:2311.03285): two kernels, whose launch shows as that of
/// other kernels of a pass does; every adapter of the pass is read once; x is read, x A written and
/// read in 32 bits, the result added up. Of tensor-parallel ranks each has its part of what the
/// product itself cuts, A of those that are cut by columns and B of those by rows is whole on each
/// (github:vllm-project/vllm:vllm/lora/layers, without fully_sharded_loras). Not measured: nobody
/// has timed these kernels for Lockstep.
#pragma once

#include "models/generation/serving_replica.hpp"
#include "models/spec/adapters.hpp"

namespace lockstep {

struct ServedAdapterCost {
  Bytes bytes;      ///< of one, on a GPU, in 16 bit
  Bytes all_bytes;  ///< of one, on all GPUs of a replica
  // Of a pass:
  Seconds pass;     ///< launches
  Seconds adapter;  ///< of each different one
  Seconds row;      ///< of each token that has one
};

/// Adapters of routed experts are left out. Requires a replica without data-parallel attention.
ServedAdapterCost served_adapter_cost(const ServingReplica& replica, const Adapters& adapters);

}  // namespace lockstep
