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

  void attention(const AttentionShape& shape, bool repeated) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      AttentionShape s = shape;
      s.direction = direction;
      const Seconds time =
          attention_time(s, c_.stack.attention, gpu_, c_.stack.elementwise, Load::sustained);
      const bool forward = direction == Direction::forward;
      // Model FLOP of the backward pass is twice the forward's; what flash kernels repeat is not.
      const Flops useful = (forward ? 1.0 : 2.0) * attention_flops(shape);
      const Flops work = attention_flops(s);
      const Bytes traffic = (forward ? 1.0 : 2.0) * attention_traffic(shape);
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
    const int t = c_.job.parallelism.tensor;
    if (t == 1) return;
    const double nics_per_gpu = static_cast<double>(c_.node.nics) / c_.node.gpus;
    const CollectiveCost cost = collective_cost({op, payload, t, c_.tensor_ranks_per_domain}, gpu_,
                                                c_.transport, nics_per_gpu * c_.node.nic_bandwidth);
    const double slowdown = c_.stack.communication.tensor_slowdown;
    const Seconds alone = slowdown * (cost.latency + payload / cost.payload_rate);
    const double share =
        std::max(0.0, exposed * static_cast<double>((alone - hidden_behind) / alone));
    if (share == 0.0) return;
    const double bytes = share * payload.base_units();
    add({name,
         OperationKind::collective,
         phase,
         share * alone,
         {},
         share * slowdown * cost.latency,
         Bytes{cost.nvlink_coefficient * bytes},
         Bytes{cost.network_coefficient * bytes}});
  }

  /// Time of the last products named so, for what may hide behind them.
  [[nodiscard]] Seconds time_of(std::string_view name) const {
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
      if (it->name == name) return it->time;
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
  const double tokens = static_cast<double>(c.job.batch.micro_sequences) * c.job.batch.tokens;
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
  const Seconds behind_weight =
      async && !c.split_backward ? record.time_of(first_weight_gradient) : Seconds{};
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
  record.attention({.sequences = static_cast<double>(c.job.batch.micro_sequences),
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

bool is_weight_gradient(const Operation& o) {
  return o.phase == Phase::backward &&
         (o.name.ends_with(".weight_gradient") || o.name == "weight_gradient_accumulation");
}

PhaseCost& PhaseCost::operator+=(const PhaseCost& o) {
  useful += o.useful;
  inefficiency += o.inefficiency;
  memory += o.memory;
  recompute += o.recompute;
  launch += o.launch;
  tensor_latency += o.tensor_latency;
  tensor_transfer += o.tensor_transfer;
  tensor_nvlink += o.tensor_nvlink;
  tensor_network += o.tensor_network;
  return *this;
}

PhaseCost operator*(double count, const PhaseCost& cost) {
  PhaseCost r = cost;
  for (Seconds* s : {&r.useful, &r.inefficiency, &r.memory, &r.recompute, &r.launch,
                     &r.tensor_latency, &r.tensor_transfer}) {
    *s *= count;
  }
  r.tensor_nvlink *= count;
  r.tensor_network *= count;
  return r;
}

PhaseCost phase_cost(const std::vector<Operation>& operations, bool backward, double kernels,
                     const WorkloadContext& context) {
  const FlopsPerSecond peak = context.node.gpu.peak(context.job.precision);
  PhaseCost cost;
  for (const Operation& o : operations) {
    if ((o.phase != Phase::forward) != backward) continue;
    if (o.kind == OperationKind::collective) {
      cost.tensor_latency += o.latency;
      cost.tensor_transfer += o.time - o.latency;
      cost.tensor_nvlink += o.nvlink;
      cost.tensor_network += o.network;
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
