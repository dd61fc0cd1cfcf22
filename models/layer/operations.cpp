#include "models/layer/operations.hpp"

#include <algorithm>
#include <array>

#include "models/layer/blocks.hpp"
#include "models/layer/recorder.hpp"

namespace lockstep {

std::vector<Operation> layer_operations(const WorkloadContext& c, LayerKind kind) {
  Recorder record{c, kind.gradients};
  record_layer(record, c, declare_layer(c.job.model, kind));
  return record.take();
}

std::vector<Operation> prediction_operations(const WorkloadContext& c) {
  const Widths w = widths(c);
  Recorder record{c};
  record.elementwise("prediction_norm", 8 * w.residual_tokens * w.hidden, 1.5, 2, false);
  Recorder::Linear joined{{"prediction", "prediction.input_gradient", "prediction.weight_gradient"},
                          w.tokens,
                          2 * w.hidden,
                          w.hidden / w.tensor,
                          c.job.precision};
  joined.in_layer = false;
  record.linear(joined);
  // Its columns are shared out, gathered after it, and cut into rows again for the layer, as in
  // github:NVIDIA/Megatron-LM: core/transformer/multi_token_prediction.py.
  const Bytes activation{2 * w.tokens * w.hidden}, both = 2 * activation;
  record.collective("prediction_gather", Phase::forward, CollectiveOp::all_gather, activation);
  if (c.job.parallelism.sequence) {
    record.collective("prediction_rows", Phase::forward, CollectiveOp::all_gather, both);
    record.collective("prediction_rows", Phase::backward, CollectiveOp::all_gather, activation);
    record.collective("prediction_scatter", Phase::backward, CollectiveOp::reduce_scatter, both);
  } else {
    record.collective("prediction_reduce", Phase::backward, CollectiveOp::all_reduce, both);
  }
  return record.take();
}

std::vector<Operation> embedding_operations(const WorkloadContext& c) {
  const Widths w = widths(c);
  Recorder record{c};
  // Look-up: read a row, write it; the gradient scatters into the table in 32 bit.
  const double backward_ratio = c.job.adapters.any() || c.job.frozen.embedding ? 0 : 2;
  record.elementwise("embedding", 4 * w.tokens * embedding_width(c.job.model), backward_ratio, 2,
                     false);
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
  Recorder record{c, c.job.frozen.output ? Gradients::inputs : Gradients::all};
  if (c.job.model.last_norm) {
    record.elementwise("final_norm", 4 * w.residual_tokens * w.hidden, 1.5, 1, false);
  }
  Recorder::Linear head{{"head", "head.input_gradient", "head.weight_gradient"},
                        w.tokens,
                        embedding_width(c.job.model),
                        vocabulary,
                        p};
  head.in_layer = false;
  record.linear(head);
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

HiddenTransfer& HiddenTransfer::operator+=(const HiddenTransfer& o) {
  transfer += o.transfer;
  nvlink += o.nvlink;
  network += o.network;
  spare += o.spare;
  return *this;
}

ExchangeCost& ExchangeCost::operator+=(const ExchangeCost& o) {
  hidden += o.hidden;
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
  imbalance += o.imbalance;
  copies += o.copies;
  for (std::size_t a = 0; a < kAxes; ++a) exchanges[a] += o.exchanges[a];
  return *this;
}

PhaseCost phase_cost(const std::vector<Operation>& operations, bool backward, Seconds host,
                     const WorkloadContext& context) {
  const FlopsPerSecond peak = context.node.gpu.peak(context.job.precision);
  PhaseCost cost;
  for (const Operation& o : operations) {
    if ((o.phase != Phase::forward) != backward) continue;
    cost.imbalance += o.imbalance;
    const Seconds time = o.time - o.imbalance;
    if (o.kind == OperationKind::collective) {
      cost.exchanges[static_cast<std::size_t>(o.axis)] +=
          {o.latency, time - o.latency, o.nvlink, o.network, o.hidden};
    } else if (o.phase == Phase::recompute) {
      cost.recompute += time;
    } else if (o.kind == OperationKind::memory) {
      cost.memory += time;
    } else {
      cost.useful += o.useful / peak;
      cost.inefficiency += time - o.useful / peak;
    }
  }
  if (host > cost.total()) cost.launch = host - cost.total();
  return cost;
}

}  // namespace lockstep
