#include "models/workload/operations.hpp"

#include <algorithm>
#include <array>

#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/kernels/memory_bound.hpp"

namespace lockstep {
namespace {

/// Collects operations; knows how each kind is timed.
class Recorder {
 public:
  explicit Recorder(const WorkloadContext& context) : c_(context), gpu_(context.node.gpu) {}

  /// y = x W and its two backward products. `x_width` columns in, `y_width` out, of `tokens` rows.
  struct Linear {
    std::array<std::string_view, 3> names;
    double tokens, x_width, y_width;
    Precision precision;
    bool repeated;  ///< part of what full recompute runs again
  };
  void linear(const Linear& l) {
    const Flops work{2 * l.tokens * l.x_width * l.y_width};
    product(l.names[0], Phase::forward, {l.tokens, l.y_width, l.x_width}, l.precision, work);
    if (l.repeated) {
      product(l.names[0], Phase::recompute, {l.tokens, l.y_width, l.x_width}, l.precision, Flops{});
    }
    product(l.names[1], Phase::backward, {l.tokens, l.x_width, l.y_width}, l.precision, work);
    product(l.names[2], Phase::backward, {l.y_width, l.x_width, l.tokens}, l.precision, work);
    memory("weight_gradient_accumulation", Phase::backward,
           Bytes{c_.stack.weight_gradient_traffic * l.x_width * l.y_width}, 0);
    if (is_quantised(l.precision)) {
      quantise(Phase::forward, c_.stack.elementwise.quantise_bytes * l.tokens * l.x_width);
      quantise(Phase::backward,
               c_.stack.elementwise.quantise_backward_bytes * l.tokens * l.y_width);
    }
  }

  /// Context-parallel ranks take `parts` calls of `shape` each: every rank holds an early and a
  /// late piece of the sequence, so that the causal half is shared out evenly.
  void attention(const AttentionShape& shape, int parts, bool repeated) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      AttentionShape s = shape;
      s.direction = direction;
      const Seconds time = parts * attention_time(s, c_.stack.attention, gpu_, c_.stack.elementwise,
                                                  Load::sustained);
      const bool forward = direction == Direction::forward;
      // Model FLOP of the backward pass is twice the forward's; what flash kernels repeat is not.
      const Flops useful = (forward ? 1.0 : 2.0) * parts * attention_flops(shape);
      const Flops work = parts * attention_flops(s);
      const Bytes traffic = (forward ? 1.0 : 2.0) * parts * attention_traffic(shape);
      add({"attention",
           OperationKind::attention,
           forward ? Phase::forward : Phase::backward,
           time,
           useful,
           {},
           {},
           {},
           work,
           traffic});
      if (forward && repeated) {
        add({"attention",
             OperationKind::attention,
             Phase::recompute,
             time,
             {},
             {},
             {},
             {},
             work,
             traffic});
      }
    }
  }

  /// `kernels` of equal traffic; 0: the traffic rides on a product's own kernel.
  void memory(std::string_view name, Phase phase, Bytes traffic, int kernels) {
    if (traffic <= Bytes{}) return;
    const Seconds time = kernels == 0 ? traffic / (gpu_.memory.efficiency * gpu_.hbm_bandwidth)
                                      : kernels * memory_bound_time(traffic / kernels, gpu_);
    const double slowdown = c_.stack.elementwise.slowdown;
    add({name,
         OperationKind::memory,
         phase,
         slowdown * time,
         {},
         {},
         {},
         {},
         {},
         slowdown * traffic});
  }
  void elementwise(std::string_view name, double bytes, double backward_ratio, int kernels,
                   bool repeated) {
    memory(name, Phase::forward, Bytes{bytes}, kernels);
    if (repeated) memory(name, Phase::recompute, Bytes{bytes}, kernels);
    memory(name, Phase::backward, Bytes{backward_ratio * bytes}, kernels);
  }

  /// A tensor-parallel collective of which compute waits for `exposed` of the time beyond what
  /// `hidden_behind` covers.
  void collective(std::string_view name, Phase phase, CollectiveOp op, Bytes payload,
                  double exposed = 1.0, Seconds hidden_behind = {}) {
    exchange({.name = name,
              .axis = Axis::tensor,
              .phase = phase,
              .call = {op, payload, c_.job.parallelism.tensor, c_.tensor_ranks_per_domain},
              .slowdown = c_.stack.communication.tensor_slowdown,
              .exposed = exposed,
              .hidden_behind = hidden_behind});
  }

