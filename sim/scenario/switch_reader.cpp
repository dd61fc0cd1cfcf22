// Reads what a stack does, switch by switch, and the counts that make numbers of it.
#include <array>
#include <string_view>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

// In the order of each enumeration.
constexpr std::array<std::string_view, 3> kKernelLibraryNames{"pytorch", "triton", "library"};
constexpr std::array<std::string_view, 3> kCudaGraphNames{"none", "layer", "full"};
constexpr std::array<std::string_view, 3> kOptimiserNames{"fused", "multi_tensor", "loop"};
constexpr std::array<std::string_view, 3> kStateFormatNames{"fp32", "bf16", "int8"};
constexpr std::array<std::string_view, 2> kGradientFormatNames{"fp32", "bf16"};
constexpr std::array<std::string_view, 3> kShardingUnitNames{"bucket", "fsdp1", "fsdp2"};
constexpr std::array<std::string_view, 3> kTransferNames{"batched", "asynchronous", "blocking"};
constexpr std::array<std::string_view, 2> kExpertProductNames{"grouped", "loop"};
constexpr std::array<std::string_view, 3> kHostClassNames{"eager", "library", "program"};

constexpr Interval kCost{0.1, 100};

/// Both ways of a chain of kernels: bytes, or how many there are.
void declare_ways(const DeclaredMembers& member, TwoWays& out) {
  member.required("forward", out.forward, kPerElement, "Forward");
  member.required("backward", out.backward, kPerElement, "Backward");
}

/// A chain of kernels that HBM limits, and one that the SMs limit.
void declare_traffic(const DeclaredMembers& member, BytesByLimit& out) {
  member.required("streamed", out.streamed, kPerElement, "Bytes of kernels that HBM limits");
  member.required("narrow", out.narrow, kPerElement,
                  "Bytes of kernels that the SMs limit: an element at a time");
}
void declare_traffic_ways(const DeclaredMembers& member, BytesBothWays& out) {
  member.required("forward", out.forward, "Forward", declare_traffic);
  member.required("backward", out.backward, "Backward", declare_traffic);
}

void declare_norm_costs(const DeclaredMembers& member, OperatorCosts& out) {
  member.required("norm_eager", out.norm_eager, "RMSNorm in 32 bit, an operator at a time",
                  declare_traffic_ways);
  member.required("layer_norm", out.layer_norm, "LayerNorm in CUDA", declare_traffic_ways);
  member.required("norm_fused", out.norm_fused, "One kernel each way", declare_ways);
  member.required("residual", out.residual, "One sum", declare_ways);
  member.required("residual_dropout", out.residual_dropout, "Bias, dropout and sum in one kernel",
                  declare_ways);
  member.required("residual_compiled", out.residual_compiled, "One sum, with the next norm",
                  declare_ways);
  member.required("repeated_heads", out.repeated_heads,
                  "Keys and values written out for every head, and the output copied",
                  declare_ways);
  member.required("qkv_gradients", out.qkv_gradients, kPerElement,
                  "Sums of the input gradients of three products");
  member.required("gate_up_gradients", out.gate_up_gradients, kPerElement, "The same of two");
  member.required("qkv_split", out.qkv_split, kPerElement,
                  "Gradient of an element of Q, K or V, put beside the others for one product");
  member.required("bias_gradient", out.bias_gradient, kPerElement,
                  "Gradient of a bias, per element of its product's output");
}

void declare_block_costs(const DeclaredMembers& member, OperatorCosts& out) {
  member.required("rotary_fused", out.rotary_fused, kPerElement, "Per Q or K element, each way");
  member.required("rotary_eager", out.rotary_eager, "The same, half by half", declare_traffic);
  member.required("rotary_complex", out.rotary_complex, "The same, of complex numbers in 32 bit",
                  declare_traffic);
  member.required("gated_fused", out.gated_fused, "SwiGLU, per T f", declare_ways);
  member.required("gated_eager", out.gated_eager, "SwiGLU in two operators", declare_ways);
  member.required("plain", out.plain, "GELU and its kin, per T f, compiled", declare_ways);
  member.required("plain_eager", out.plain_eager, "The same as frameworks have it",
                  declare_traffic_ways);
  member.required("loss_eager", out.loss_eager, "Per logit, both ways", declare_traffic);
  member.required("loss_compiled", out.loss_compiled, kPerElement, "The same, compiled");
  member.required("loss_fused", out.loss_fused, kPerElement, "The same, in one kernel");
  member.required("loss_parallel", out.loss_parallel, kPerElement,
                  "The same, over a vocabulary that ranks share");
  member.required("loss_parallel_fused", out.loss_parallel_fused, kPerElement,
                  "The same, compiled in pieces");
  member.required("permute_bytes", out.permute_bytes, kPerElement,
                  "Per element of a token's copies for its experts");
  member.required("permute_eager", out.permute_eager, "The same, an operator at a time",
                  declare_traffic);
  member.required("expert_bias", out.expert_bias,
                  "The last bias of experts, per element of their results", declare_ways);
  member.required("expert_bias_library", out.expert_bias_library,
                  "The same as Megatron-Core adds it", declare_ways);
}

