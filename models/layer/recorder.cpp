#include "models/layer/recorder.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "models/kernels/memory_bound.hpp"

namespace lockstep {

Widths widths(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const double t = c.job.parallelism.tensor;
  const double tokens = static_cast<double>(c.job.batch.micro_sequences) * c.job.batch.tokens /
                        c.job.parallelism.context;
  return {.tokens = tokens,
          .tensor = t,
          .hidden = static_cast<double>(m.hidden),
          .residual_tokens = c.job.parallelism.sequence ? tokens / t : tokens};
}

Widths widths(const WorkloadContext& c, const Layer& layer) {
  Widths w = widths(c);
  const double share = lengths_of(layer, c.job.batch).own / c.job.batch.tokens;
  w.tokens *= share;
  w.residual_tokens *= share;
  w.hidden = layer.width;
  return w;
}

namespace {

/// y = x W, the gradient of x, and that of W. A window's places stand side by side in a row of x;
/// the gradient of x is a convolution of y's, over as many places.
struct LinearShapes {
  GemmShape forward, input, weight;
};
LinearShapes shapes_of(const Recorder::Linear& l) {
  // A row at least: of a decoding step, a rank or an expert may have part of a token on average.
  const double rows = std::max(1.0, l.tokens / l.groups), g = l.groups;
  const double x = l.x_width, y = l.y_width;
  LinearShapes out{.forward = {.m = rows, .n = y, .k = x, .count = g},
                   .input = {.m = rows, .n = x, .k = y, .count = g},
                   .weight = {.m = y, .n = x, .k = rows, .count = g}};
  if (l.places == 1 && l.inputs == 1) return out;
  const double repeats = l.places / l.inputs;
  out.forward.repeats = repeats;
  out.input = {
      .m = rows * l.inputs, .n = x / l.places, .k = y * repeats, .count = g, .repeats = l.places};
  out.weight = {.m = x, .n = y, .k = rows, .count = g, .repeats = repeats};
  return out;
}

/// Times that `shape` runs. Transformer Engine makes the products of experts one by one, each with
/// a last wave of its own: multi_stream_cublas_gemm in github:NVIDIA/TransformerEngine:
/// transformer_engine/common/gemm/cublaslt_gemm.cu. Left out: that the next one, on another of its
/// streams, may start within the last wave, and the one kernel for all that CUDA graphs of whole
/// steps take. Other software has one kernel, slower by what its uneven groups cost.
double split_by_expert(const StackSpec& stack, bool experts, GemmShape& shape) {
  if (shape.count == 1) return 1;
  const bool engine = stack.switches && stack.switches->kernels == KernelLibrary::library;
  if (!engine || !experts) return stack.grouped_slowdown;
  return std::exchange(shape.count, 1);
}

}  // namespace

void Recorder::linear(const Linear& l) {
  const auto [forward, input, weight] = shapes_of(l);
  const double g = l.groups;
  const Flops work{l.useful * 2 * l.tokens * l.x_width * l.y_width};
  product(l.names[0], Phase::forward, forward, l, work);
  if (l.repeated > 0) {
    product(l.names[0], Phase::recompute, forward, l, Flops{});
    Operation& again = operations_.back();
    again.time *= l.repeated;
    again.imbalance *= l.repeated;
    again.arithmetic *= l.repeated;
    again.traffic *= l.repeated;
  }
  product(l.names[1], Phase::backward, input, l, work);
  const Adapters& adapters = c_.job.adapters;
  const bool trains = !adapters.any() && gradients_ == Gradients::all;
  if (trains) {
    product(l.names[2], Phase::backward, weight, l, work);
    memory("weight_gradient_accumulation", Phase::backward,
           Bytes{c_.stack.weight_gradient_traffic * g * l.x_width * l.y_width}, 0);
  }
  if (l.in_layer && adapters.base == BaseFormat::nf4) {
    // Read as stored, written in 16 bit, by a kernel of its own before each use.
    const Bytes once{(frozen_weight_bytes(adapters) + 2) * g * l.x_width * l.y_width};
    memory("dequantise", Phase::forward, once, 1);
    memory("dequantise", Phase::recompute, l.repeated * once, 1);
    memory("dequantise", Phase::backward, once, 1);
  }
  if (l.product != nullptr && l.product->adapter && adapters.on(*l.product->adapter)) {
    adapter(l, *l.product);
  }
  if (is_quantised(l.precision)) {
    const ElementwiseTraffic& e = c_.stack.elementwise;
    memory("quantise", Phase::forward, Bytes{e.quantise_bytes * l.tokens * l.x_width}, 1, l.load);
    // A second copy of the output's gradient, turned over, is for the gradient of the weights.
    const double copies = e.quantise_backward_bytes - (trains ? 0 : 1);
    memory("quantise", Phase::backward, Bytes{copies * l.tokens * l.y_width}, 1, l.load);
  }
}

/// y += scale x A B. Of a product whose columns are split over tensor-parallel ranks, A's columns
/// and B's are; of one whose rows are, A's rows and B's columns. Either way the ranks share x A,
/// which is tokens x r. Those that compress vectors are whole on every rank. Scaling and adding are
/// kernels of their own, as in
/// github:NVIDIA-NeMo/Megatron-Bridge:src/megatron/bridge/peft/utils.py.
void Recorder::adapter(const Linear& l, const Product& declared) {
  const TrainingJob& job = c_.job;
  const bool of_experts = declared.of_experts();
  const bool rows = declared.in.shared > 0;
  const bool whole = declared.ways == Ways::none;
  const double ways = whole        ? 1
                      : of_experts ? job.parallelism.expert_tensor
                                   : job.parallelism.tensor;
  const double r = job.adapters.rank, pair = declared.adapters;
  const Precision p = is_quantised(l.precision) ? Precision::bf16 : l.precision;
  const double inner = pair * (rows ? r : r / ways), outer = rows ? l.y_width / ways : l.y_width;
  const Bytes result{2 * l.tokens * l.y_width}, input{2 * l.tokens * l.x_width};
  const double groups = job.adapters.experts == ExpertAdapters::own ? l.groups : 1;
  const auto thin = [&](std::array<std::string_view, 3> names, double in, double out) {
    Linear of{names, l.tokens, in, out, p};
    of.load = l.load;
    const double m = l.tokens / groups;
    const Flops work{l.useful * 2 * l.tokens * in * out};
    const GemmShape forward{.m = m, .n = out, .k = in, .count = groups};
    product(names[0], Phase::forward, forward, of, work);
    if (l.repeated == 1) product(names[0], Phase::recompute, forward, of, {});
    product(names[1], Phase::backward, {.m = m, .n = in, .k = out, .count = groups}, of, work);
    product(names[2], Phase::backward, {.m = out, .n = in, .k = m, .count = groups}, of, work);
  };
  thin({"adapter_in", "adapter_in.input_gradient", "adapter_in.weight_gradient"}, l.x_width, inner);
  thin({"adapter_out", "adapter_out.input_gradient", "adapter_out.weight_gradient"}, r, outer);
  for (const Phase phase : {Phase::forward, Phase::recompute, Phase::backward}) {
    if (phase == Phase::recompute && l.repeated < 1) continue;
    const bool backward = phase == Phase::backward;
    memory("adapter_scale", phase, 2.0 * result, 1, l.load);
    memory("adapter_add", phase, 3.0 * (backward ? input : result), 1, l.load);
    if (whole) continue;
    const CollectiveOp op =
        rows == backward ? CollectiveOp::all_gather : CollectiveOp::reduce_scatter;
    share_adapter(phase, op, Bytes{2 * l.tokens * r}, of_experts);
  }
}

/// Ranks that split a product exchange what comes between the thin matrices of its adapter.
void Recorder::share_adapter(Phase phase, CollectiveOp op, Bytes payload, bool of_experts) {
  if (!of_experts) return collective("adapter_exchange", phase, op, payload);
  const int ranks = c_.job.parallelism.expert_tensor;
  exchange({.name = "adapter_exchange",
            .axis = Axis::expert,
            .phase = phase,
            .call = {.op = op, .payload = payload, .ranks = ranks},
            .groups = c_.expert_shard_groups});
}

void Recorder::product(std::string_view name, Phase phase, const GemmShape& shape, const Linear& of,
                       Flops useful) {
  const double pieces = name == of.names[2] ? 1 : std::max(1.0, std::min(of.pieces, shape.m));
  GemmShape piece = shape;
  piece.m /= pieces;
  const bool experts = of.product != nullptr && of.product->of_experts();
  const double times = pieces * split_by_expert(c_.stack, experts, piece);
  const Seconds time = times * gemm_time(piece, of.precision, gpu_, Load::sustained);
  Operation operation{name,
                      OperationKind::product,
                      phase,
                      of.load * time,
                      useful,
                      {},
                      {},
                      {},
                      gemm_flops(shape),
                      gemm_traffic(shape, of.precision),
                      of.precision};
  operation.imbalance = (of.load - 1) * time;
  add(operation);
}

void Recorder::attention(const AttentionCall& call) {
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    AttentionShape s = call.shape;
    s.direction = direction;
    const Seconds time = call.parts * attention_time(s, c_.stack.attention, gpu_,
                                                     c_.stack.elementwise, Load::sustained);
    const bool forward = direction == Direction::forward;
    // Model FLOP of the backward pass is twice the forward's; what flash kernels repeat is not.
    const Flops useful =
        (forward ? 1.0 : 2.0) * call.useful * call.parts * attention_flops(call.shape);
    const Flops work = call.parts * attention_flops(s);
    const Bytes traffic = (forward ? 1.0 : 2.0) * call.parts * attention_traffic(call.shape);
    const auto record = [&](Phase phase, Flops model_work) {
      add({call.name,
           OperationKind::attention,
           phase,
           time,
           model_work,
           {},
           {},
           {},
           work,
           traffic});
    };
    record(forward ? Phase::forward : Phase::backward, useful);
    if (forward && call.repeated) record(Phase::recompute, {});
  }
}