  struct Exchange {
    std::string_view name;
    Axis axis = Axis::tensor;
    Phase phase = Phase::forward;
    CollectiveCall call{};
    double slowdown = 1;    ///< time over that of nccl-tests
    double exposed = 1;     ///< share that compute waits for ...
    Seconds hidden_behind{};///< ... of the time beyond this
    double times = 1;       ///< one after the other
  };
  void exchange(const Exchange& e) {
    if (e.call.ranks == 1) return;
    const double nics_per_gpu = static_cast<double>(c_.node.nics) / c_.node.gpus;
    const CollectiveCost cost =
        collective_cost(e.call, gpu_, c_.transport, nics_per_gpu * c_.node.nic_bandwidth);
    const Seconds alone = e.slowdown * (cost.latency + e.call.payload / cost.payload_rate);
    const double share =
        e.times * std::max(0.0, e.exposed * static_cast<double>((alone - e.hidden_behind) / alone));
    if (share == 0.0) return;
    const double bytes = share * e.call.payload.base_units();
    Operation operation{e.name,
                        OperationKind::collective,
                        e.phase,
                        share * alone,
                        {},
                        share * e.slowdown * cost.latency,
                        Bytes{cost.nvlink_coefficient * bytes},
                        Bytes{cost.network_coefficient * bytes}};
    operation.axis = e.axis;
    add(operation);
  }

  /// Time of the last operation named so, for what may hide behind it.
  [[nodiscard]] Seconds time_of(std::string_view name) const {
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
      if (it->name == name) return it->time;
    }
    return {};
  }
  [[nodiscard]] Seconds time_of(std::string_view name, Phase phase) const {
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
      if (it->name == name && it->phase == phase) return it->time;
    }
    return {};
  }
  std::vector<Operation> take() { return std::move(operations_); }

 private:
  /// Queries, keys, values and the result, once each in 16 bit; unfused kernels move their scores
  /// too.
  [[nodiscard]] Bytes attention_traffic(const AttentionShape& s) const {
    const double rows = 2 * s.sequences * s.tokens * s.head_dim * (2 * s.heads + 2 * s.kv_heads);
    const double scores =
        c_.stack.attention == AttentionKernel::unfused
            ? c_.stack.elementwise.score_bytes * s.sequences * s.heads * s.tokens * s.tokens
            : 0;
    return Bytes{rows + scores};
  }
  void add(const Operation& operation) { operations_.push_back(operation); }
  void product(std::string_view name, Phase phase, const GemmShape& shape, Precision precision,
               Flops useful) {
    add({name,
         OperationKind::product,
         phase,
         gemm_time(shape, precision, gpu_, Load::sustained),
         useful,
         {},
         {},
         {},
         gemm_flops(shape),
         gemm_traffic(shape, precision),
         precision});
  }
  void quantise(Phase phase, double bytes) { memory("quantise", phase, Bytes{bytes}, 1); }

  const WorkloadContext& c_;
  const GpuSpec& gpu_;
  std::vector<Operation> operations_;
};

struct Widths {
  double tokens, tensor, hidden;
  double attention, qkv, ffn_up, ffn;  ///< of one tensor-parallel rank
  double residual_tokens;              ///< rows of norms and residuals on one rank
};
Widths widths(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const double t = c.job.parallelism.tensor;
  const double tokens = static_cast<double>(c.job.batch.micro_sequences) * c.job.batch.tokens /
                        c.job.parallelism.context;
  const double kv = std::max(1.0, m.kv_heads / t);  // fewer heads than ranks: replicated
  return {.tokens = tokens,
          .tensor = t,
          .hidden = static_cast<double>(m.hidden),
          .attention = m.heads / t * m.head_dim,
          .qkv = (m.heads / t + 2 * kv) * m.head_dim,
          .ffn_up = (m.gated ? 2.0 : 1.0) * m.ffn / t,
          .ffn = m.ffn / t,
          .residual_tokens = c.job.parallelism.sequence ? tokens / t : tokens};
}

