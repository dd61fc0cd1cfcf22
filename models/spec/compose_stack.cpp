#include "models/spec/compose_stack.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr double kHalf = 2, kSingle = 4;  // bytes

/// Whether a compiler made the kernels between the products.
bool is_compiled(const StackSwitches& s) { return s.torch_compile || s.host == HostClass::program; }

/// Whether the framework makes each gradient by a kernel of its own: products whose library sums
/// the gradient of the bias, and modules that split Q, K and V without copies, are others' work.
bool has_eager_gradients(const StackSwitches& s) {
  return s.host == HostClass::eager && !is_compiled(s);
}

/// As many bytes as stream in the time of both.
double as_streamed(const BytesByLimit& t, const ComposedFor& job) {
  return t.streamed + job.narrow_slowness * t.narrow;
}
TwoWays as_streamed(const BytesBothWays& t, const ComposedFor& job) {
  return {as_streamed(t.forward, job), as_streamed(t.backward, job)};
}

/// One norm. LayerNorm is one kernel each way in every framework, RMSNorm where it is fused; its
/// backward kernel is slow for its sums over all tokens, least where somebody wrote it in CUDA.
TwoWays norm_traffic(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job) {
  if (!is_compiled(s)) {
    if (!job.gated) return as_streamed(c.layer_norm, job);
    if (!s.fused_norm) return as_streamed(c.norm_eager, job);
  }
  const bool library = s.fused_norm && s.kernels == KernelLibrary::library && !is_compiled(s);
  const double slow = library ? c.norm_backward_library_cost : c.norm_backward_cost;
  return {c.norm_fused.forward, slow * c.norm_fused.backward};
}

TwoWays residual_traffic(const StackSwitches& s, const OperatorCosts& c) {
  if (is_compiled(s)) return c.residual_compiled;
  return s.fused_bias_dropout ? c.residual_dropout : c.residual;
}

/// Norms and sums of a layer of two blocks, and what else there is per token and hidden element.
void compose_norms(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job,
                   ElementwiseTraffic& out) {
  const TwoWays norm = norm_traffic(s, c, job), residual = residual_traffic(s, c);
  TwoWays sum{2 * (norm.forward + residual.forward), 2 * (norm.backward + residual.backward)};
  if (s.repeats_kv_heads && job.grouped_heads) {
    sum.forward += c.repeated_heads.forward;
    sum.backward += c.repeated_heads.backward;
  }
  if (!s.merged_qkv) sum.backward += c.qkv_gradients;
  if (!s.merged_gate_up && job.gated) sum.backward += c.gate_up_gradients;
  if (has_eager_gradients(s)) {
    // With four heads to a key, K and V have half of what Q has.
    if (s.merged_qkv) sum.backward += (job.grouped_heads ? 1.5 : 3) * c.qkv_split;
    // Models without a gate have biases: of Q, K, V, and of both products that give T h.
    if (!job.gated) sum.backward += 5 * c.bias_gradient;
  }
  out.norm_residual_bytes = sum.forward;
  out.norm_backward_ratio = sum.backward / sum.forward;
}

/// Per element of the tensors that the activation reads and writes: three of a gated MLP, else two.
void compose_activation(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job,
                        ElementwiseTraffic& out) {
  const bool eager = !s.fused_swiglu && !is_compiled(s);
  if (!job.gated) {
    const TwoWays bytes = is_compiled(s) ? c.plain : as_streamed(c.plain_eager, job);
    const double bias = has_eager_gradients(s) ? c.bias_gradient : 0;
    out.activation_bytes = bytes.forward / 2;
    out.activation_backward_ratio = (bytes.backward + bias) / bytes.forward;
    return;
  }
  const TwoWays bytes = eager ? c.gated_eager : c.gated_fused;
  out.activation_bytes = bytes.forward / 3;
  out.activation_backward_ratio = bytes.backward / bytes.forward;
}

double rotary_traffic(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job) {
  if (s.fused_rope || is_compiled(s)) return c.rotary_fused;
  return as_streamed(s.complex_rope ? c.rotary_complex : c.rotary_eager, job);
}

