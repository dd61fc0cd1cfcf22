#include "models/layer/blocks.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {
namespace {

using Names = std::array<std::string_view, 3>;  // of a product, as in Recorder::Linear

/// The collectives around a block of two products (column-, then row-parallel).
///
/// Cut into c pieces, one for each rank, a product hides all of its transfer but what goes beyond
/// (c - 1) / c of it: a rank begins with the piece that it has, or ends with the one that it keeps.
/// Source: https://discuss.pytorch.org/t/209487 (asynchronous tensor parallelism).
void block_collectives(Recorder& record, const WorkloadContext& c, const Widths& w,
                       const Names& first, const Names& second, bool repeated) {
  const Bytes activation{2 * w.tokens * w.hidden};
  const CommunicationPolicy& policy = c.stack.communication;
  const Parallelism& par = c.job.parallelism;
  const double exposed = par.tensor_overlap ? 1 : policy.tensor_exposed;
  const bool async = policy.async_tensor_backward;
  const Seconds behind_weight = async && !c.split_backward ? record.time_of(first[2]) : Seconds{};
  const Seconds behind_input = async ? record.time_of(first[1]) : Seconds{};
  if (!par.sequence) {
    record.collective("all_reduce", Phase::forward, CollectiveOp::all_reduce, activation, 1.0);
    if (repeated) {
      record.collective("all_reduce", Phase::recompute, CollectiveOp::all_reduce, activation, 1.0);
    }
    record.collective("all_reduce", Phase::backward, CollectiveOp::all_reduce, activation, 1.0,
                      behind_weight);
    return;
  }
  const int pieces = par.tensor_pieces();
  const auto behind = [&](std::string_view product, Phase phase) {
    return (1 - 1.0 / pieces) * record.time_of(product, phase);
  };
  // Pieces that arrive from the others lie side by side and are added up by a kernel.
  const auto scatter = [&](Phase phase, Seconds hidden) {
    record.collective("reduce_scatter", phase, CollectiveOp::reduce_scatter, activation, exposed,
                      hidden);
    if (pieces > 1) record.memory("add_pieces", phase, (1 + 1.0 / pieces) * activation, 1);
  };
  for (const Phase phase : {Phase::forward, Phase::recompute}) {
    if (phase == Phase::recompute && !repeated) continue;
    record.collective("all_gather", phase, CollectiveOp::all_gather, activation, exposed,
                      behind(first[0], phase));
    scatter(phase, behind(second[0], phase));
  }
  record.collective("all_gather", Phase::backward, CollectiveOp::all_gather, activation, exposed,
                    behind(second[1], Phase::backward));
  const Seconds behind_own = c.split_backward ? Seconds{} : behind(first[2], Phase::backward);
  record.collective("all_gather.input", Phase::backward, CollectiveOp::all_gather, activation,
                    exposed, std::max(behind_input, behind_own));
  scatter(Phase::backward, std::max(behind_weight, behind(first[1], Phase::backward)));
}

/// Attention over a sequence of which context-parallel ranks hold a part each. `repeated`: the core
/// runs again in the backward pass.
void context_attention(Recorder& record, const WorkloadContext& c, const AttentionShape& whole,
                       bool repeated) {
  const Parallelism& par = c.job.parallelism;
  const int ranks = par.context;
  AttentionShape local = whole;
  int parts = 1;
  if (par.context_exchange == ContextExchange::all_to_all) {
    local.heads = whole.heads / ranks;
    local.kv_heads = std::max(1.0, whole.kv_heads / ranks);
  } else if (ranks > 1) {
    local.tokens = whole.tokens / ranks;
    parts = ranks;
  }
  record.attention(local, parts, repeated);
  if (ranks == 1) return;

  const double rows = whole.sequences * whole.tokens / ranks;
  const Bytes key_value{2 * rows * 2 * whole.kv_heads * whole.head_dim};  // of one rank
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
    if (phase == Phase::recompute && !repeated) continue;
    const bool backward = phase == Phase::backward;
    Recorder::Exchange e;
    e.name = "context";
    e.axis = Axis::context;
    e.phase = phase;
    e.groups = c.context_groups;
    switch (par.context_exchange) {
      case ContextExchange::ring:
        // Keys and values go round beside the kernels; their gradients follow them backward.
        e.call = {CollectiveOp::send_receive, (backward ? 2.0 : 1.0) * key_value, 2};
        e.groups = c.context_groups.inside(ranks) ? 2 : 1;
        e.times = ranks - 1;
        e.hidden_behind = (1.0 / ranks) * record.time_of("attention", phase);
        break;
      case ContextExchange::all_gather:
        // Backward: gathered again, and the gradients scattered.
        e.call = {CollectiveOp::all_gather, ranks * key_value, ranks};
        e.times = backward ? 2 : 1;
        break;
      case ContextExchange::all_to_all: {
        // Q, K and V in, the result out; the same backward.
        const double width = (2 * whole.heads + 2 * whole.kv_heads) * whole.head_dim;
        e.call = {CollectiveOp::all_to_all, Bytes{2 * rows * width}, ranks};
        break;
      }
    }
    record.exchange(e);
  }
}