void Recorder::scan(const Scan& shape, double tokens, double ways, bool repeated) {
  const double kernels = shape.kernels;
  const Precision format = c_.job.precision == Precision::fp16 ? Precision::fp16 : Precision::bf16;
  const FlopsPerSecond rate = c_.stack.scan_efficiency * gpu_.peak(format);
  const Flops flops{tokens * shape.flops / ways};
  const Bytes bytes{tokens * shape.bytes / ways};
  const auto record = [&](Phase phase, double times, Flops useful) {
    const Seconds moving = kernels * memory_bound_time(times / kernels * bytes, gpu_);
    add({"scan",
         OperationKind::attention,
         phase,
         std::max(times * flops / rate, moving),
         useful,
         {},
         {},
         {},
         times * flops,
         times * bytes,
         format});
  };
  record(Phase::forward, 1, flops);
  if (repeated) record(Phase::recompute, 1, {});
  record(Phase::backward, 3, 2.0 * flops);
}

void Recorder::memory(std::string_view name, Phase phase, Bytes traffic, int kernels, double load) {
  if (traffic <= Bytes{}) return;
  const double slowdown = c_.stack.elementwise.slowdown;
  const Seconds time =
      slowdown * (kernels == 0 ? traffic / (gpu_.memory.efficiency * gpu_.hbm_bandwidth)
                               : kernels * memory_bound_time(traffic / kernels, gpu_));
  Operation operation{name, OperationKind::memory, phase, load * time, {}, {}, {}, {},
                      {},   slowdown * traffic};
  operation.imbalance = (load - 1) * time;
  add(operation);
}