/// Per element of the copies of tokens that go to experts.
double permute_traffic(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job) {
  return has_eager_gradients(s) ? as_streamed(c.permute_eager, job) : c.permute_bytes;
}

/// A graph of the whole step cannot cut the tokens by counts that the host would have to know:
/// there the grouped product adds its bias.
TwoWays expert_bias_traffic(const StackSwitches& s, const OperatorCosts& c) {
  if (s.cuda_graphs == CudaGraphs::full || s.host == HostClass::program) return {0, 0};
  const bool megatron =
      s.kernels == KernelLibrary::library && s.expert_products == ExpertProducts::grouped;
  return megatron ? c.expert_bias_library : c.expert_bias;
}

double loss_traffic(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job) {
  if (s.vocab_parallel_loss) {
    return s.fused_cross_entropy ? c.loss_parallel_fused : c.loss_parallel;
  }
  if (s.fused_cross_entropy || s.chunked_cross_entropy) return c.loss_fused;
  return is_compiled(s) ? c.loss_compiled : as_streamed(c.loss_eager, job);
}

double accumulation_traffic(const StackSwitches& s, const OperatorCosts& c) {
  if (s.sharding_unit == ShardingUnit::fsdp1) return c.accumulate_fsdp1;
  if (s.sharding_unit == ShardingUnit::fsdp2) return c.accumulate_fsdp2;
  const bool wide = s.gradients == GradientFormat::fp32;
  if (s.gradient_accumulation_fusion) {
    return wide ? c.accumulate_fused_fp32 : c.accumulate_fused_bf16;
  }
  return wide ? c.accumulate_fp32 : c.accumulate_bf16;
}

double optimiser_traffic(const StackSwitches& s, const OperatorCosts& c) {
  const double bytes = s.optimiser == OptimiserKernels::fused          ? c.optimiser_fused
                       : s.optimiser == OptimiserKernels::multi_tensor ? c.optimiser_multi_tensor
                                                                       : c.optimiser_loop;
  if (s.optimiser_states == StateFormat::int8) return bytes - c.int8_saved;
  return s.optimiser_states == StateFormat::bf16 ? bytes - c.bf16_saved : bytes;
}

void compose_memory(const StackSwitches& s, MemoryPolicy& out) {
  const double moments = s.optimiser_states == StateFormat::fp32   ? 2 * kSingle
                         : s.optimiser_states == StateFormat::bf16 ? 2 * kHalf
                                                                   : 2;
  out.optimiser_state_bytes = (s.master_weights ? kSingle : 0) + moments;
  // FSDP and compiled programs have the weights once, as their optimiser has them.
  const bool once = s.sharding_unit != ShardingUnit::bucket || s.host == HostClass::program;
  out.half_weight_shards = !(once && s.master_weights);
  out.gated_mlp_bytes = s.fused_swiglu || is_compiled(s) ? 3 * kHalf : 4 * kHalf;
  // The 16-bit product, its 32-bit copy and the softmax; a fused kernel writes the gradient in the
  // place of the product, and a chunked one keeps neither.
  out.logit_bytes = s.chunked_cross_entropy ? 0 : s.fused_cross_entropy ? 2 * kHalf : 10;
}

/// Kernels of a layer. A compiled or fused part is one kernel each way.
KernelCounts kernels_of(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job) {
  KernelCounts out;
  const auto add = [&out](double times, const KernelCounts& k) {
    out.forward += times * k.forward;
    out.backward += times * k.backward;
  };
  constexpr KernelCounts kOne{1, 1};
  const double products = (s.merged_qkv ? 1 : 3) + 1 + (s.merged_gate_up || !job.gated ? 1 : 2) + 1;
  add(products, c.kernels_product);
  add(1, c.kernels_attention);
  const bool fused_norm = s.fused_norm || !job.gated;
  if (is_compiled(s)) {
    add(2, kOne);  // norms, with the sums
  } else {
    add(2, fused_norm ? kOne : c.kernels_norm_eager);
    add(2, kOne);  // sums
  }
  if (is_compiled(s)) {
    add(1, kOne);
  } else {
    add(s.fused_rope ? 2 : 1, s.fused_rope ? kOne : c.kernels_rotary_eager);  // Q and K
  }
  const bool eager_activation = job.gated && !s.fused_swiglu && !is_compiled(s);
  add(1, eager_activation ? c.kernels_gated_eager : kOne);
  if (s.repeats_kv_heads && job.grouped_heads) add(1, c.kernels_repeat);
  if (!s.merged_qkv) out.backward += is_compiled(s) ? 1 : 2;
  if (!s.merged_gate_up && job.gated && !is_compiled(s)) out.backward += 1;
  if (!s.gradient_accumulation_fusion && s.host != HostClass::program) {
    out.backward += products;
  }
  return out;
}

