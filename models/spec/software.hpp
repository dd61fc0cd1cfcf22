/// What a training software stack does: a statement about software, read from
/// models/presets/stacks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/spec/capabilities.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/host_offload.hpp"
#include "models/spec/learnt_level.hpp"
#include "models/spec/stack_switches.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

/// Which elementwise work is fused. Bytes are HBM traffic per element of the tensor named, 16-bit
/// training; models/layer/layer.hpp says which tensors there are.
struct ElementwiseTraffic {
  double norm_residual_bytes = 20;  ///< per T h and layer, forward: norms, dropout, residual adds
  double activation_bytes = 2;      ///< per MLP tensor element touched, forward
  double rotary_bytes = 4;          ///< per Q and K element, forward
  double score_bytes = 13;          ///< per attention score, forward, unfused attention only
  double norm_backward_ratio = 1.5;
  double activation_backward_ratio = 1.6;
  double score_backward_ratio = 1.2;
  double loss_bytes = 16;     ///< per logit, forward and backward together
  double quantise_bytes = 3;  ///< per product operand element of quantised formats, forward
  double quantise_backward_bytes = 4;  ///< per output-gradient element of quantised formats
  double permute_bytes = 8;            ///< per element of a token's copies for its experts, forward
  /// Where experts have biases: per element of their results, to add the last one, forward.
  double expert_bias_bytes = 4;
  double expert_bias_backward_ratio = 0.5;
  double slowdown = 1.0;  ///< time over that of ideal kernels of the same traffic
};

struct CommunicationPolicy {
  bool sequence_parallel_default =
      true;  ///< with tensor parallelism, when the scenario doesn't say
  /// Backward passes hide the input-gradient collective behind the weight-gradient product, and the
  /// gather of a saved input behind the input-gradient product (Megatron's asynchronous linear
  /// layer).
  bool async_tensor_backward = true;
  double tensor_exposed = 1.0;      ///< share of the other tensor-parallel collectives' time that
                                    ///< compute waits for: below 1 where products and transfers of
                                    ///< pieces are pipelined (Transformer Engine user buffers)
  double expert_overlapped = 0.12;  ///< share of dispatch and combine that compute waits for where
                                    ///< they run beside another micro batch
  double tensor_slowdown = 1.0;     ///< tensor-parallel collective time over that of nccl-tests
  double data_slowdown = 1.0;       ///< the same of collectives between replicas
  bool overlap_gradients = true;    ///< reduce buckets while the last backward passes run
  bool overlap_parameters = true;   ///< gather sharded parameters during the first forward passes
  double gradient_bytes = 4;        ///< per parameter, as reduced between replicas
  double bucket_parameters = 4e7;   ///< parameters of a gradient bucket; 0: one bucket
  bool overlap_pipeline = true;     ///< interleaved schedule: send and receive beside compute
  bool half_duplex_pipeline = false;    ///< neighbouring stages send in turn, not both at once
  bool scatter_gather_pipeline = true;  ///< a tensor-parallel rank sends only its 1/t of the tensor
  bool sharp = false;     ///< NCCL may let the fabric's switches sum all-reduces between replicas
  double sm_share = 0.0;  ///< share of the SMs that an overlapped collective takes while it runs
  ContextExchange context_exchange = ContextExchange::ring;     ///< when the scenario doesn't say
  ExpertDispatch expert_dispatch = ExpertDispatch::all_to_all;  ///< the same
  bool experts_share_tensor =
      false;  ///< cut by the tensor width too, when the scenario doesn't say
};

/// What a stack keeps in GPU memory. Bytes per parameter are of the parameters on the GPU before
/// sharding, bytes of saved tensors per token; models/layer/memory.hpp says how they add up.
struct MemoryPolicy {
  double optimiser_state_bytes = 12;  ///< per parameter: fp32 weight and both moments of Adam
  double replica_bytes = 0;  ///< more per parameter where there are replicas: gradient buckets
  double gather_bytes = 0;   ///< more per parameter in the step of a sharded optimiser
  /// Saved per MLP column of gated models: a fused SwiGLU keeps both halves of its input, the next
  /// product its output; 8 unfused, 4 if the output is made again.
  double gated_mlp_bytes = 6;
  bool rotary_copies = false;  ///< rotated Q, K, V are kept beside the product's output
  /// Under zero3, 16-bit shards of the weights stay beside the fp32 ones of the optimiser
  /// (DeepSpeed: 2 + 2 + 12 bytes over the shards, arXiv:1910.02054, section 5.3); else the
  /// optimiser's are the weights (FSDP).
  bool half_weight_shards = false;
  double logit_bytes = 10;  ///< per logit: the 16-bit product, its fp32 copy and the softmax
  /// Layers by which the host runs ahead of the GPU: memory of that many layers' gathered tensors
  /// waits for the stream of the collectives. The allocator gives it back when memory is short.
  double run_ahead_layers = 0;
  double fragmentation = 1.02;       ///< reserved over allocated memory
  Bytes workspace = gibibytes(0.5);  ///< in the allocator: cuBLAS and attention workspaces, buffers
  Bytes outside = gibibytes(2);      ///< outside of it: CUDA context, modules, NCCL's channels
  LayerSplit split = LayerSplit::even;  ///< of layers over pipeline stages
};