void Recorder::elementwise(std::string_view name, double bytes, double backward_ratio, int kernels,
                           bool repeated, double load) {
  memory(name, Phase::forward, Bytes{bytes}, kernels, load);
  if (repeated) memory(name, Phase::recompute, Bytes{bytes}, kernels, load);
  memory(name, Phase::backward, Bytes{backward_ratio * bytes}, kernels, load);
}

CollectiveCost Recorder::cost_of(const CollectiveCall& call, const DomainSpreads& groups) const {
  return slowest_cost(call, groups, gpu_, c_.transport, nic_share(c_.node));
}

Seconds Recorder::time_alone(const Exchange& e) const {
  const CollectiveCost cost = cost_of(e.call, e.groups);
  return e.slowdown * (cost.latency + e.call.payload / cost.payload_rate);
}

void Recorder::exchange(const Exchange& e) {
  if (e.call.ranks == 1) return;
  const CollectiveCost cost = cost_of(e.call, e.groups);
  const Seconds alone = e.slowdown * (cost.latency + e.call.payload / cost.payload_rate);
  const double share =
      e.times * std::max(0.0, e.exposed * static_cast<double>((alone - e.hidden_behind) / alone));
  const double hidden = e.times - share;
  if (share == 0.0 && (hidden == 0.0 || cost.network_coefficient == 0)) return;
  const double bytes = share * e.call.payload.base_units();
  // What stays inside crosses NVLink at the pace of those that leave.
  const double network = e.crossing * cost.network_coefficient;
  const double nvlink = cost.nvlink_coefficient + (1 - e.crossing) * cost.network_coefficient;
  Operation operation{e.name,
                      OperationKind::collective,
                      e.phase,
                      share * alone,
                      {},
                      share * e.slowdown * cost.latency,
                      Bytes{nvlink * bytes},
                      Bytes{network * bytes}};
  operation.axis = e.axis;
  operation.op = e.call.op;
  operation.algorithm = cost.algorithm;
  operation.channels = cost.channels;
  operation.skew = e.call.skew;
  operation.payload = e.call.payload;
  const double hidden_bytes = hidden * e.call.payload.base_units();
  operation.hidden = {
      .transfer = hidden * e.slowdown * e.call.payload / cost.payload_rate,
      .nvlink = Bytes{nvlink * hidden_bytes},
      .network = Bytes{network * hidden_bytes},
      .spare = e.times * std::max(e.spare, std::max(Seconds{}, e.hidden_behind - alone))};
  add(operation);
}