void compose_host(const StackSwitches& s, const OperatorCosts& c, const ComposedFor& job,
                  StackSpec& out) {
  const KernelCounts kernels = kernels_of(s, c, job);
  out.kernels_forward = kernels.forward;
  out.kernels_backward = kernels.backward;
  const Seconds launch = s.host == HostClass::eager     ? c.launch_eager
                         : s.host == HostClass::library ? c.launch_library
                                                        : c.launch_program;
  out.launch_interval = job.host_slowness * launch;
  const Seconds each = s.expert_products == ExpertProducts::loop ? c.expert_loop_host : Seconds{};
  out.expert_host_layer = job.host_slowness * c.expert_host_layer;
  out.expert_host_expert = job.host_slowness * (c.expert_host_expert + each);
  if (s.cuda_graphs == CudaGraphs::layer) {
    // A graph each way. Layers whose experts drop no token cannot be captured.
    out.kernels_forward = out.kernels_backward = 1;
    out.launch_interval = job.host_slowness * c.launch_graph;
  }
  if (s.cuda_graphs != CudaGraphs::full && s.host != HostClass::program) return;
  out.expert_host_layer = out.expert_host_expert = Seconds{};
  if (s.cuda_graphs == CudaGraphs::full) out.launch_interval = Seconds{};
}

double bytes_of(GradientFormat format) { return format == GradientFormat::fp32 ? kSingle : kHalf; }

void compose_communication(const StackSwitches& s, const OperatorCosts& c,
                           CommunicationPolicy& out) {
  out.gradient_bytes = bytes_of(s.reduced_format);
  out.tensor_exposed = s.tp_overlap ? c.tensor_exposed : 1;
  out.tensor_slowdown = out.data_slowdown = 1;
  out.sm_share = c.sm_share;
  out.overlap_pipeline = s.pipeline_transfers == PipelineTransfers::asynchronous;
  out.half_duplex_pipeline = s.pipeline_transfers == PipelineTransfers::blocking;
}

/// A number that follows from switches, and how a change of it carries over.
struct Governed {
  double& (*of)(StackSpec& stack);
  enum class By : unsigned char {
    traffic,     ///< the difference, in bytes of kernels as slow as the stack's
    difference,  ///< the difference
    value,       ///< the new one
  } by;
};
using By = Governed::By;
constexpr std::array kGoverned{
    Governed{[](StackSpec& s) -> double& { return s.elementwise.activation_bytes; }, By::traffic},
    Governed{[](StackSpec& s) -> double& { return s.elementwise.activation_backward_ratio; },
             By::value},
    Governed{[](StackSpec& s) -> double& { return s.elementwise.rotary_bytes; }, By::traffic},
    Governed{[](StackSpec& s) -> double& { return s.elementwise.loss_bytes; }, By::traffic},
    Governed{[](StackSpec& s) -> double& { return s.elementwise.expert_bias_bytes; }, By::value},
    Governed{[](StackSpec& s) -> double& { return s.elementwise.expert_bias_backward_ratio; },
             By::value},
    Governed{[](StackSpec& s) -> double& { return s.weight_gradient_traffic; }, By::traffic},
    Governed{[](StackSpec& s) -> double& { return s.optimiser_bytes; }, By::difference},
    Governed{[](StackSpec& s) -> double& { return s.main_gradient_bytes; }, By::value},
    Governed{[](StackSpec& s) -> double& { return s.communication.gradient_bytes; }, By::value},
    Governed{[](StackSpec& s) -> double& { return s.communication.tensor_exposed; }, By::value},
    Governed{[](StackSpec& s) -> double& { return s.kernels_forward; }, By::difference},
    Governed{[](StackSpec& s) -> double& { return s.kernels_backward; }, By::difference},
    Governed{[](StackSpec& s) -> double& { return s.memory.optimiser_state_bytes; },
             By::difference},
    Governed{[](StackSpec& s) -> double& { return s.memory.gated_mlp_bytes; }, By::difference},
    Governed{[](StackSpec& s) -> double& { return s.memory.logit_bytes; }, By::difference},
};