/// Queries, keys and values out of compressed vectors. The compressing products are on every
/// tensor-parallel rank, over its part of the tokens.
void latent_products(Recorder& record, const WorkloadContext& c, const Widths& w,
                     const Repeated& again) {
  const TransformerShape& m = c.job.model;
  const LatentAttention& l = m.latent;
  const Precision p = c.job.precision;
  const double heads = m.heads / w.tensor, query = l.nope_dim + l.rope_dim;
  const double down = (l.query_rank > 0 ? l.query_rank : 0) + l.key_value_rank + l.rope_dim;
  const double up = again.latent_up ? 1 : again.products;
  record.linear({{"qkv", "qkv.input_gradient", "qkv.weight_gradient"},
                 w.residual_tokens,
                 w.hidden,
                 down,
                 p,
                 again.products});
  record.elementwise("latent_norm", 8 * w.residual_tokens * down, 1.5, 2,
                     again.norm || again.latent_up);
  record.linear({{"query_up", "query_up.input_gradient", "query_up.weight_gradient"},
                 w.tokens,
                 static_cast<double>(l.query_rank > 0 ? l.query_rank : m.hidden),
                 heads * query,
                 p,
                 up});
  record.linear({{"key_value_up", "key_value_up.input_gradient", "key_value_up.weight_gradient"},
                 w.tokens,
                 static_cast<double>(l.key_value_rank),
                 heads * (l.nope_dim + l.value_dim),
                 p,
                 up});
  // Positions go into a part of each head, and heads are put together again.
  record.elementwise("rotary", c.stack.elementwise.rotary_bytes * w.tokens * heads * 2 * query, 1.0,
                     2, again.norm || again.latent_up);
}

/// Mamba-1: step sizes, B and C from the convolved columns, and the step sizes of all columns,
/// which the backward pass makes again. Ranks of a tensor-parallel group sum what they selected;
/// that sum of a few hundred columns is left out.
void selected_products(Recorder& record, const WorkloadContext& c, const Widths& w,
                       const Repeated& again) {
  const MambaShape& s = c.job.model.mamba;
  const double inner = s.inner() / w.tensor;
  record.linear({.names = {"mamba_x", "mamba_x.input_gradient", "mamba_x.weight_gradient"},
                 .tokens = w.tokens,
                 .x_width = inner,
                 .y_width = s.selected(),
                 .precision = c.job.precision,
                 .repeated = again.products});
  record.linear({.names = {"mamba_step", "mamba_step.input_gradient", "mamba_step.weight_gradient"},
                 .tokens = w.tokens,
                 .x_width = static_cast<double>(s.step_rank),
                 .y_width = inner,
                 .precision = c.job.precision,
                 .repeated = 1});
}

}  // namespace

Repeated repeated(const TrainingJob& job, const StackSpec& stack) {
  const bool full = job.recompute == Recompute::full;
  const bool selective = job.recompute == Recompute::selective;
  const RecomputeModules& m = job.modules;
  // A flash kernel already repeats the core inside its backward pass.
  const bool core = selective && m.core_attention && stack.attention == AttentionKernel::unfused;
  return {.collectives = full,
          .core = full || core || (selective && m.fused_attention),
          .norm = full || (selective && m.layer_norm),
          .activation = full || (selective && (m.activation || m.mlp || m.mlp_up)),
          .latent_up = full || (selective && m.latent_up),
          .mlp_up = full || (selective && (m.mlp || m.mlp_up)),
          .mlp_down = full || (selective && m.mlp),
          .projection = full || (selective && m.projection),
          .products = full        ? 1
                      : selective ? m.products
                                  : 0};
}

