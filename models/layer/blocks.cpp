#include "models/layer/blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

/// The collectives around a block of two products (column-, then row-parallel).
///
/// Cut into c pieces, one for each rank, a product hides all of its transfer but what goes beyond
/// (c - 1) / c of it: a rank begins with the piece that it has, or ends with the one that it keeps.
/// Source: https://discuss.pytorch.org/t/209487 (asynchronous tensor parallelism).
void pair_collectives(Recorder& record, const WorkloadContext& c, const Widths& w,
                      const ProductNames& first, const ProductNames& second, bool repeated) {
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

/// Share of a ring's hops between neighbours that leave an NVLink domain: one for each domain. The
/// most, where groups lie in several ways.
double ring_crossing(const DomainSpreads& groups, int ranks) {
  double most = 0;
  for (const DomainSpread& spread : groups.ways()) {
    const double domains = spread.domains > 0
                               ? spread.domains
                               : std::ceil(static_cast<double>(ranks) / spread.per_domain);
    if (domains > 1) most = std::max(most, std::min(1.0, domains / ranks));
  }
  return most > 0 ? most : 1;
}

/// Attention over a sequence of which context-parallel ranks hold a part each. `repeated`: the core
/// runs again in the backward pass.
void context_attention(Recorder& record, const WorkloadContext& c, const AttentionShape& whole,
                       const Keys& keys, bool repeated) {
  const Parallelism& par = c.job.parallelism;
  const int ranks = par.context;
  AttentionShape local = whole;
  double parts = 1 / keys.ratio;
  if (par.context_exchange == ContextExchange::all_to_all) {
    local.heads = whole.heads / ranks;
    local.kv_heads = std::max(1.0, whole.kv_heads / ranks);
  } else if (keys.chunked) {
    local.sequences = whole.sequences / ranks;
  } else if (ranks > 1) {
    local.tokens = whole.tokens / ranks;
    local.keys = whole.keys / ranks;
    parts *= ranks;
  }
  record.attention({.shape = local, .parts = parts, .repeated = repeated});
  if (ranks == 1) return;

  const double rows = whole.sequences * whole.tokens / ranks;
  const double kv_heads = whole.kv_heads * (whole.keys > 0 ? whole.keys / whole.tokens : 1);
  const Bytes key_value{2 * rows * 2 * kv_heads * whole.head_dim};  // of one rank
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
        e.crossing = ring_crossing(c.context_groups, ranks);
        e.hidden_behind = (1.0 / ranks) * record.time_of("attention", phase);
        break;
      case ContextExchange::all_gather:
        // Backward: gathered again, and the gradients scattered.
        e.call = {CollectiveOp::all_gather, ranks * key_value, ranks};
        e.times = backward ? 2 : 1;
        break;
      case ContextExchange::all_to_all: {
        // Q, K and V in, the result out; the same backward.
        const double width = (2 * whole.heads + 2 * kv_heads) * whole.head_dim;
        e.call = {CollectiveOp::all_to_all, Bytes{2 * rows * width}, ranks};
        break;
      }
    }
    record.exchange(e);
  }
}

/// Of each element of the copies of tokens for experts, forward, and as much backward: a quantised
/// product wants every expert's rows to begin at whole blocks, so that they are copied there, and
/// back. Source: quantization_padding and quantization_unpadding in
/// github:NVIDIA/Megatron-LM:megatron/core/transformer/moe/experts.py.
constexpr double kPaddingBytes = 8;

/// Records each row with the widths and rows of this rank.
class RowRecorder {
 public:
  RowRecorder(Recorder& record, const WorkloadContext& c, const Layer& layer)
      : record_(record),
        c_(c),
        lengths_(lengths_of(layer, c.job.batch)),
        w_(widths(c, layer)),
        recomputed_(c.job, c.stack),
        load_(expert_load(c.job)),
        copies_(w_.tokens / w_.tensor * c.job.model.experts.per_token * load_.rows) {}

  void operator()(const Product& p) {
    const bool experts = p.of_experts();
    const double matrices = p.matrices / (p.matrices > 1 ? ways(p.ways) : 1);
    const Precision job = c_.job.precision;
    Recorder::Linear linear{.names = p.names,
                            .tokens = rows(p.rows) * matrices,
                            .x_width = p.in.on(ways(p.ways)),
                            .y_width = p.out.on(ways(p.ways)),
                            .precision = p.half && is_quantised(job) ? Precision::bf16 : job,
                            .repeated = recomputed_.share(p),
                            .groups = experts ? experts_here() : matrices,
                            .load = load(p.rows),
                            .useful = experts ? load_.useful()
                                              : useful(p.rows) * useful(p.in, ways(p.ways)) *
                                                    useful(p.out, ways(p.ways)),
                            .pieces = p.in_pieces ? c_.job.parallelism.tensor_pieces() : 1.0,
                            .product = &p,
                            .places = p.places,
                            .inputs = p.inputs};
    record_.linear(linear);
  }

