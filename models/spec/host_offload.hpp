/// What of a job lives in its nodes' memory instead of the GPUs'.
#pragma once

namespace lockstep {

struct HostOffload {
  /// Share of the optimiser: its states are on the host, and the host does their part of the step
  /// (ZeRO-Offload, Ren et al. 2021, arXiv:2101.06840; Megatron-Core's --optimizer-cpu-offload).
  double optimiser = 0;
  /// zero3: sharded weights are on the host too, and come up for each pass that gathers them
  /// (ZeRO-Infinity, arXiv:2104.07857; FSDP2's CPUOffloadPolicy).
  bool parameters = false;
  /// Layers of the model whose saved activations go down in the forward pass and come up in the
  /// backward pass (Transformer Engine's get_cpu_offload_context, cpu_offloading_num_layers).
  int activation_layers = 0;

  [[nodiscard]] bool any() const { return optimiser > 0 || activation_layers > 0; }
};

/// How a training software stack does it. Bytes are per parameter.
struct OffloadPolicy {
  /// Gradients go down beside the backward pass that makes them; else in the optimiser's step.
  bool gradients_in_backward = false;
  double bucket_parameters = 5e8;  ///< of those that leave together; as many more wait
  bool overlaps_step = false;      ///< copies of the step run beside the host's arithmetic
  double gradient_bytes = 4;       ///< down
  double parameter_bytes = 2;      ///< up
  double optimiser_bytes = 32;     ///< traffic of the host's memory: fp32 weight, gradient and both
                                ///< moments read, all but the gradient written, and a 16-bit copy
  double efficiency = 0.5;  ///< of the host's memory bandwidth, in the optimiser
};

}  // namespace lockstep
