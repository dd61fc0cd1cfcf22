// What a GPU of a replica gets done in a pass, and what it draws for it.
#include <algorithm>
#include <cmath>

#include "models/generation/serving_replica.hpp"

namespace lockstep {

EngineWork ServingReplica::work_of(WeightFormat format, const KernelWork& work) const {
  EngineWork out;
  out.hbm = work.moved;
  flops_of(out, spec_.node.gpu, format) = work.flops;
  return out;
}

/// Products of a layer and what lies between them.
EngineWork ServingReplica::work_of_rows(const Kind& kind, double rows) const {
  EngineWork out;
  out.hbm = rows * Bytes{kind.small_bytes};
  for (const Shape& p : kind.products) {
    out += work_of(p.format, product_work(p.format, rows, p.in, p.out * p.matrices));
  }
  return out;
}

/// Bytes that a GPU sends to others in a layer, each read and written once as well.
EngineWork ServingReplica::work_of_exchange(const Kind& kind, double rows) const {
  const bool routes = kind.experts && spec_.attention_data > 1;
  const double t = spec_.tensor;
  const double sums = spec_.tensor > 1 ? kind.sums - (routes ? 1 : 0) : 0;
  Bytes sent = sums * 2 * (t - 1) / t * summed(rows);
  if (routes) sent += dispatched(rows);
  EngineWork out;
  out.hbm = 2 * sent;
  out.link = sent;
  return out;
}

EngineWork ServingReplica::work_of_head(double rows) const {
  return work_of(WeightFormat::bf16,
                 product_work(WeightFormat::bf16, rows, embedding_width(spec_.model),
                              1.0 * spec_.model.vocabulary / spec_.tensor));
}

EngineWork ServingReplica::work_of_attention(double sequences, double context) const {
  const double mean = context / sequences;
  KernelWork all;
  for (const Kind& kind : kinds_) {
    if (kind.attends) {
      all.moved += kind.count * Bytes{spec_.cache_bytes * sequences * kind.cache.read(mean)};
      all.flops += kind.count * Flops{sequences * kind.cache.flops(mean)};
    }
    if (kind.cache.state() > 0) all.moved += kind.count * states(kind, sequences);
  }
  return work_of(WeightFormat::bf16, all);
}

EngineWork ServingReplica::work_of_prompts(const PassLoad& on_rank) const {
  const double tokens = on_rank.prompt_tokens, before = on_rank.prompt_pairs / tokens;
  KernelWork all;
  for (const Kind& kind : kinds_) {
    all.moved += kind.count * (tokens * Bytes{kind.scan_bytes});
    if (!kind.attends) continue;
    all.flops += kind.count * Flops{tokens * keys_seen(kind, before) * kind.flops_per_pair};
  }
  return work_of(WeightFormat::bf16, all);
}

/// Of all layers, but for experts.
EngineWork ServingReplica::work_of_dense(double rows) const {
  EngineWork out;
  for (const Kind& kind : kinds_) {
    out += kind.count * work_of_rows(kind, rows);
    out += kind.count * work_of_exchange(kind, rows);
  }
  return out;
}

EngineWork ServingReplica::work_of_routed(double all_rows) const {
  if (expert_layers_ == 0) return {};
  return expert_layers_ *
         work_of(spec_.experts, experts_work(spec_.experts, experts_call(all_rows, 1)));
}

/// What a GPU draws over the pass, with so much above its fixed part: the sum of drawn_by_part(),
/// from what rows were found to draw before.
void ServingReplica::draw(Joules above, ServingPass& out) const {
  const GpuSpec& gpu = spec_.node.gpu;
  const Seconds time = out.total();
  out.drawn = std::min(gpu.power->active * time + above, gpu.power_limit * time);
}

/// Of the running sequences of a pass without prompts.
EngineWork ServingReplica::work_of_decoding(const PassLoad& load) const {
  if (load.sequences == 0) return {};
  const int ways = spec_.attention_data * spec_.pipeline;
  const int drafts = spec_.speculation.drafts;
  const int sequences = (load.sequences + ways - 1) / ways;
  const int rows = sequences * (1 + drafts);
  const int all = (load.sequences * (1 + drafts) + spec_.pipeline - 1) / spec_.pipeline;
  EngineWork out = work_of_dense(rows);
  out += work_of_routed(all);
  out += work_of_head(rows);
  out += work_of_attention(sequences, load.context / load.sequences * sequences);
  if (drafts == 0) return out;
  const double layers = 1.0 * drafts / spec_.model.layers;
  out += layers * work_of_dense(sequences);
  out += layers * work_of_routed(load.sequences);
  out += drafts * work_of_head(sequences);
  return out;
}

/// Of the mean rank: some may have no piece of a prompt.
EngineWork ServingReplica::work_of_pass(const PassLoad& load) const {
  if (load.prompts == 0) return work_of_decoding(load);
  const PromptShare share = share_of(load);
  const double busy = share.parts / share.ways;
  EngineWork out = work_of_dense(std::ceil(share.rows));
  out += work_of_routed(std::ceil(share.all));
  out += work_of_head(share.decoded / share.ways + load.prompts);
  out += work_of_prompts(share.on_rank);
  if (load.sequences > 0) {
    const int ways = spec_.attention_data * spec_.pipeline;
    const int sequences = (load.sequences + ways - 1) / ways;
    out += work_of_attention(sequences, load.context / load.sequences * sequences);
  }
  if (busy >= 1) return out;
  out = busy * out;
  out += (1 - busy) * work_of_decoding(load);
  return out;
}

ByGpuPart<Joules> ServingReplica::drawn_by_part(const PassLoad& load, Seconds time) const {
  const GpuSpec& gpu = spec_.node.gpu;
  ByGpuPart<Joules> drawn{};
  if (!powered() || time <= Seconds{}) return drawn;
  const ByGpuPart<Joules> asked = gpu_energy(work_of_pass(load), time, gpu);
  ByGpuPart<Watts> mean{};
  for (std::size_t p = 0; p < kGpuParts; ++p) mean[p] = asked[p] / time;
  mean = clipped(mean, gpu.power_limit);
  for (std::size_t p = 0; p < kGpuParts; ++p) drawn[p] = mean[p] * time;
  return drawn;
}

}  // namespace lockstep
