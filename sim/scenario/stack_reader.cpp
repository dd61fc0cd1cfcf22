// Reads what a training software stack does.
#include <array>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostLadderRungs = 10;  // of the ladder of recomputation

void declare_elementwise(const DeclaredMembers& member, ElementwiseTraffic& out) {
  member.optional("norm_residual_bytes", out.norm_residual_bytes, kPerElement,
                  "Per token, hidden element and layer, forward: norms, dropout, residual adds");
  member.optional("activation_bytes", out.activation_bytes, kPerElement,
                  "Per MLP tensor element touched, forward");
  member.optional("rotary_bytes", out.rotary_bytes, kPerElement, "Per Q and K element, forward");
  member.optional("score_bytes", out.score_bytes, kPerElement,
                  "Per attention score, forward, unfused attention only");
  member.optional("permute_bytes", out.permute_bytes, kPerElement,
                  "Per element of a token's copies for its experts, forward");
  member.optional("expert_bias_bytes", out.expert_bias_bytes, kPerElement,
                  "Of experts with biases: per element of their results, to add the last one, "
                  "forward; 0: their product adds it");
  member.optional("expert_bias_backward_ratio", out.expert_bias_backward_ratio, kRatio,
                  "Backward traffic over forward traffic");
  member.optional("norm_backward_ratio", out.norm_backward_ratio, kRatio,
                  "Backward traffic over forward traffic");
  member.optional("activation_backward_ratio", out.activation_backward_ratio, kRatio,
                  "Backward traffic over forward traffic");
  member.optional("score_backward_ratio", out.score_backward_ratio, kRatio,
                  "Backward traffic over forward traffic");
  member.optional("loss_bytes", out.loss_bytes, kPerElement,
                  "Per logit, forward and backward together");
  member.optional("quantise_bytes", out.quantise_bytes, kPerElement,
                  "Per product operand element of quantised formats, forward");
  member.optional("quantise_backward_bytes", out.quantise_backward_bytes, kPerElement,
                  "Per output-gradient element of quantised formats");
  member.optional("slowdown", out.slowdown, kRatio,
                  "Time over that of ideal kernels of the same traffic");
}

void declare_communication(const DeclaredMembers& member, CommunicationPolicy& out) {
  member.optional("sequence_parallel_default", out.sequence_parallel_default,
                  "Sequence parallelism with tensor parallelism, when the scenario does not say");
  member.optional("async_tensor_backward", out.async_tensor_backward,
                  "Backward passes hide tensor-parallel collectives behind products");
  member.optional("tensor_exposed", out.tensor_exposed, kShare,
                  "Share of the other tensor-parallel collectives' time that compute waits for; 0: "
                  "products beside them are cut into pieces, and what fits beside none is");
  member.optional("tensor_slowdown", out.tensor_slowdown, kRatio,
                  "Tensor-parallel collective time over that of nccl-tests");
  member.optional("data_slowdown", out.data_slowdown, kRatio,
                  "Time of collectives between replicas over that of nccl-tests");
  member.optional("expert_overlapped", out.expert_overlapped, kShare,
                  "Where dispatch and combine run beside another micro batch: the share of their "
                  "time that computation waits for even so");
  member.optional("expert_dispatch", out.expert_dispatch, kExpertDispatchNames,
                  "How tokens get to their experts, when the scenario doesn't say");
  member.optional("overlap_gradients", out.overlap_gradients,
                  "Reduce buckets while the last backward passes run");
  member.optional("overlap_parameters", out.overlap_parameters,
                  "Gather sharded parameters during the first forward passes");
  member.optional("gradient_bytes", out.gradient_bytes, Interval{0.5, 16},
                  "Per parameter, as reduced between replicas; default: the stack's, of fp16 "
                  "training 2");
  member.optional("bucket_parameters", out.bucket_parameters, Interval{1e4, 1e15, false, true},
                  "Parameters of a gradient bucket; 0: one bucket");
  member.optional("overlap_pipeline", out.overlap_pipeline,
                  "Interleaved schedule: send and receive beside compute");
  member.optional("half_duplex_pipeline", out.half_duplex_pipeline,
                  "Neighbouring stages send in turn, not both at once");
  member.optional("scatter_gather_pipeline", out.scatter_gather_pipeline,
                  "A tensor-parallel rank sends only its share of the tensor");
  member.optional("sharp", out.sharp,
                  "NCCL may let the fabric's switches sum the all-reduces between replicas "
                  "(NCCL_COLLNET_ENABLE=1); the fabric says which SHARP they have");
  member.optional("experts_share_tensor", out.experts_share_tensor,
                  "Experts are cut by the tensor width too, when the scenario does not say");
  member.optional("sm_share", out.sm_share, Interval{0, 0.9},
                  "Share of the SMs that an overlapped collective takes while it runs");
  member.optional(
      "context_exchange", out.context_exchange, kContextExchangeNames,
      "How context-parallel ranks see each other's keys and values, when the scenario doesn't say");
}