/// The collectives around a block of two products (column-, then row-parallel).
void block_collectives(Recorder& record, const WorkloadContext& c, const Widths& w,
                       std::string_view first_input_gradient,
                       std::string_view first_weight_gradient, bool repeated) {
  const Bytes activation{2 * w.tokens * w.hidden};
  const CommunicationPolicy& policy = c.stack.communication;
  const double exposed = policy.tensor_exposed;
  const bool async = policy.async_tensor_backward;
  const Seconds behind_weight = async ? record.time_of(first_weight_gradient) : Seconds{};
  const Seconds behind_input = async ? record.time_of(first_input_gradient) : Seconds{};
  if (!c.job.parallelism.sequence) {
    record.collective("all_reduce", Phase::forward, CollectiveOp::all_reduce, activation, 1.0);
    if (repeated) {
      record.collective("all_reduce", Phase::recompute, CollectiveOp::all_reduce, activation, 1.0);
    }
    record.collective("all_reduce", Phase::backward, CollectiveOp::all_reduce, activation, 1.0,
                      behind_weight);
    return;
  }
  for (const Phase phase : {Phase::forward, Phase::recompute}) {
    if (phase == Phase::recompute && !repeated) continue;
    record.collective("all_gather", phase, CollectiveOp::all_gather, activation, exposed);
    record.collective("reduce_scatter", phase, CollectiveOp::reduce_scatter, activation, exposed);
  }
  record.collective("all_gather", Phase::backward, CollectiveOp::all_gather, activation, exposed);
  record.collective("all_gather.input", Phase::backward, CollectiveOp::all_gather, activation,
                    exposed, behind_input);
  record.collective("reduce_scatter", Phase::backward, CollectiveOp::reduce_scatter, activation,
                    exposed, behind_weight);
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
  const int near = c.context_ranks_per_domain;
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
    if (phase == Phase::recompute && !repeated) continue;
    const bool backward = phase == Phase::backward;
    Recorder::Exchange e;
    e.name = "context";
    e.axis = Axis::context;
    e.phase = phase;
    switch (par.context_exchange) {
      case ContextExchange::ring:
        // Keys and values go round beside the kernels; their gradients follow them backward.
        e.call = {CollectiveOp::send_receive, (backward ? 2.0 : 1.0) * key_value, 2,
                  near == ranks ? 2 : 1};
        e.times = ranks - 1;
        e.hidden_behind = (1.0 / ranks) * record.time_of("attention", phase);
        break;
      case ContextExchange::all_gather:
        // Backward: gathered again, and the gradients scattered.
        e.call = {CollectiveOp::all_gather, ranks * key_value, ranks, near};
        e.times = backward ? 2 : 1;
        break;
      case ContextExchange::all_to_all: {
        // Q, K and V in, the result out; the same backward.
        const double width = (2 * whole.heads + 2 * whole.kv_heads) * whole.head_dim;
        e.call = {CollectiveOp::all_to_all, Bytes{2 * rows * width}, ranks, near};
        break;
      }
    }
    record.exchange(e);
  }
}

}  // namespace

std::vector<Operation> layer_operations(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const ElementwiseTraffic& e = c.stack.elementwise;
  const Widths w = widths(c);
  const Precision p = c.job.precision;
  const bool full = c.job.recompute == Recompute::full;
  // A flash kernel already repeats the core inside its backward pass.
  const bool core_again = full || (c.job.recompute == Recompute::selective &&
                                   c.stack.attention == AttentionKernel::unfused);
  Recorder record{c};

  record.elementwise("norm_residual", e.norm_residual_bytes * w.residual_tokens * w.hidden,
                     e.norm_backward_ratio, 4, full);
  record.linear(
      {{"qkv", "qkv.input_gradient", "qkv.weight_gradient"}, w.tokens, w.hidden, w.qkv, p, full});
  if (m.rotary) record.elementwise("rotary", e.rotary_bytes * w.tokens * w.qkv, 1.0, 1, full);
  context_attention(record, c,
                    {.sequences = static_cast<double>(c.job.batch.micro_sequences),
                     .tokens = static_cast<double>(c.job.batch.tokens),
                     .heads = m.heads / w.tensor,
                     .kv_heads = std::max(1.0, m.kv_heads / w.tensor),
                     .head_dim = static_cast<double>(m.head_dim)},
                    core_again);
  record.linear({{"projection", "projection.input_gradient", "projection.weight_gradient"},
                 w.tokens,
                 w.attention,
                 w.hidden,
                 p,
                 full});
  block_collectives(record, c, w, "qkv.input_gradient", "qkv.weight_gradient", full);

  record.linear({{"mlp_up", "mlp_up.input_gradient", "mlp_up.weight_gradient"},
                 w.tokens,
                 w.hidden,
                 w.ffn_up,
                 p,
                 full});
  record.elementwise("activation", e.activation_bytes * w.tokens * (w.ffn_up + w.ffn),
                     e.activation_backward_ratio, 1, full);
  record.linear({{"mlp_down", "mlp_down.input_gradient", "mlp_down.weight_gradient"},
                 w.tokens,
                 w.ffn,
                 w.hidden,
                 p,
                 full});
  block_collectives(record, c, w, "mlp_up.input_gradient", "mlp_up.weight_gradient", full);
  return record.take();
}

