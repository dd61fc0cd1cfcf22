#include "models/layer/flops.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// Of one token in one layer, forward: keys that attention meets, 4 d each; all of the square, and
/// its causal part.
struct AttentionWork {
  double causal, full;
};
AttentionWork attention_work(const TrainingJob& job, LayerKind kind) {
  const TransformerShape& m = job.model;
  if (kind.mixer == Mixer::mamba) return {scan_flops(m.mamba), scan_flops(m.mamba)};
  if (kind.mixer == Mixer::none) return {0, 0};
  const double s = job.batch.attended();
  const double window = kind.windowed ? std::min<double>(m.window, s) : s;
  const double per_key = 4.0 * m.heads * static_cast<double>(m.head_dim);
  return {per_key * (window - window * window / (2 * s)), per_key * window};
}

/// As layer_matrix_parameters(), without the experts that drop the token.
double matrix_parameters(const TrainingJob& job, LayerKind kind) {
  const double all = layer_matrix_parameters(job.model, kind);
  if (!kind.experts) return all;
  const ExpertShape& x = job.model.experts;
  return all - expert_load(job).dropped() * x.per_token / x.count * expert_parameters(job.model);
}

/// What recomputation repeats, forward, of one token in one layer.
double repeated(const TrainingJob& job, LayerKind kind, double attention) {
  if (job.recompute == Recompute::none) return 0;
  if (job.recompute == Recompute::full) {
    return 2 * matrix_parameters(job, kind) + attention;
  }
  const TransformerShape& m = job.model;
  const LatentAttention& l = m.latent;
  const bool mixes = kind.mixer == Mixer::attention;
  const bool core = job.modules.core_attention || job.modules.fused_attention;
  double work = core && mixes ? attention : 0;
  work += job.modules.products * 2 * matrix_parameters(job, kind);
  if (job.modules.projection && mixes) {
    const int head = l.key_value_rank > 0 ? l.value_dim : m.head_dim;
    work += 2.0 * m.heads * head * m.hidden;
  }
  if (job.modules.latent_up && l.key_value_rank > 0 && mixes) {
    work += 2.0 * m.heads *
            (static_cast<double>(l.query_rank) * (l.nope_dim + l.rope_dim) +
             static_cast<double>(l.key_value_rank) * (l.nope_dim + l.value_dim));
  }
  const double ffn = !kind.feed_forward ? 0 : kind.experts ? m.experts.shared_ffn : m.ffn;
  const double up = m.gated ? 2 : 1;
  if (job.modules.mlp || job.modules.mlp_up) work += 2 * up * m.hidden * ffn;
  if (job.modules.mlp) work += 2.0 * m.hidden * ffn;
  return work;
}

}  // namespace

StepFlops step_flops(const TrainingJob& job) {
  const TransformerShape& m = job.model;
  const double head = static_cast<double>(m.vocabulary) * m.hidden;
  const double extra = m.predicted_tokens;
  const double joined = 2.0 * m.hidden * m.hidden;  // a further token's product, norms apart
  double matrices = head + extra * (head + joined);
  double frozen = 0;  // all passes of what is, but those of adapters' frozen weights
  if (job.frozen.output) {
    frozen += 4 * head;
    matrices -= head;
  }
  double causal = 0, full = 0, again = 0;
  for (int i = 0; i < m.layers + m.predicted_tokens; ++i) {
    const LayerKind kind = job.kind(std::min(i, m.layers - 1));
    const AttentionWork attention = attention_work(job, kind);
    const bool forward_only = kind.gradients == Gradients::none;
    if (kind.gradients == Gradients::all) {
      matrices += matrix_parameters(job, kind);
    } else {
      frozen += (forward_only ? 2 : 4) * matrix_parameters(job, kind);
    }
    causal += attention.causal * (forward_only ? 1.0 / 3 : 1.0);
    full += attention.full * (forward_only ? 1.0 / 3 : 1.0);
    if (!forward_only) again += repeated(job, kind, attention.full);
  }
  const double tokens = static_cast<double>(job.batch.sequences) * job.batch.tokens;
  const double products =
      (job.adapters.any() ? 4.0 : 6.0) * matrices + frozen + 6.0 * met_adapter_parameters(job);
  return {.causal = Flops{tokens * (products + 3.0 * causal)},
          .full = Flops{tokens * (products + 3.0 * full)},
          .hardware = Flops{tokens * (products + 3.0 * full + again)}};
}

}  // namespace lockstep