void declare_memory_policy(const DeclaredMembers& member, MemoryPolicy& out) {
  member.optional("optimiser_state_bytes", out.optimiser_state_bytes, Interval{0, 64},
                  "Per parameter: fp32 weight and both moments of Adam");
  member.optional("replica_bytes", out.replica_bytes, Interval{0, 64},
                  "More per parameter where there are replicas: gradient buckets");
  member.optional("gather_bytes", out.gather_bytes, Interval{0, 64},
                  "More per parameter in the step of a sharded optimiser");
  member.optional("gated_mlp_bytes", out.gated_mlp_bytes, Interval{0, 64},
                  "Saved per column of a gated MLP");
  member.optional("rotary_copies", out.rotary_copies,
                  "Rotated Q, K and V are kept beside the product's output");
  member.optional("half_weight_shards", out.half_weight_shards,
                  "Under zero3: 16-bit shards of the weights stay beside the optimiser's "
                  "(DeepSpeed); else those are the weights (FSDP)");
  member.optional("logit_bytes", out.logit_bytes, Interval{0, 64},
                  "Per logit: the 16-bit product, its fp32 copy and the softmax");
  member.optional("run_ahead_layers", out.run_ahead_layers, Interval{0, 1000},
                  "Layers by which the host runs ahead of the GPU");
  member.optional("fragmentation", out.fragmentation, Interval{1, 10},
                  "Reserved over allocated memory");
  member.optional("workspace", out.workspace, Interval{0, 1e12},
                  "In the allocator: workspaces and buffers");
  member.optional("outside", out.outside, Interval{0, 1e12},
                  "Outside of the allocator: CUDA context, modules, NCCL's channels");
  member.optional("split", out.split, kLayerSplitNames, "Of layers over pipeline stages");
}

std::vector<RecomputeModules> read_ladder(const JsonCursor& from) {
  std::vector<RecomputeModules> out;
  for (const JsonCursor& rung : from.elements(kMostLadderRungs))
    out.push_back(read_recompute_modules(rung));
  return out;
}

void declare_offload_policy(const DeclaredMembers& member, OffloadPolicy& out) {
  member.optional("gradients_in_backward", out.gradients_in_backward,
                  "Gradients go down beside the backward pass; else in the optimiser's step");
  member.optional("bucket_parameters", out.bucket_parameters, Interval{1e4, 1e15},
                  "Gradients that go down together; as many more wait");
  member.optional("overlaps_step", out.overlaps_step,
                  "Copies of the step run beside the host's arithmetic");
  member.optional("gradient_bytes", out.gradient_bytes, Interval{0.5, 16}, "Down");
  member.optional("parameter_bytes", out.parameter_bytes, Interval{0.5, 16}, "Up");
  member.optional("optimiser_bytes", out.optimiser_bytes, kPerElement,
                  "Traffic of the host's memory in the step");
  member.optional("efficiency", out.efficiency, kEfficiency,
                  "Of the host's memory bandwidth, in the step");
}

std::string read_placement(const JsonCursor& from) {
  std::string order = from.string();
  if (!parse_rank_order(order)) from.fail(std::string(rank_order_rule()));
  return order;
}

}  // namespace

RecomputeModules read_recompute_modules(const JsonCursor& from) {
  RecomputeModules out{.core_attention = false};
  const std::array<bool*, kRecomputeModuleNames.size()> modules{
      &out.core_attention, &out.layer_norm, &out.activation,     &out.latent_up, &out.mlp,
      &out.mlp_up,         &out.projection, &out.fused_attention};
  read_choices(from, kRecomputeModuleNames, [&](std::size_t module) { *modules[module] = true; });
  return out;
}

nlohmann::ordered_json written_modules(const RecomputeModules& modules) {
  const std::array<bool, kRecomputeModuleNames.size()> has{modules.core_attention,
                                                           modules.layer_norm,
                                                           modules.activation,
                                                           modules.latent_up,
                                                           modules.mlp,
                                                           modules.mlp_up,
                                                           modules.projection,
                                                           modules.fused_attention};
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < has.size(); ++i) {
    if (has[i]) names.push_back(kRecomputeModuleNames[i]);
  }
  return names;
}