void attention_block(Recorder& record, const WorkloadContext& c, const Widths& w, LayerKind kind,
                     const Repeated& again) {
  const TransformerShape& m = c.job.model;
  const Precision p = c.job.precision;
  const bool latent = m.latent.key_value_rank > 0;
  const Names first{"qkv", "qkv.input_gradient", "qkv.weight_gradient"};
  const Names second{"projection", "projection.input_gradient", "projection.weight_gradient"};
  const double pieces = c.job.parallelism.tensor_pieces();
  if (latent) {
    latent_products(record, c, w, again);
  } else {
    record.linear({.names = first,
                   .tokens = w.tokens,
                   .x_width = w.hidden,
                   .y_width = w.qkv,
                   .precision = p,
                   .repeated = again.products,
                   .pieces = pieces});
    if (m.rotary) {
      record.elementwise("rotary", c.stack.elementwise.rotary_bytes * w.tokens * w.qkv, 1.0, 1,
                         again.norm);
    }
  }
  const double heads = m.heads / w.tensor;
  context_attention(record, c,
                    {.sequences = static_cast<double>(c.job.batch.micro_sequences) *
                                  c.job.batch.tokens / c.job.batch.attended(),
                     .tokens = c.job.batch.attended(),
                     .heads = heads,
                     .kv_heads = latent ? heads : std::max(1.0, m.kv_heads / w.tensor),
                     .head_dim = static_cast<double>(m.head_dim),
                     .window = kind.windowed ? static_cast<double>(m.window) : 0},
                    again.core);
  record.linear({.names = second,
                 .tokens = w.tokens,
                 .x_width = latent ? heads * m.latent.value_dim : w.attention,
                 .y_width = w.hidden,
                 .precision = p,
                 .repeated = again.projection ? 1 : again.products,
                 .pieces = pieces});
  block_collectives(record, c, w, first, second, again.collectives);
}

void mamba_block(Recorder& record, const WorkloadContext& c, const Widths& w,
                 const Repeated& again) {
  const MambaShape& s = c.job.model.mamba;
  const double inner = s.inner() / w.tensor;
  const Names first{"mamba_in", "mamba_in.input_gradient", "mamba_in.weight_gradient"};
  const Names second{"mamba_out", "mamba_out.input_gradient", "mamba_out.weight_gradient"};
  const double pieces = c.job.parallelism.tensor_pieces();
  record.linear({.names = first,
                 .tokens = w.tokens,
                 .x_width = w.hidden,
                 .y_width = s.in() / w.tensor,
                 .precision = c.job.precision,
                 .repeated = again.products,
                 .pieces = pieces});
  // The fused kernel saves the product alone: convolution and states are made again backward.
  const bool all = again.collectives;
  record.elementwise("convolution", 4 * w.tokens * s.mixed() / w.tensor, 3.0, 1, all);
  if (s.first_generation()) selected_products(record, c, w, again);
  record.scan(s, w.tokens, w.tensor, all);
  if (!s.first_generation()) {
    record.elementwise("gated_norm", 6 * w.tokens * inner, 1.5, 1, again.norm);
  }
  record.linear({.names = second,
                 .tokens = w.tokens,
                 .x_width = inner,
                 .y_width = w.hidden,
                 .precision = c.job.precision,
                 .repeated = again.products,
                 .pieces = pieces});
  block_collectives(record, c, w, first, second, all);
}