void declare_slow_kernels(const DeclaredMembers& member, OperatorCosts& out) {
  member.required("norm_backward_library_cost", out.norm_backward_library_cost, kCost,
                  "Time of an RMSNorm's backward kernel, written in CUDA, over that of streaming "
                  "its bytes");
  member.required("norm_backward_cost", out.norm_backward_cost, kCost, "The same, any other");
}

void declare_parameter_costs(const DeclaredMembers& member, OperatorCosts& out) {
  const auto bytes = [&](std::string_view key, double& value, std::string_view sentence) {
    member.required(key, value, kPerElement, sentence);
  };
  bytes("accumulate_fused_fp32", out.accumulate_fused_fp32, "Per weight: in the product, 32 bit");
  bytes("accumulate_fused_bf16", out.accumulate_fused_bf16, "Per weight: in the product, 16 bit");
  bytes("accumulate_fp32", out.accumulate_fp32, "Per weight: by a kernel of its own, 32 bit");
  bytes("accumulate_bf16", out.accumulate_bf16, "Per weight: by a kernel of its own, 16 bit");
  bytes("accumulate_fsdp1", out.accumulate_fsdp1, "Per weight: into a flat tensor");
  bytes("accumulate_fsdp2", out.accumulate_fsdp2, "Per weight: copied in and out of a buffer");
  bytes("optimiser_fused", out.optimiser_fused, "Per parameter, with norm and cast");
  bytes("optimiser_multi_tensor", out.optimiser_multi_tensor, "The same, with more copies");
  bytes("optimiser_loop", out.optimiser_loop, "The same, an operator at a time");
  bytes("int8_saved", out.int8_saved, "Per parameter, where moments have 8 bits");
  bytes("bf16_saved", out.bf16_saved, "Per parameter, where they have 16 and so do the weights");
}

void declare_host_costs(const DeclaredMembers& member, OperatorCosts& out) {
  member.required("kernels_product", out.kernels_product, "A product", declare_ways);
  member.required("kernels_attention", out.kernels_attention, "Flash attention", declare_ways);
  member.required("kernels_norm_eager", out.kernels_norm_eager, "RMSNorm", declare_ways);
  member.required("kernels_rotary_eager", out.kernels_rotary_eager, "Q and K", declare_ways);
  member.required("kernels_gated_eager", out.kernels_gated_eager, "SwiGLU", declare_ways);
  member.required("kernels_repeat", out.kernels_repeat, "Heads written out", declare_ways);
  member.required("launch_eager", out.launch_eager, kLatency, "Host time of a kernel, eager");
  member.required("launch_library", out.launch_library, kLatency, "The same in modules");
  member.required("launch_program", out.launch_program, kLatency, "The same in a program");
  member.required("launch_graph", out.launch_graph, kLatency, "A graph of a layer");
  member.required("expert_host_layer", out.expert_host_layer, kLatency,
                  "A layer with experts, both ways");
  member.required("expert_host_expert", out.expert_host_expert, kLatency, "More per expert");
  member.required("expert_loop_host", out.expert_loop_host, kLatency,
                  "More per expert, where they go one by one");
}

}  // namespace

void declare_operator_costs(const DeclaredMembers& member, OperatorCosts& out) {
  member.optional("about", text_type(), "What it is",
                  [](const JsonCursor& at) { (void)at.string(); });
  declare_norm_costs(member, out);
  declare_block_costs(member, out);
  declare_slow_kernels(member, out);
  declare_parameter_costs(member, out);
  declare_host_costs(member, out);
  member.required("level", out.level, kRatio, "Time of kernels over what is counted for them");
  member.required("level_alone", out.level_alone, kRatio, "The same where a job has one GPU");
  member.required("sm_share", out.sm_share, Interval{0, 0.9},
                  "Share of the SMs and of their memory that an overlapped collective takes");
  member.required("tensor_exposed", out.tensor_exposed, kShare,
                  "Of tensor-parallel collectives that run beside products");
  member.required("grouped_slowdown", out.grouped_slowdown, kRatio,
                  "Time of products grouped by expert over that of dense ones");
}

