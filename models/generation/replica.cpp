#include "models/generation/replica.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "models/generation/layer_cache.hpp"
#include "models/layer/operations.hpp"
#include "models/power/operation_work.hpp"

namespace lockstep {
namespace {

constexpr double kTwoBytes = 2;  // bytes of a 16-bit number

/// Experts that `tokens` tokens meet by chance: E (1 - (1 - k / E)^T), a whole number that the
/// ranks can share out.
int experts_met(const ExpertShape& experts, double tokens, int ranks) {
  const double all = experts.count, each = experts.per_token / all;
  const double met = all * (1 - std::pow(1 - each, tokens));
  const int shared = ranks * static_cast<int>(std::lround(met / ranks));
  return std::clamp(shared, std::max(ranks, experts.per_token), experts.count);
}

/// The forward pass of `sequences` pieces of `tokens` tokens as a job of which one micro batch is
/// looked at.
TrainingJob pass_of(const ReplicaSpec& spec, int sequences, int tokens) {
  TrainingJob job;
  job.model = spec.model;
  job.parallelism.tensor = spec.tensor;
  ExpertShape& experts = job.model.experts;
  if (experts.count > 0) {
    (spec.expert_parallel ? job.parallelism.expert : job.parallelism.expert_tensor) = spec.tensor;
    experts.count =
        experts_met(experts, static_cast<double>(sequences) * tokens, job.parallelism.expert);
  }
  job.batch = {.sequences = sequences, .micro_sequences = sequences, .tokens = tokens};
  job.precision = spec.weights;
  return job;
}

/// An engine's kernels are fused as those of the best training stacks are.
StackSpec engine_stack() {
  StackSpec stack;
  stack.attention = AttentionKernel::flash3;
  return stack;
}

/// Energy above the fixed part of `times` times the work.
void add_drawn(const EngineWork& work, double times, const GpuSpec& gpu, PassTime& out) {
  if (!gpu.power) return;
  const ByGpuPart<Joules> spent = gpu_energy(work, Seconds{}, gpu);
  for (std::size_t p = 0; p < kGpuParts; ++p) out.drawn[p] += times * spent[p];
}

void add(const std::vector<Operation>& operations, double times, bool attention, const GpuSpec& gpu,
         PassTime& out) {
  for (const Operation& o : operations) {
    if (o.phase != Phase::forward || o.kind == OperationKind::collective) continue;
    if (attention || o.kind != OperationKind::attention) {
      add_drawn(engine_work(o), times, gpu, out);
    }
    if (o.kind == OperationKind::memory) out.memory += times * o.time;
    if (o.kind == OperationKind::product) out.products += times * o.time;
    if (o.kind == OperationKind::attention && attention) out.attention += times * o.time;
  }
}

}  // namespace

PassTime& PassTime::operator+=(const PassTime& o) {
  products += o.products;
  attention += o.attention;
  memory += o.memory;
  exchange += o.exchange;
  host += o.host;
  for (std::size_t p = 0; p < kGpuParts; ++p) drawn[p] += o.drawn[p];
  return *this;
}
PassTime operator*(double k, const PassTime& t) {
  PassTime out{k * t.products, k * t.attention, k * t.memory, k * t.exchange, k * t.host};
  for (std::size_t p = 0; p < kGpuParts; ++p) out.drawn[p] = k * t.drawn[p];
  return out;
}

Replica::Replica(ReplicaSpec spec) : spec_(std::move(spec)), layers_(layer_kinds(spec_.model)) {
  assert(spec_.tensor >= 1 && spec_.cache_bytes > 0);
  // A token that the model would predict beside the next one is left out of generation.
  spec_.model.predicted_tokens = 0;
  EngineSpec& e = spec_.engine;
  for (Seconds* time : {&e.step_host, &e.sequence_host, &e.launch_interval}) {
    *time = spec_.node.host_slowed() * *time;
  }
}

Bytes Replica::model_bytes() const {
  const double ends = end_parameters(spec_.model);
  const double layers = total_parameters(spec_.model) - ends;
  return Bytes{kTwoBytes * ends + info(spec_.weights).bytes_per_element * layers};
}

Bytes Replica::weights() const { return (1.0 / spec_.tensor) * model_bytes(); }

Bytes Replica::cache_per_token() const {
  double elements = 0;
  for (const auto& [kind, count] : layers_) {
    elements += count * LayerCache{spec_.model, kind, 1.0 * spec_.tensor}.elements();
  }
  return Bytes{spec_.cache_bytes * elements};
}

Bytes Replica::state_per_sequence() const {
  double elements = 0;
  for (const auto& [kind, count] : layers_) {
    elements += count * LayerCache{spec_.model, kind, 1.0 * spec_.tensor}.state();
  }
  return Bytes{kTwoBytes * elements};
}

double Replica::cache_tokens(Bytes resident) const {
  const EngineSpec& e = spec_.engine;
  const Bytes free =
      e.memory_fraction * spec_.node.gpu.hbm_capacity - weights() - e.workspace - resident;
  const Bytes token = cache_per_token();
  constexpr double kWithoutCache = 1e15;  // a model without attention: its states alone count
  if (free <= Bytes{}) return 0;
  return token > Bytes{} ? static_cast<double>(free / token) : kWithoutCache;
}

int Replica::most_sequences(double cache, int longest) const {
  const EngineSpec& e = spec_.engine;
  if (!e.reserves) return e.most_sequences;
  return static_cast<int>(std::clamp(std::floor(cache / longest), 1.0, 1.0 * e.most_sequences));
}

PassTime Replica::without_attention(int sequences, int tokens, bool prefill) const {
  const TrainingJob job = pass_of(spec_, sequences, tokens);
  const StackSpec stack = engine_stack();
  const int near = std::min(spec_.tensor, spec_.node.nvlink_domain);
  const WorkloadContext context{.job = job,
                                .node = spec_.node,
                                .stack = stack,
                                .transport = spec_.transport,
                                .tensor_groups = near,
                                .expert_groups = near,
                                .expert_shard_groups = near};
  PassTime time;
  int sums = 0;
  for (const auto& [kind, count] : layers_) {
    add(layer_operations(context, kind), count, prefill, spec_.node.gpu, time);
    sums += count * kind.sums();
  }
  add(embedding_operations(context), 1, false, spec_.node.gpu, time);
  // Of a prompt only the last token goes on to be sampled.
  const TrainingJob last = pass_of(spec_, sequences, 1);
  const WorkloadContext ends{.job = last,
                             .node = spec_.node,
                             .stack = stack,
                             .transport = spec_.transport,
                             .tensor_groups = near};
  add(head_operations(ends), 1, false, spec_.node.gpu, time);
  if (spec_.tensor > 1) {
    const Bytes rows{kTwoBytes * sequences * tokens * spec_.model.hidden};
    time.exchange = static_cast<double>(sums) *
                    collective_time({CollectiveOp::all_reduce, rows, spec_.tensor, near},
                                    spec_.node.gpu, spec_.transport, nic_share(spec_.node));
    const Bytes sent = sums * (2 * (spec_.tensor - 1.0) / spec_.tensor) * rows;
    add_drawn({.flops_16 = {}, .flops_8 = {}, .flops_4 = {}, .hbm = 2 * sent, .link = sent}, 1,
              spec_.node.gpu, time);
  }
  const EngineSpec& e = spec_.engine;
  time.host = e.step_host + static_cast<double>(sequences) * e.sequence_host;
  if (!e.graphs || prefill) {
    const Seconds launches = spec_.model.layers * e.kernels_per_layer * e.launch_interval;
    time.host += std::max(Seconds{}, launches - (time.total() - time.host));
  }
  return time;
}

PassTime Replica::prefill_pass(int prompts, int tokens) {
  assert(prompts >= 1 && tokens >= 1);
  return held(without_attention(prompts, tokens, true));
}

PassTime Replica::held(PassTime pass) const {
  const GpuSpec& gpu = spec_.node.gpu;
  const Seconds time = pass.total();
  if (!gpu.power || time <= Seconds{}) return pass;
  ByGpuPart<Watts> asked{};
  for (std::size_t p = 0; p < kGpuParts; ++p) asked[p] = pass.drawn[p] / time;
  asked[static_cast<std::size_t>(GpuPart::fixed)] = gpu.power->active;
  const ByGpuPart<Watts> drawn = clipped(asked, gpu.power_limit);
  for (std::size_t p = 0; p < kGpuParts; ++p) pass.drawn[p] = drawn[p] * time;
  return pass;
}

PassTime Replica::decode_step(int sequences, double context) {
  assert(sequences >= 1 && context >= 1);
  const auto at = static_cast<std::size_t>(sequences);
  if (decode_.size() <= at) decode_.resize(at + 1);
  if (decode_[at].total() == Seconds{}) decode_[at] = without_attention(sequences, 1, false);
  PassTime time = decode_[at];

  const GpuSpec& gpu = spec_.node.gpu;
  const EngineSpec& e = spec_.engine;
  const BytesPerSecond rate = e.cache_bandwidth * gpu.hbm_bandwidth;
  for (const auto& [kind, count] : layers_) {
    const LayerCache cache{spec_.model, kind, 1.0 * spec_.tensor};
    if (!cache.attends()) continue;
    const Seconds reading = Bytes{sequences * spec_.cache_bytes * cache.read(context)} / rate;
    const Seconds arithmetic = Flops{sequences * cache.flops(context)} /
                               (e.cache_arithmetic * std::max(gpu.peak_bf16, gpu.peak_fp16));
    time.attention += count * (gpu.memory.launch + std::max(reading, arithmetic));
    add_drawn({.flops_16 = Flops{sequences * cache.flops(context)},
               .flops_8 = {},
               .flops_4 = {},
               .hbm = reading * rate,
               .link = {}},
              count, gpu, time);
  }
  // States of recurrent layers are read and written whole.
  const Bytes states = 2.0 * sequences * state_per_sequence();
  time.attention += states / rate;
  add_drawn({.flops_16 = {}, .flops_8 = {}, .flops_4 = {}, .hbm = states, .link = {}}, 1, gpu,
            time);
  return held(time);
}

}  // namespace lockstep