void Recorder::collective(std::string_view name, Phase phase, CollectiveOp op, Bytes payload,
                          double exposed, Seconds hidden_behind) {
  exchange({.name = name,
            .axis = Axis::tensor,
            .phase = phase,
            .call = {.op = op, .payload = payload, .ranks = c_.job.parallelism.tensor},
            .groups = c_.tensor_groups,
            .slowdown = c_.stack.communication.tensor_slowdown,
            .exposed = exposed,
            .hidden_behind = hidden_behind});
}

/// The exchange of tokens in groups that lie so.
Recorder::Exchange Recorder::placed_dispatch(Exchange e, const DomainSpread& spread) const {
  e.groups = DomainSpreads{{spread}};
  const int ranks = e.call.ranks, near = std::min(ranks, spread.per_domain);
  const bool two_level = c_.job.parallelism.expert_dispatch == ExpertDispatch::two_level;
  if (!two_level || near == ranks) return e;
  // One copy of a token to each domain that has experts for it, k / domains of them by chance:
  // D (1 - (1 - 1/D)^k) of D. Inside the domain NVLink hands it on meanwhile.
  const Bytes copies = e.call.payload;
  const double domains =
      spread.domains > 0 ? spread.domains : std::ceil(static_cast<double>(ranks) / near);
  const ExpertLoad load = expert_load(c_.job);
  const double k = c_.job.model.experts.per_token * load.kept;
  const auto reaches = [k](double share) { return 1 - std::pow(1 - share, k); };
  double reached = domains * reaches(1 / domains);
  if (!e.call.skew.is_even()) {
    // Of the copies, the domain of the fullest rank gets that rank's and its even share of the
    // rest.
    const double rest = (ranks - load.fullest) / (ranks - 1.0);
    const double hot = std::min(1.0, (load.fullest + (near - 1) * rest) / ranks);
    reached = reaches(hot) + (domains - 1) * reaches((1 - hot) / (domains - 1));
    e.call.skew.fullest = std::max(1.0, domains * reaches(hot) / reached);
    e.call.skew.whole_domain = true;
  }
  e.call.payload = std::min(1.0, reached / k) * copies;
  if (near > 1) {
    const Bytes fullest = load.fullest * copies;
    const CollectiveCost local = cost_of({e.call.op, fullest, near}, near);
    const Seconds nvlink = local.latency + fullest / local.payload_rate;
    e.slowdown = std::max(1.0, static_cast<double>(nvlink / time_alone(e)));
  }
  return e;
}