void declare_switches(const DeclaredMembers& member, StackSwitches& out) {
  member.optional("fused_norm", out.fused_norm, "Norms are one kernel each way");
  member.optional("fused_rope", out.fused_rope, "So is the rotary embedding");
  member.optional("complex_rope", out.complex_rope,
                  "Unfused, the rotary embedding is a product of complex numbers in 32 bit");
  member.optional("fused_swiglu", out.fused_swiglu, "So is the activation of a gated MLP");
  member.optional("fused_bias_dropout", out.fused_bias_dropout,
                  "Bias, dropout and residual sum are one kernel each way");
  member.optional("fused_cross_entropy", out.fused_cross_entropy,
                  "The loss is one kernel, which writes its gradient over the logits");
  member.optional("chunked_cross_entropy", out.chunked_cross_entropy,
                  "Output projection and loss go piece by piece; logits are never kept");
  member.optional("vocab_parallel_loss", out.vocab_parallel_loss,
                  "The loss is Megatron's, over a vocabulary that ranks share");
  member.optional("merged_qkv", out.merged_qkv, "One product makes queries, keys and values");
  member.optional("merged_gate_up", out.merged_gate_up, "One product makes both halves of an MLP");
  member.optional("repeats_kv_heads", out.repeats_kv_heads,
                  "Grouped keys and values are written out for every head");
  member.optional(
      "torch_compile", out.torch_compile,
      "Every block is compiled: norms, rotary embedding, activation and sums are fused");
  member.optional("gradient_accumulation_fusion", out.gradient_accumulation_fusion,
                  "Weight gradients are added to the accumulated ones in the product itself");
  member.optional("tp_overlap", out.tp_overlap,
                  "Tensor-parallel collectives run beside pieces of products");
  member.optional("kernels", out.kernels, kKernelLibraryNames,
                  "Whose fused kernels run: PyTorch's, in Triton (Liger), or a CUDA library's "
                  "(Transformer Engine, Apex)");
  member.optional("cuda_graphs", out.cuda_graphs, kCudaGraphNames, "What CUDA graphs hold");
  member.optional("optimiser", out.optimiser, kOptimiserNames, "Kernels of the optimiser");
  member.optional("optimiser_states", out.optimiser_states, kStateFormatNames,
                  "Format of the optimiser's moments");
  member.optional("master_weights", out.master_weights,
                  "The optimiser has a 32-bit copy of weights");
  member.optional("gradients", out.gradients, kGradientFormatNames,
                  "Format in which gradients accumulate");
  member.optional("reduced_format", out.reduced_format, kGradientFormatNames,
                  "Format in which gradients are reduced between replicas");
  member.optional(
      "sharding_unit", out.sharding_unit, kShardingUnitNames,
      "What gradients are reduced by: buckets, FSDP's flat tensor or tensors of a block");
  member.optional("pipeline_transfers", out.pipeline_transfers, kTransferNames,
                  "How pipeline stages send and receive");
  member.optional("expert_products", out.expert_products, kExpertProductNames,
                  "One grouped product, or a loop over experts");
  member.optional("host", out.host, kHostClassNames,
                  "How the host issues kernels: an operator at a time through Python, by modules "
                  "that issue several, or as a compiled program");
}

namespace {

constexpr Interval kLogLevel{-3, 3};
constexpr Interval kDeviation{1e-4, 3};
constexpr int kMostSteps = 1'000'000;
constexpr int kMostGpus = 8'000'000;
constexpr std::size_t kMostJobKinds = 100;
constexpr std::size_t kMostTexts = 1000;

void declare_level(const DeclaredMembers& member, LearntLevel& out) {
  member.required("gpu", out.gpu, "Preset of the GPU that the steps ran on");
  member.required("experts", out.experts, "Mixture of experts");
  member.required("adapters", out.adapters, "LoRA and its kin");
  member.required("log_level", out.log_level, kLogLevel,
                  "Natural logarithm of the factor on the time of kernels");
  member.required("deviation", out.deviation, kDeviation, "Of that, after the steps");
  member.required("prior", out.prior, kDeviation, "The same before");
  member.required("steps", out.steps, 0, kMostSteps, "Distinct jobs that were measured");
  member.required("fewest_gpus", out.fewest_gpus, 1, kMostGpus, "Of these jobs");
  member.required("most_gpus", out.most_gpus, 1, kMostGpus, "Of these jobs");
  member.required("models", list_type(text_type(), kMostTexts), "Of these jobs",
                  [&](const JsonCursor& at) {
                    out.models.clear();
                    for (const JsonCursor& name : at.elements(kMostTexts)) {
                      out.models.push_back(name.string());
                    }
                  });
  member.optional("evidence", list_type(text_type(), kMostTexts), "The steps, for people",
                  [](const JsonCursor& at) {
                    for (const JsonCursor& words : at.elements(kMostTexts)) (void)words.string();
                  });
}

}  // namespace

void declare_learnt(const DeclaredMembers& member, std::vector<LearntLevel>& out) {
  member.optional(
      "learnt", kMostJobKinds, "What steps of one kind of job showed", "Written by lockstep learn",
      [](const DeclaredMembers& item) {
        LearntLevel level;
        declare_level(item, level);
      },
      [&](const JsonCursor& at) {
        out.clear();
        for (const JsonCursor& item : at.elements(kMostJobKinds)) {
          declare_level({item, Extent::whole}, out.emplace_back());
          item.finish();
        }
      });
}

}  // namespace lockstep
