#include "models/spec/transformer.hpp"

namespace lockstep {
namespace {

double attention_parameters(const TransformerShape& m) {
  const double h = m.hidden, a = m.heads;
  const LatentAttention& l = m.latent;
  if (l.key_value_rank == 0) {
    return h * (a + 2.0 * m.kv_heads) * m.head_dim + a * m.head_dim * h;
  }
  const double query = l.nope_dim + l.rope_dim;
  const double queries =
      l.query_rank > 0 ? h * l.query_rank + l.query_rank * a * query : h * a * query;
  const double keys_values =
      h * (l.key_value_rank + l.rope_dim) + l.key_value_rank * a * (l.nope_dim + l.value_dim);
  return queries + keys_values + a * l.value_dim * h;
}

double mlp_parameters(const TransformerShape& m, double ffn) {
  return (m.gated ? 3.0 : 2.0) * m.hidden * ffn;
}

}  // namespace

LayerKind TransformerShape::kind(int layer) const {
  LayerKind kind;
  if (!pattern.empty()) {
    const char letter = pattern[static_cast<std::size_t>(layer)];
    kind.mixer = letter == 'M' ? Mixer::mamba : letter == '*' ? Mixer::attention : Mixer::none;
    kind.feed_forward = kind.mixer == Mixer::none;
    kind.experts = letter == 'E';
    return kind;
  }
  const int after = layer - experts.leading_dense;
  kind.experts =
      experts.count > 0 && after >= 0 && after % experts.interval == experts.interval - 1;
  kind.windowed = window > 0 && layer % window_interval < window_layers;
  return kind;
}

double layer_matrix_parameters(const TransformerShape& m, LayerKind kind) {
  double mixer = 0;
  if (kind.mixer == Mixer::attention) mixer = attention_parameters(m);
  if (kind.mixer == Mixer::mamba) mixer = mamba_matrix_parameters(m);
  if (!kind.feed_forward) return mixer;
  if (!kind.experts) return mixer + mlp_parameters(m, m.ffn);
  const ExpertShape& e = m.experts;
  const double router = static_cast<double>(m.hidden) * e.count;
  return mixer + router +
         mlp_parameters(m, static_cast<double>(e.per_token) * e.ffn + e.shared_ffn);
}

double layer_parameters(const TransformerShape& m, LayerKind kind) {
  const double h = m.hidden, d = m.head_dim;
  double sum = (m.biases ? 2.0 : 1.0) * kind.blocks() * h;  // norms
  if (kind.mixer == Mixer::attention) {
    sum += attention_parameters(m) + m.latent.query_rank + m.latent.key_value_rank +
           (m.biases ? (m.heads + 2.0 * m.kv_heads) * d + h : 0.0);
  }
  if (kind.mixer == Mixer::mamba) sum += mamba_parameters(m);
  if (!kind.feed_forward) return sum;
  const double ffn = kind.experts ? m.experts.shared_ffn : m.ffn;
  const double biases = m.biases ? (m.gated ? 2.0 : 1.0) * ffn + h : 0.0;
  const double router = kind.experts ? h * m.experts.count : 0.0;
  return sum + mlp_parameters(m, ffn) + router + biases;
}

double expert_parameters(const TransformerShape& m) {
  return m.experts.count * mlp_parameters(m, m.experts.ffn);
}

double prediction_parameters(const TransformerShape& m) {
  const double h = m.hidden;
  return 2 * h * h + 3 * h;
}

double embedding_parameters(const TransformerShape& m) {
  const double positions = m.learned_positions ? static_cast<double>(m.max_positions) : 0.0;
  return (static_cast<double>(m.vocabulary) + positions) * m.hidden;
}

double total_parameters(const TransformerShape& m) {
  double layers = 0;
  for (int i = 0; i < m.layers + m.predicted_tokens; ++i) {
    const LayerKind kind = m.kind(i < m.layers ? i : m.layers - 1);
    layers += layer_parameters(m, kind) + (kind.experts ? expert_parameters(m) : 0);
  }
  return layers + m.predicted_tokens * prediction_parameters(m) + embedding_parameters(m) +
         output_parameters(m);
}

double output_parameters(const TransformerShape& m) {
  const double projection = m.tied ? 0.0 : static_cast<double>(m.vocabulary) * m.hidden;
  return projection + (m.biases ? 2.0 : 1.0) * m.hidden;
}

LayerKind TrainingJob::kind(int layer) const {
  LayerKind kind = model.kind(layer);
  if (layer >= frozen.layers) return kind;
  kind.gradients = frozen.embedding ? Gradients::none : Gradients::inputs;
  return kind;
}

double trained_parameters(const TrainingJob& job) {
  if (job.adapters.any()) return adapter_parameters(job);
  const TransformerShape& m = job.model;
  double frozen = job.frozen.embedding ? embedding_parameters(m) : 0;
  if (job.frozen.output) frozen += output_parameters(m);
  for (int i = 0; i < job.frozen.layers; ++i) {
    const LayerKind kind = m.kind(i);
    frozen += layer_parameters(m, kind) + (kind.experts ? expert_parameters(m) : 0);
  }
  return total_parameters(m) - frozen;
}

}  // namespace lockstep
