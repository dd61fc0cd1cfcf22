/// What moving states, weights and activations between a GPU and its host costs.
#pragma once

#include "models/base/units.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

/// What one GPU copies, each direction by itself: down to the host, up to the GPU.
struct HostCopies {
  Bytes down, up;

  HostCopies& operator+=(const HostCopies& o) {
    down += o.down;
    up += o.up;
    return *this;
  }
};

/// Of pinned memory, one direction, all GPUs of the node at once: the GPU's link (PCIe or C2C) at
/// what copies reach of it, or its part of the host's memory bandwidth. Left out: GPUs that share a
/// PCIe switch's link, and a second socket in between. Requires node.host.
BytesPerSecond host_copy_rate(const NodeSpec& node);

/// Time that the copies take beside nothing: both directions run at once.
Seconds copy_time(const HostCopies& copies, const NodeSpec& node);

/// Share of the layers whose activations are on the host. They are spread evenly over the model, so
/// that every copy has the same time to hide in
/// (github:NVIDIA/TransformerEngine:transformer_engine/pytorch/cpu_offload.py).
double activation_share(const TrainingJob& job);

/// What one GPU's shard of the weights copies beside a pass: `weights`, by the bytes of 16-bit
/// ones, where the pass gathers them, and `trained`, whose gradients it makes.
HostCopies weight_copies(const TrainingJob& job, const StackSpec& stack, double weights,
                         double trained);
/// What saved tensors of a layer copy beside its pass: `saved` for each micro batch.
HostCopies activation_copies(const TrainingJob& job, Bytes saved, bool backward);

/// The optimiser's step over `parameters` of one GPU that takes `on_gpu` if all of them are there:
/// GPU and host do their parts side by side, and the host's is
///     down + Adam + up, or the longest of the three where the software overlaps them,
/// Adam at the pace of the host's memory, of which each of the node's `gpus` that work has a part.
Seconds offloaded_step(const TrainingJob& job, const OffloadPolicy& policy, const NodeSpec& node,
                       double parameters, Seconds on_gpu);

/// Memory of the host that the states of `parameters` of one GPU take.
Bytes host_states(const TrainingJob& job, const StackSpec& stack, double parameters);

}  // namespace lockstep