void leave_partial_graphs(StackSpec& stack) {
  stack.expert_host_layer *= stack.expert_partial_graph;
  stack.expert_host_expert *= stack.expert_partial_graph;
}

void declare_stack(const DeclaredMembers& member, StackSpec& out) {
  member.optional("about", out.about, "What it is");
  member.required("attention", out.attention, attention_names(),
                  "Generation of the attention kernel");
  member.optional("elementwise", out.elementwise,
                  "HBM traffic of elementwise work: which of it is fused", declare_elementwise);
  member.optional("communication", out.communication,
                  "What communication overlaps, and in which format", declare_communication);
  member.optional("memory", out.memory, "What the software keeps in GPU memory",
                  declare_memory_policy);
  member.optional("offload", out.offload,
                  "How the software moves what lives on the host (\"offload\" of the scenario); "
                  "bytes are per parameter",
                  declare_offload_policy);
  member.optional("launch_interval", out.launch_interval, kLatency,
                  "Host time per kernel; 0 under CUDA graphs");
  member.optional("expert_host_layer", out.expert_host_layer, kLatency,
                  "Host time of a layer with experts, forward and backward, without CUDA graphs");
  member.optional("expert_host_expert", out.expert_host_expert, kLatency,
                  "More per expert that the GPU holds");
  member.optional("expert_partial_graph", out.expert_partial_graph, kShare,
                  "Share of that host time which stays where parts of a layer run as CUDA graphs");
  member.optional("partial_graphs", boolean_type(),
                  "Whether parts of a layer run as CUDA graphs, so that only that share stays; "
                  "default: false",
                  [&](const JsonCursor& at) {
                    if (at.boolean()) leave_partial_graphs(out);
                  });
  member.optional("level", out.level, kRatio,
                  "Time of kernels over what is counted for them: tails, waits and skew between "
                  "ranks; default: 1");
  member.optional("grouped_slowdown", out.grouped_slowdown, kRatio,
                  "Time of products grouped by expert over that of dense ones");
  member.optional(
      "scan_efficiency", out.scan_efficiency, Interval{0.01, 1},
      "Share of the 16-bit peak that the kernels of Mamba-2's recurrence reach; default: 0.035");
  member.optional("kernels_forward", out.kernels_forward, kPerElement,
                  "Kernels that the host launches per layer, forward");
  member.optional("kernels_backward", out.kernels_backward, kPerElement, "The same, backward");
  member.optional("step_overhead", out.step_overhead, Interval{0, 1000},
                  "Per step: data loading, logging, host synchronisation");
  member.optional("parameter_bytes", out.parameter_bytes, Interval{0.5, 16},
                  "Per parameter, as gathered by a sharded optimiser");
  member.optional("main_gradient_bytes", out.main_gradient_bytes, Interval{0, 16},
                  "Accumulated gradient, per parameter; default: the stack's, of fp16 training 2");
  member.optional("weight_gradient_traffic", out.weight_gradient_traffic, kPerElement,
                  "Extra bytes per weight and micro batch to accumulate it");
  member.optional("optimiser_bytes", out.optimiser_bytes, kPerElement,
                  "HBM traffic per local parameter of a step");
  member.optional("optimiser_unsharded_bytes", out.optimiser_unsharded_bytes, kPerElement,
                  "The same, per parameter of the rank before sharding");
  member.optional(
      "placement", written_type(R"({"type": "string", "examples": ["tp-dp-pp", "tp-pp-dp"]})"),
      "Rank order, innermost first",
      [&](const JsonCursor& at) { out.placement = read_placement(at); },
      [&] { return std::string_view(out.placement); });
  member.optional("default_virtual_stages", out.default_virtual_stages, 1, 1000,
                  "Model chunks per pipeline rank, when the scenario does not say");
  constexpr std::size_t kMostConstants = 1000;
  constexpr ValueType kPath = text_type();
  member.optional("constants_at_bounds", list_type(kPath, kMostConstants),
                  "Fitted constants that stopped at a bound of what is plausible, unexplained; "
                  "written by lockstep fit",
                  [&](const JsonCursor& at) {
                    out.constants_at_bounds.clear();
                    for (const JsonCursor& path : at.elements(kMostConstants)) {
                      out.constants_at_bounds.push_back(path.string());
                    }
                  });
  constexpr ValueType kModules = shared_type("recompute_modules");
  member.optional("recompute_ladder", list_type(kModules, kMostLadderRungs),
                  "What its policies repeat in the backward pass, from the least to the most short "
                  "of whole layers; runs that do not say take the first that fits in memory",
                  [&](const JsonCursor& at) { out.recompute_ladder = read_ladder(at); });
}

}  // namespace lockstep
