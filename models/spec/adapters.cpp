#include "models/spec/adapters.hpp"

#include "models/spec/transformer.hpp"

namespace lockstep {

double frozen_weight_bytes(const Adapters& a) {
  return a.base == BaseFormat::nf4 ? (4 + 0.127) / 8 : 2.0;
}

namespace {

/// Into and out of the thin matrices of an adapter, all tensor-parallel ranks together.
double adapter_columns(const TransformerShape& m, LayerKind kind, AdapterModule module) {
  const double h = m.hidden, d = m.head_dim, gates = m.gated ? 2 : 1;
  const double ffn = kind.experts ? m.experts.shared_ffn : m.ffn;
  const LatentAttention& l = m.latent;
  const bool latent = l.key_value_rank > 0;
  switch (module) {
    case AdapterModule::qkv:
      if (!latent) return h + (m.heads + 2.0 * m.kv_heads) * d;
      return adapters_of(m, module) * h + l.query_rank + l.key_value_rank + l.rope_dim;
    case AdapterModule::projection:
      return static_cast<double>(m.heads) * (latent ? l.value_dim : m.head_dim) + h;
    case AdapterModule::mlp_up:
      return h + gates * ffn;
    case AdapterModule::mlp_down:
      return ffn + h;
    case AdapterModule::query_up:
      return (l.query_rank > 0 ? l.query_rank : h) +
             static_cast<double>(m.heads) * (l.nope_dim + l.rope_dim);
    case AdapterModule::key_value_up:
      return l.key_value_rank + static_cast<double>(m.heads) * (l.nope_dim + l.value_dim);
    case AdapterModule::expert_up:
      return h + gates * m.experts.ffn;
    case AdapterModule::expert_down:
      return m.experts.ffn + h;
  }
  return 0;
}

bool is_of_experts(AdapterModule module) {
  return module == AdapterModule::expert_up || module == AdapterModule::expert_down;
}

/// Of the products of routed experts, or of all others.
double parameters_of(const Adapters& a, const TransformerShape& m, LayerKind kind, bool experts) {
  double sum = 0;
  for (std::size_t i = 0; i < kAdapterModules; ++i) {
    const auto module = static_cast<AdapterModule>(i);
    if (is_of_experts(module) != experts || !a.on(module) || !has_product(m, kind, module))
      continue;
    sum += adapter_columns(m, kind, module);
  }
  return a.rank * sum;
}

}  // namespace

bool has_product(const TransformerShape& m, LayerKind kind, AdapterModule module) {
  const bool attention = kind.mixer == Mixer::attention;
  switch (module) {
    case AdapterModule::qkv:
    case AdapterModule::projection:
      return attention;
    case AdapterModule::query_up:
    case AdapterModule::key_value_up:
      return attention && m.latent.key_value_rank > 0;
    case AdapterModule::mlp_up:
    case AdapterModule::mlp_down:
      return kind.feed_forward && (!kind.experts || m.experts.shared_ffn > 0);
    case AdapterModule::expert_up:
    case AdapterModule::expert_down:
      return kind.feed_forward && kind.experts;
  }
  return false;
}

double adapters_of(const TransformerShape& m, AdapterModule module) {
  return module == AdapterModule::qkv && m.latent.query_rank > 0 ? 2 : 1;
}

double adapter_parameters(const Adapters& a, const TransformerShape& m, LayerKind kind) {
  return parameters_of(a, m, kind, false);
}

double expert_adapter_parameters(const TrainingJob& job, LayerKind kind) {
  const Parallelism& par = job.parallelism;
  const double here = static_cast<double>(job.model.experts.count) / par.expert;
  return parameters_of(job.adapters, job.model, kind, true) / par.expert_tensor *
         (job.adapters.experts == ExpertAdapters::own ? here : 1);
}

double adapter_parameters(const TrainingJob& job) {
  const Parallelism& par = job.parallelism;
  const double expert_ranks = static_cast<double>(par.expert) * par.expert_tensor;
  double sum = 0;
  for (int i = 0; job.adapters.any() && i < job.model.layers; ++i) {
    const LayerKind kind = job.kind(i);
    sum += adapter_parameters(job.adapters, job.model, kind);
    sum += expert_ranks * expert_adapter_parameters(job, kind);
  }
  return sum;
}

double met_adapter_parameters(const TrainingJob& job) {
  const double copies = job.model.experts.per_token * expert_load(job).kept;
  double sum = 0;
  for (int i = 0; job.adapters.any() && i < job.model.layers; ++i) {
    const LayerKind kind = job.kind(i);
    sum += adapter_parameters(job.adapters, job.model, kind);
    sum += copies * parameters_of(job.adapters, job.model, kind, true);
  }
  return sum;
}

}  // namespace lockstep