  void operator()(const Kernel& k) {
    const ElementwiseTraffic& e = c_.stack.elementwise;
    double bytes = k.bytes, backward = k.backward, on = rows(k.rows);
    switch (k.traffic) {
      case Traffic::fixed:
        break;
      case Traffic::norm_residual:
        bytes *= e.norm_residual_bytes;
        backward = e.norm_backward_ratio;
        break;
      case Traffic::rotary:
        bytes *= e.rotary_bytes;
        break;
      case Traffic::activation:
        bytes *= e.activation_bytes;
        backward = e.activation_backward_ratio;
        break;
      case Traffic::permute:
        bytes *= e.permute_bytes + padding();
        on = (copies_ + on) / 2;  // where they leave, and where they arrive
        break;
      case Traffic::expert_bias:
        bytes *= e.expert_bias_bytes;
        backward = e.expert_bias_backward_ratio;
        if (bytes == 0) return;
        break;
    }
    record_.elementwise(k.name, bytes * on * k.columns.on(ways(k.ways)), backward, k.kernels,
                        recomputed_.is(k.recomputed) || recomputed_.is(k.or_recomputed),
                        load(k.rows));
  }

  void operator()(const Core& core) {
    for (const Keys& keys : core.keys) {
      AttentionShape shape = sequences();
      shape.heads = core.heads / w_.tensor;
      shape.kv_heads = std::max(1.0, core.kv_heads / w_.tensor);
      shape.head_dim = core.head_dim;
      shape.query_dim = core.query_dim;
      shape.causal = keys.causal;
      const double over = lengths_.of(keys);
      if (keys.of_source && over != shape.tokens) shape.keys = over;
      for (const AttentionShape& each : in_chunks(shape, keys)) {
        context_attention(record_, c_, each, keys, recomputed_.is(Recomputed::core));
      }
    }
  }

  /// As long as the half of attention that makes scores.
  void operator()(const IndexScores& index) {
    AttentionShape shape = sequences();
    shape.heads = index.heads;
    shape.kv_heads = 1;
    shape.head_dim = index.dim;
    record_.attention({.name = "index",
                       .shape = shape,
                       .parts = 0.5 / index.keys.ratio,
                       .useful = 1 / w_.tensor,
                       .repeated = recomputed_.is(Recomputed::core)});
  }

  void operator()(const Scan& scan) {
    record_.scan(scan, w_.tokens, w_.tensor, recomputed_.whole());
  }

  void operator()(const PairExchange& pair) {
    pair_collectives(record_, c_, w_, pair.first, pair.second, recomputed_.whole());
  }