void shift_number(const Governed& number, const StackSpec& before, const StackSpec& after,
                  StackSpec& stack) {
  StackSpec old = before, wanted = after;
  const double from = number.of(old), to = number.of(wanted);
  double& value = number.of(stack);
  if (from == to) return;
  const double unit = number.by == By::traffic ? stack.elementwise.slowdown : 1;
  const bool anew = number.by == By::value;
  value = anew ? to : std::max(0.0, value + (to - from) / unit);
}

template <class Value>
void shift_value(const Value& before, const Value& after, Value& value) {
  if (before != after) value = after;
}

void shift_norms(const ElementwiseTraffic& before, const ElementwiseTraffic& after,
                 ElementwiseTraffic& out) {
  if (before.norm_residual_bytes == after.norm_residual_bytes &&
      before.norm_backward_ratio == after.norm_backward_ratio) {
    return;
  }
  const auto backward = [](const ElementwiseTraffic& e) {
    return e.norm_residual_bytes * e.norm_backward_ratio;
  };
  const double forward = out.norm_residual_bytes +
                         (after.norm_residual_bytes - before.norm_residual_bytes) / out.slowdown;
  const double back = backward(out) + (backward(after) - backward(before)) / out.slowdown;
  out.norm_residual_bytes = std::max(forward, 1.0);
  out.norm_backward_ratio = std::max(back, 1.0) / out.norm_residual_bytes;
}

}  // namespace

void compose(const StackSwitches& switches, const OperatorCosts& costs, const ComposedFor& job,
             StackSpec& stack) {
  compose_norms(switches, costs, job, stack.elementwise);
  compose_activation(switches, costs, job, stack.elementwise);
  stack.elementwise.rotary_bytes = rotary_traffic(switches, costs, job);
  stack.elementwise.loss_bytes = loss_traffic(switches, costs, job);
  stack.elementwise.permute_bytes = permute_traffic(switches, costs, job);
  const TwoWays bias = expert_bias_traffic(switches, costs);
  stack.elementwise.expert_bias_bytes = bias.forward;
  if (bias.forward > 0) stack.elementwise.expert_bias_backward_ratio = bias.backward / bias.forward;
  stack.elementwise.slowdown = 1;
  compose_communication(switches, costs, stack.communication);
  compose_memory(switches, stack.memory);
  compose_host(switches, costs, job, stack);
  stack.main_gradient_bytes = bytes_of(switches.gradients);
  stack.weight_gradient_traffic = accumulation_traffic(switches, costs);
  stack.optimiser_bytes = optimiser_traffic(switches, costs);
  stack.grouped_slowdown = costs.grouped_slowdown;
  stack.level = costs.level;
  stack.level_alone = costs.level_alone;
}

void shift(const StackSpec& before, const StackSpec& after, StackSpec& stack) {
  for (const Governed& number : kGoverned) shift_number(number, before, after, stack);
  shift_norms(before.elementwise, after.elementwise, stack.elementwise);
  shift_value(before.communication.overlap_pipeline, after.communication.overlap_pipeline,
              stack.communication.overlap_pipeline);
  shift_value(before.communication.half_duplex_pipeline, after.communication.half_duplex_pipeline,
              stack.communication.half_duplex_pipeline);
  shift_value(before.memory.half_weight_shards, after.memory.half_weight_shards,
              stack.memory.half_weight_shards);
  shift_value(before.launch_interval, after.launch_interval, stack.launch_interval);
  shift_value(before.expert_host_layer, after.expert_host_layer, stack.expert_host_layer);
  shift_value(before.expert_host_expert, after.expert_host_expert, stack.expert_host_expert);
}

}  // namespace lockstep