void mlp_block(Recorder& record, const WorkloadContext& c, const Widths& w, double ffn,
               const Repeated& again) {
  const ElementwiseTraffic& e = c.stack.elementwise;
  const double inner = ffn / w.tensor, up = (c.job.model.gated ? 2 : 1) * inner;
  const Names first{"mlp_up", "mlp_up.input_gradient", "mlp_up.weight_gradient"};
  const Names second{"mlp_down", "mlp_down.input_gradient", "mlp_down.weight_gradient"};
  const double pieces = c.job.parallelism.tensor_pieces();
  record.linear({.names = first,
                 .tokens = w.tokens,
                 .x_width = w.hidden,
                 .y_width = up,
                 .precision = c.job.precision,
                 .repeated = again.mlp_up ? 1 : again.products,
                 .pieces = pieces});
  const double activation = c.job.model.activation_traffic * e.activation_bytes;
  record.elementwise("activation", activation * w.tokens * (up + inner),
                     e.activation_backward_ratio, 1, again.activation);
  record.linear({.names = second,
                 .tokens = w.tokens,
                 .x_width = inner,
                 .y_width = w.hidden,
                 .precision = c.job.precision,
                 .repeated = again.mlp_down ? 1 : again.products,
                 .pieces = pieces});
  block_collectives(record, c, w, first, second, again.collectives);
}

void expert_block(Recorder& record, const WorkloadContext& c, const Widths& w,
                  const Repeated& again) {
  const ExpertShape& x = c.job.model.experts;
  const Parallelism& par = c.job.parallelism;
  const ElementwiseTraffic& e = c.stack.elementwise;
  const Precision p = c.job.precision;
  const ExpertLoad load = expert_load(c.job);
  // Without sequence parallelism the ranks of a group have the same tokens and share them out.
  const double own = w.tokens / w.tensor;
  const double copies = own * x.per_token * load.rows;
  const double rows = copies * par.expert_tensor;  // of the experts on this rank
  const double inner = static_cast<double>(x.ffn) / par.expert_tensor;
  const double up = (c.job.model.gated ? 2 : 1) * inner;
  const double groups = static_cast<double>(x.count) / par.expert;

  // The router stays in 16 bit in every mixed-precision recipe. Scores, top k and their softmax.
  const Precision router = is_quantised(p) ? Precision::bf16 : p;
  record.linear({{"router", "router.input_gradient", "router.weight_gradient"},
                 own,
                 w.hidden,
                 static_cast<double>(x.count),
                 router,
                 again.collectives ? 1.0 : 0.0});
  record.elementwise("routing", 24 * own * x.count, 1.0, 4, again.collectives);
  // Sorted before they leave, and as they are where they arrive.
  record.elementwise("permute", e.permute_bytes * (copies + rows) / 2 * w.hidden, 1.0, 2,
                     again.collectives, load.fullest);
  record.linear({{"expert_up", "expert_up.input_gradient", "expert_up.weight_gradient"},
                 rows,
                 w.hidden,
                 up,
                 p,
                 again.products,
                 groups,
                 load.fullest,
                 load.useful()});
  const double activation = c.job.model.activation_traffic * e.activation_bytes;
  record.elementwise("activation", activation * rows * (up + inner), e.activation_backward_ratio, 1,
                     again.activation, load.fullest);
  record.linear({{"expert_down", "expert_down.input_gradient", "expert_down.weight_gradient"},
                 rows,
                 inner,
                 w.hidden,
                 p,
                 again.products,
                 groups,
                 load.fullest,
                 load.useful()});
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
    if (phase == Phase::recompute && !again.collectives) continue;
    const Seconds cover = 0.5 * record.compute_time(phase);
    record.dispatch("dispatch", phase, Bytes{2 * copies * w.hidden}, cover);
    record.dispatch("combine", phase, Bytes{2 * copies * w.hidden}, cover);
    if (par.expert_tensor == 1) continue;
    // Ranks that share an expert gather its rows and scatter its results.
    Recorder::Exchange gather;
    gather.name = "expert_gather";
    gather.axis = Axis::expert;
    gather.phase = phase;
    gather.call = {CollectiveOp::all_gather, Bytes{2 * rows * w.hidden}, par.expert_tensor};
    gather.groups = c.expert_shard_groups;
    record.exchange(gather);
    gather.name = "expert_scatter";
    gather.call.op = CollectiveOp::reduce_scatter;
    record.exchange(gather);
  }
  if (x.shared_ffn > 0) {
    mlp_block(record, c, w, x.shared_ffn, again);
  } else if (w.tensor > 1 && !par.sequence) {
    record.collective("expert_all_gather", Phase::forward, CollectiveOp::all_gather,
                      Bytes{2 * w.tokens * w.hidden});
    record.collective("expert_all_gather", Phase::backward, CollectiveOp::all_gather,
                      Bytes{2 * w.tokens * w.hidden});
  }
}

}  // namespace lockstep