  void operator()(const Dispatch& dispatch) {
    const Parallelism& par = c_.job.parallelism;
    for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
      if (phase == Phase::recompute && !recomputed_.whole()) continue;
      const Seconds cover = 0.5 * record_.compute_time(phase);
      record_.dispatch("dispatch", phase, Bytes{2 * copies_ * dispatch.columns}, cover, false);
      record_.dispatch("combine", phase, Bytes{2 * copies_ * dispatch.columns}, cover, true);
      if (par.expert_tensor == 1) continue;
      // Ranks that share an expert gather its rows and scatter its results; those with the most
      // rows take longest.
      Recorder::Exchange gather;
      gather.name = "expert_gather";
      gather.axis = Axis::expert;
      gather.phase = phase;
      gather.call = {CollectiveOp::all_gather,
                     Bytes{2 * load_.fullest * rows(Rows::copies) * dispatch.columns},
                     par.expert_tensor};
      gather.groups = c_.expert_shard_groups;
      record_.exchange(gather);
      gather.name = "expert_scatter";
      gather.call.op = CollectiveOp::reduce_scatter;
      record_.exchange(gather);
    }
  }

  void operator()(const ExpertGather&) {
    if (w_.tensor == 1 || c_.job.parallelism.sequence) return;
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      record_.collective("expert_all_gather", phase, CollectiveOp::all_gather,
                         Bytes{2 * w_.tokens * w_.hidden});
    }
  }

 private:
  /// Transformer Engine pads by kernels of its own. What sends a token once to each rank pads as it
  /// sorts (DeepEP, HybridEP: megatron/core/transformer/moe/fused_a2a.py).
  [[nodiscard]] double padding() const {
    const auto& features = c_.stack.switches;
    const bool engine = features && features->kernels == KernelLibrary::library;
    const bool apart = c_.job.parallelism.expert_dispatch == ExpertDispatch::all_to_all;
    return engine && apart && is_quantised(c_.job.precision) ? kPaddingBytes : 0;
  }
  [[nodiscard]] double rows(Rows which) const {
    switch (which) {
      case Rows::tokens:
      case Rows::repeated:
        return w_.tokens;
      case Rows::residual:
        return w_.residual_tokens;
      case Rows::own:
        // Without sequence parallelism the ranks of a group have the same tokens and share them.
        return w_.tokens / w_.tensor;
      case Rows::copies:
        return copies_ * c_.job.parallelism.expert_tensor;
      case Rows::source:
        return w_.tokens * (lengths_.source / lengths_.own);
    }
    return 0;
  }
  [[nodiscard]] double ways(Ways which) const {
    switch (which) {
      case Ways::none:
        return 1;
      case Ways::tensor:
        return w_.tensor;
      case Ways::expert_tensor:
        return c_.job.parallelism.expert_tensor;
    }
    return 1;
  }
  [[nodiscard]] double load(Rows which) const { return which == Rows::copies ? load_.fullest : 1; }
  [[nodiscard]] double useful(Rows which) const {
    return which == Rows::repeated ? 1 / w_.tensor : 1;
  }
  /// Share of a rank's columns that no other rank has too: of copied units (key-value heads) the
  /// group needs one.
  static double useful(const Width& width, double ranks) {
    if (width.unit == 0 || width.units >= ranks) return 1;
    return 1 - (1 - width.units / ranks) * width.unit / width.on(ranks);
  }
  [[nodiscard]] double experts_here() const {
    return static_cast<double>(c_.job.model.experts.count) / c_.job.parallelism.expert;
  }
  /// Whole chunks of each sequence, and what is left of it; or the sequences, with their window.
  static std::vector<AttentionShape> in_chunks(AttentionShape shape, const Keys& keys) {
    if (!keys.chunked || keys.limit >= shape.tokens) {
      shape.window = keys.chunked ? 0 : keys.limit * keys.ratio;
      return {shape};
    }
    const double whole = std::floor(shape.tokens / keys.limit);
    AttentionShape rest = shape;
    rest.tokens = shape.tokens - whole * keys.limit;
    shape.sequences *= whole;
    shape.tokens = keys.limit;
    if (rest.tokens == 0) return {shape};
    return {shape, rest};
  }
  /// Of a micro batch, for attention: those of packed samples are shorter and more.
  [[nodiscard]] AttentionShape sequences() const {
    AttentionShape shape{};
    shape.sequences =
        static_cast<double>(c_.job.batch.micro_sequences) * lengths_.own / lengths_.attended;
    shape.tokens = lengths_.attended;
    return shape;
  }

  Recorder& record_;
  const WorkloadContext& c_;
  Lengths lengths_;
  Widths w_;
  Repeated recomputed_;
  ExpertLoad load_;
  double copies_;  ///< of this rank's tokens, one for each expert that they go to
};

}  // namespace

Repeated::Repeated(const TrainingJob& job, const StackSpec& stack)
    : whole_(job.recompute == Recompute::full),
      selective_(job.recompute == Recompute::selective),
      unfused_(stack.attention == AttentionKernel::unfused),
      modules_(job.modules) {}

bool Repeated::is(Recomputed what) const {
  if (whole_ || what == Recomputed::always) return true;
  if (!selective_) return false;
  // A flash kernel already repeats the core inside its backward pass.
  if (what == Recomputed::core && !unfused_) return modules_.fused_attention;
  return recomputes(modules_, what);
}

double Repeated::share(const Product& product) const {
  if (is(product.recomputed)) return 1;
  return selective_ && product.recomputed != Recomputed::layer ? modules_.products : 0;
}

void record_layer(Recorder& record, const WorkloadContext& context, const Layer& layer) {
  RowRecorder rows{record, context, layer};
  for (const Row& row : layer.rows) std::visit(rows, row);
}

}  // namespace lockstep
