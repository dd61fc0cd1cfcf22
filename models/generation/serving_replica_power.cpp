// What a GPU of a replica draws in a pass.
#include <algorithm>

#include "models/generation/serving_replica.hpp"

namespace lockstep {

Joules ServingReplica::drawn_by(WeightFormat format, const KernelWork& work) const {
  const GpuSpec& gpu = spec_.node.gpu;
  return energy_per_flop(gpu, format) * work.flops + gpu.power->hbm * work.moved;
}

/// Products of a layer and what lies between them.
Joules ServingReplica::drawn_by_rows(const Kind& kind, double rows) const {
  Joules drawn = spec_.node.gpu.power->hbm * (rows * Bytes{kind.small_bytes});
  for (const Shape& p : kind.products) {
    drawn += drawn_by(p.format, product_work(p.format, rows, p.in, p.out * p.matrices));
  }
  return drawn;
}

/// Bytes that a GPU sends to others in a layer, each read and written once as well.
Joules ServingReplica::drawn_by_exchange(const Kind& kind, double rows) const {
  const GpuPowerConstants& c = *spec_.node.gpu.power;
  const bool routes = kind.experts && spec_.attention_data > 1;
  const double t = spec_.tensor;
  const double sums = spec_.tensor > 1 ? kind.sums - (routes ? 1 : 0) : 0;
  Bytes sent = sums * 2 * (t - 1) / t * summed(rows);
  if (routes) sent += dispatched(rows);
  return c.link * sent + c.hbm * (2 * sent);
}

Joules ServingReplica::drawn_by_head(double rows) const {
  return drawn_by(WeightFormat::bf16,
                  product_work(WeightFormat::bf16, rows, embedding_width(spec_.model),
                               1.0 * spec_.model.vocabulary / spec_.tensor));
}

Joules ServingReplica::drawn_by_attention(double sequences, double context) const {
  const double mean = context / sequences;
  Joules drawn;
  for (const Kind& kind : kinds_) {
    KernelWork work;
    if (kind.attends) {
      work.moved = Bytes{spec_.cache_bytes * sequences * kind.cache.read(mean)};
      work.flops = Flops{sequences * kind.cache.flops(mean)};
    }
    if (kind.cache.state() > 0) work.moved += states(kind, sequences);
    drawn += kind.count * drawn_by(WeightFormat::bf16, work);
  }
  return drawn;
}

Joules ServingReplica::drawn_by_prompts(const PassLoad& on_rank) const {
  const double tokens = on_rank.prompt_tokens, before = on_rank.prompt_pairs / tokens;
  Joules drawn;
  for (const Kind& kind : kinds_) {
    KernelWork work{.flops = {}, .moved = tokens * Bytes{kind.scan_bytes}};
    if (kind.attends) work.flops = Flops{tokens * keys_seen(kind, before) * kind.flops_per_pair};
    drawn += kind.count * drawn_by(WeightFormat::bf16, work);
  }
  return drawn;
}

/// What a GPU draws over the pass, with so much above its fixed part.
void ServingReplica::draw(Joules above, ServingPass& out) const {
  if (!powered()) return;
  const GpuSpec& gpu = spec_.node.gpu;
  const Seconds time = out.total();
  out.drawn = std::min(gpu.power->active * time + above, gpu.power_limit * time);
}

}  // namespace lockstep