struct StackSpec {
  std::string name;
  std::string release;  ///< empty: the newest known
  std::string about;
  AttentionKernel attention = AttentionKernel::flash2;
  bool release_stands_in = false;  ///< for another one, which the preset does not know
  bool stands_in = false;          ///< for software that was not named, or that has no preset
  /// What it does; nothing: the preset does not say. The numbers below follow from it where the
  /// stack is composed (compose_stack.hpp).
  std::optional<StackSwitches> switches{};
  bool composed = false;  ///< from its switches, or changed by them: no run of it was measured
  /// Whether a job says the format that gradients accumulate in, and that they are reduced in; else
  /// those of the stack hold but for fp16 training, which has 16-bit ones.
  bool gradients_said = false, reduction_said = false;
  std::string starts_from;  ///< another preset as it is, which published runs may be of
  /// Constants that somebody changed of the preset that published runs are of, by their path.
  std::vector<std::string> changed{};
  std::vector<LearntLevel> learnt{};       ///< from somebody's own steps, by kind of job
  std::optional<LevelInForce> in_force{};  ///< of these, where one is of the job's kind
  /// What it can run; nothing: the preset does not say.
  std::optional<Capabilities> capabilities{};
  std::vector<Capability> allowed{};  ///< by the scenario, whether it can or not
  ElementwiseTraffic elementwise;
  CommunicationPolicy communication;
  MemoryPolicy memory;
  OffloadPolicy offload;
  Seconds launch_interval = microseconds(4);  ///< host time per kernel; 0 under CUDA graphs
  double kernels_forward = 30;                ///< kernels that the host launches per layer, forward
  double kernels_backward = 50;               ///< the same, backward
  Seconds step_overhead;           ///< per step: data loading, logging, host synchronisation
  double parameter_bytes = 2;      ///< per parameter, as gathered by a sharded optimiser
  double main_gradient_bytes = 4;  ///< accumulated gradient, per parameter
  /// Host time of a layer with experts, forward and backward together, below which it cannot go
  /// without CUDA graphs: the host waits for the counts of tokens per expert. Nothing where experts
  /// are padded to their capacity.
  Seconds expert_host_layer;
  Seconds expert_host_expert;       ///< more per expert that the GPU holds
  double expert_partial_graph = 1;  ///< share of both that stays where parts of a layer are graphs
  /// Time of kernels over what is counted for them: tails, waits and skew between ranks that no
  /// count of bytes and FLOP has.
  double level = 1;
  double level_alone = 1;          ///< the same of one GPU, which waits for nobody
  double grouped_slowdown = 1;     ///< time of products grouped by expert over that of dense ones
  double scan_efficiency = 0.035;  ///< share of the 16-bit peak that Mamba-2's chunk kernels reach
  double weight_gradient_traffic = 6;  ///< extra bytes per weight and micro batch to accumulate it
  double optimiser_bytes = 44;         ///< HBM traffic per local parameter of a step
  double optimiser_unsharded_bytes = 4;  ///< the same, per parameter of the rank before sharding
  std::string placement = "tp-dp-pp";    ///< rank order, innermost first
  int default_virtual_stages = 1;        ///< when pp > 1 and the scenario doesn't say
  /// What its policies repeat in the backward pass, from the least to the most short of whole
  /// layers, where they are not none and selective.
  std::vector<RecomputeModules> recompute_ladder;
  /// Its fitted constants that stopped at a bound of what is plausible, which nobody has explained:
  /// "elementwise.slowdown".
  std::vector<std::string> constants_at_bounds;
};

}  // namespace lockstep
