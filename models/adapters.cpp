#include "models/adapters.hpp"

#include "models/transformer.hpp"

namespace lockstep {

double frozen_weight_bytes(const Adapters& a) {
  return a.base == BaseFormat::nf4 ? (4 + 0.127) / 8 : 2.0;
}

double adapter_parameters(const Adapters& a, const TransformerShape& m, LayerKind kind) {
  const double h = m.hidden, d = m.head_dim;
  const double ffn = !kind.feed_forward ? 0 : kind.experts ? m.experts.shared_ffn : m.ffn;
  const bool attention = kind.mixer == Mixer::attention;
  double columns = 0;  // into and out of each product
  if (attention && a.on(AdapterModule::qkv)) columns += h + (m.heads + 2.0 * m.kv_heads) * d;
  if (attention && a.on(AdapterModule::projection)) columns += m.heads * d + h;
  if (ffn > 0 && a.on(AdapterModule::mlp_up)) columns += h + (m.gated ? 2 : 1) * ffn;
  if (ffn > 0 && a.on(AdapterModule::mlp_down)) columns += ffn + h;
  return a.rank * columns;
}

double adapter_parameters(const TrainingJob& job) {
  double sum = 0;
  for (int i = 0; job.adapters.any() && i < job.model.layers; ++i) {
    sum += adapter_parameters(job.adapters, job.model, job.model.kind(i));
  }
  return sum;
}

}  // namespace lockstep