std::vector<Operation> embedding_operations(const WorkloadContext& c) {
  const Widths w = widths(c);
  Recorder record{c};
  // Look-up: read a row, write it; the gradient scatters into the table in 32 bit.
  record.elementwise("embedding", 4 * w.tokens * w.hidden, 2.0, 2, false);
  const CollectiveOp op =
      c.job.parallelism.sequence ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  record.collective("embedding_reduce", Phase::forward, op, Bytes{2 * w.tokens * w.hidden});
  return record.take();
}

std::vector<Operation> head_operations(const WorkloadContext& c) {
  const Widths w = widths(c);
  const double vocabulary = c.job.model.vocabulary / w.tensor;
  // The output projection stays in 16 bit in every mixed-precision recipe.
  const Precision p = is_quantised(c.job.precision) ? Precision::bf16 : c.job.precision;
  Recorder record{c};
  record.elementwise("final_norm", 4 * w.residual_tokens * w.hidden, 1.5, 1, false);
  record.linear({{"head", "head.input_gradient", "head.weight_gradient"},
                 w.tokens,
                 w.hidden,
                 vocabulary,
                 p,
                 false});
  // Loss: maximum, sum of exponentials and target logit cross the group, 4 bytes a token each.
  record.memory("loss", Phase::forward,
                Bytes{c.stack.elementwise.loss_bytes / 2 * w.tokens * vocabulary}, 3);
  record.memory("loss", Phase::backward,
                Bytes{c.stack.elementwise.loss_bytes / 2 * w.tokens * vocabulary}, 1);
  for (int i = 0; i < 3; ++i) {
    record.collective("loss_reduce", Phase::forward, CollectiveOp::all_reduce, Bytes{4 * w.tokens});
  }
  const Bytes activation{2 * w.tokens * w.hidden};
  if (c.job.parallelism.sequence) {
    record.collective("head_gather", Phase::forward, CollectiveOp::all_gather, activation);
    record.collective("head_scatter", Phase::backward, CollectiveOp::reduce_scatter, activation);
  } else {
    record.collective("head_reduce", Phase::backward, CollectiveOp::all_reduce, activation);
  }
  return record.take();
}

ExchangeCost& ExchangeCost::operator+=(const ExchangeCost& o) {
  latency += o.latency;
  transfer += o.transfer;
  nvlink += o.nvlink;
  network += o.network;
  return *this;
}

ExchangeCost PhaseCost::exchange() const {
  ExchangeCost sum;
  for (const ExchangeCost& e : exchanges) sum += e;
  return sum;
}

PhaseCost& PhaseCost::operator+=(const PhaseCost& o) {
  useful += o.useful;
  inefficiency += o.inefficiency;
  memory += o.memory;
  recompute += o.recompute;
  launch += o.launch;
  for (std::size_t a = 0; a < kAxes; ++a) exchanges[a] += o.exchanges[a];
  return *this;
}

PhaseCost phase_cost(const std::vector<Operation>& operations, bool backward, double kernels,
                     const WorkloadContext& context) {
  const FlopsPerSecond peak = context.node.gpu.peak(context.job.precision);
  PhaseCost cost;
  for (const Operation& o : operations) {
    if ((o.phase != Phase::forward) != backward) continue;
    if (o.kind == OperationKind::collective) {
      cost.exchanges[static_cast<std::size_t>(o.axis)] +=
          {o.latency, o.time - o.latency, o.nvlink, o.network};
    } else if (o.phase == Phase::recompute) {
      cost.recompute += o.time;
    } else if (o.kind == OperationKind::memory) {
      cost.memory += o.time;
    } else {
      cost.useful += o.useful / peak;
      cost.inefficiency += o.time - o.useful / peak;
    }
  }
  const Seconds host = kernels * context.stack.launch_interval;
  if (host > cost.total()) cost.launch = host - cost.total();
  return cost;
}

}  // namespace lockstep