void Recorder::dispatch(std::string_view name, Phase phase, Bytes copies, Seconds cover,
                        bool back) {
  const Parallelism& par = c_.job.parallelism;
  if (par.expert == 1) return;
  const ExchangeSkew skew{.fullest = expert_load(c_.job).fullest, .back = back};
  Exchange whole{.name = name,
                 .axis = back && !skew.is_even() ? Axis::expert_return : Axis::expert,
                 .phase = phase,
                 .call = {.op = CollectiveOp::all_to_all, .payload = copies, .ranks = par.expert}};
  if (!skew.is_even()) whole.call.skew = skew;
  Exchange slowest = placed_dispatch(whole, c_.expert_groups.ways().front());
  for (std::size_t i = 1; i < c_.expert_groups.ways().size(); ++i) {
    const Exchange other = placed_dispatch(whole, c_.expert_groups.ways()[i]);
    if (time_alone(other) > time_alone(slowest)) slowest = other;
  }
  if (par.expert_overlap) {
    const Seconds alone = time_alone(slowest);
    const double least = c_.stack.communication.expert_overlapped;
    slowest.exposed = std::max(least, 1 - double{cover / alone});
    slowest.spare = std::max(Seconds{}, cover - (1 - least) * alone);
  }
  exchange(slowest);
}

std::vector<Operation> Recorder::take() {
  if (gradients_ == Gradients::none) {
    std::erase_if(operations_, [](const Operation& o) { return o.phase != Phase::forward; });
  }
  return std::move(operations_);
}

Seconds Recorder::compute_time(Phase phase) const {
  Seconds sum;
  for (const Operation& o : operations_) {
    if (o.phase == phase && o.kind != OperationKind::collective) sum += o.time;
  }
  return sum;
}

Seconds Recorder::time_of(std::string_view name) const {
  for (const auto& operation : std::views::reverse(operations_)) {
    if (operation.name == name) return operation.time;
  }
  return {};
}
Seconds Recorder::time_of(std::string_view name, Phase phase) const {
  for (const auto& operation : std::views::reverse(operations_)) {
    if (operation.name == name && operation.phase == phase) return operation.time;
  }
  return {};
}

/// Queries, keys, values and the result, once each in 16 bit; unfused kernels move their scores
/// too.
Bytes Recorder::attention_traffic(const AttentionShape& s) const {
  const double keys = s.keys > 0 ? s.keys : s.tokens;
  const double rows =
      2 * s.sequences * s.tokens * s.head_dim * (2 * s.heads + 2 * s.kv_heads * (keys / s.tokens));
  const double scores =
      c_.stack.attention == AttentionKernel::unfused
          ? c_.stack.elementwise.score_bytes * s.sequences * s.heads * s.tokens * keys
          : 0;
  return Bytes{rows + scores};
}

}  // namespace lockstep
