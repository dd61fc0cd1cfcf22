/// What a training software stack does: a statement about software, read from models/presets/stacks.
#pragma once

#include <string>

#include "models/hardware.hpp"
#include "models/units.hpp"

namespace lockstep {

/// Which elementwise work is fused. Bytes are HBM traffic per element of the tensor named, 16-bit
/// training; models/workload/layer.hpp says which tensors there are.
struct ElementwiseTraffic {
  double norm_residual_bytes = 20;  ///< per T h and layer, forward: norms, dropout, residual adds
  double activation_bytes = 2;      ///< per MLP tensor element touched, forward
  double rotary_bytes = 4;          ///< per Q and K element, forward
  double score_bytes = 13;          ///< per attention score, forward, unfused attention only
  double norm_backward_ratio = 1.5;
  double activation_backward_ratio = 1.6;
  double score_backward_ratio = 1.2;
  double loss_bytes = 16;           ///< per logit, forward and backward together
  double quantise_bytes = 3;        ///< per product operand element of quantised formats, forward
  double quantise_backward_bytes = 4;  ///< per output-gradient element of quantised formats
  double slowdown = 1.0;            ///< time over that of ideal kernels of the same traffic
};

struct CommunicationPolicy {
  bool sequence_parallel_default = true;  ///< with tensor parallelism, when the scenario doesn't say
  /// Backward passes hide the input-gradient collective behind the weight-gradient product, and the
  /// gather of a saved input behind the input-gradient product (Megatron's asynchronous linear layer).
  bool async_tensor_backward = true;
  double tensor_exposed = 1.0;     ///< share of the other tensor-parallel collectives' time that
                                   ///< compute waits for: below 1 where products and transfers of
                                   ///< pieces are pipelined (Transformer Engine user buffers)
  double tensor_slowdown = 1.0;    ///< tensor-parallel collective time over that of nccl-tests
  bool overlap_gradients = true;   ///< reduce buckets while the last backward passes run
  bool overlap_parameters = true;  ///< gather sharded parameters during the first forward passes
  double gradient_bytes = 4;       ///< per parameter, as reduced between replicas
  double bucket_parameters = 4e7;  ///< parameters of a gradient bucket; 0: one bucket
  bool overlap_pipeline = true;    ///< interleaved schedule: send and receive beside compute
  bool half_duplex_pipeline = false;  ///< neighbouring stages send in turn, not both at once
  bool scatter_gather_pipeline = true;  ///< a tensor-parallel rank sends only its 1/t of the tensor
  double sm_share = 0.0;           ///< share of the SMs that an overlapped collective takes
};

struct StackSpec {
  std::string name;
  std::string release;  ///< empty: the newest known
  std::string about;
  AttentionKernel attention = AttentionKernel::flash2;
  ElementwiseTraffic elementwise;
  CommunicationPolicy communication;
  Seconds launch_interval = microseconds(4);  ///< host time per kernel; 0 under CUDA graphs
  double kernels_forward = 30;   ///< kernels that the host launches per layer, forward
  double kernels_backward = 50;  ///< the same, backward
  Seconds step_overhead;                      ///< per step: data loading, logging, host synchronisation
  double parameter_bytes = 2;      ///< per parameter, as gathered by a sharded optimiser
  double main_gradient_bytes = 4;  ///< accumulated gradient, per parameter
  double weight_gradient_traffic = 6;  ///< extra bytes per weight and micro batch to accumulate it
  double optimiser_bytes = 44;     ///< HBM traffic per local parameter of a step
  double optimiser_unsharded_bytes = 4;  ///< the same, per parameter of the rank before sharding
  std::string placement = "tp-dp-pp";  ///< rank order, innermost first
  int default_virtual_stages = 1;      ///< when pp > 1 and the scenario doesn't say
};

}  // namespace lockstep
