#include "models/spec/transformer.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "models/spec/layer.hpp"

namespace lockstep {
LayerKind TransformerShape::kind(int layer) const {
  LayerKind kind;
  if (!kinds.empty()) {
    const char letter = pattern[static_cast<std::size_t>(layer)];
    const auto own = std::ranges::find_if(
        kinds, [letter](const KindShape& k) { return k.letter.front() == letter; });
    assert(own != kinds.end());
    kind.declared = static_cast<std::uint8_t>(own - kinds.begin() + 1);
    kind.mixer = own->mixer;
    kind.experts = own->experts;
    kind.feed_forward = own->experts || own->ffn > 0;
    kind.windowed = own->window > 0;
    kind.cross = own->cross;
    kind.parallel = complete_kind(*this, *own).parallel;
    return kind;
  }
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
  kind.parallel = parallel && !kind.experts;
  return kind;
}

KindShape shape_of(const TransformerShape& m, LayerKind kind) {
  KindShape k;
  if (kind.declared > 0) {
    k = m.kinds[kind.declared - 1U];
  } else {
    k.mixer = kind.mixer;
    k.latent = m.latent.key_value_rank > 0;
    k.window = kind.windowed ? m.window : 0;
    k.chunked = kind.windowed && m.chunked;
    k.experts = kind.experts;
    k.ffn = kind.feed_forward && !kind.experts ? m.ffn : 0;
  }
  return complete_kind(m, std::move(k));
}

KindShape complete_kind(const TransformerShape& m, KindShape k) {
  if (k.hidden == 0) k.hidden = m.hidden;
  if (k.source_width == 0) k.source_width = k.hidden;
  if (k.heads == 0) k.heads = m.heads;
  if (k.kv_heads == 0) k.kv_heads = m.kv_heads;
  if (k.latent) {
    k.head_dim = m.latent.nope_dim + m.latent.rope_dim;
    k.value_dim = m.latent.value_dim;
  }
  if (k.head_dim == 0) k.head_dim = m.head_dim;
  if (k.value_dim == 0) k.value_dim = k.head_dim;
  k.bidirectional = k.bidirectional || m.bidirectional;
  k.parallel = (k.parallel || m.parallel) && k.mixer != Mixer::none && k.ffn > 0 && !k.cross;
  return k;
}

bool is_decoder(const TransformerShape& m) {
  return !m.bidirectional && std::ranges::none_of(m.kinds, [](const KindShape& k) {
    return k.bidirectional || k.cross || k.of_source || k.tokens > 0 || k.halvings > 0 ||
           k.convolution.kernel > 0;
  });
}

double layer_matrix_parameters(const TransformerShape& m, LayerKind kind) {
  double sum = 0;
  for_each_product(declare_layer(m, kind), [&](const Product& p) {
    sum += (p.of_experts() ? m.experts.per_token : 1) * p.weights();
  });
  return sum;
}

double layer_parameters(const TransformerShape& m, LayerKind kind) {
  const Layer layer = declare_layer(m, kind);
  double sum = layer.small;
  for_each_product(layer, [&](const Product& p) { sum += p.of_experts() ? 0 : p.weights(); });
  return sum / layers_together(m, kind);
}

int layers_together(const TransformerShape& m, LayerKind kind) {
  return kind.declared > 0 ? std::max(1, m.kinds[kind.declared - 1U].shared_by) : 1;
}

double expert_parameters(const TransformerShape& m) {
  const ExpertShape& x = m.experts;
  return x.count * (m.gated ? 3.0 : 2.0) * x.width(m.hidden) * x.ffn;
}

double prediction_parameters(const TransformerShape& m) {
  const double h = m.hidden;
  return 2 * h * h + 3 * h;
}

double embedding_width(const TransformerShape& m) {
  return m.table_width > 0 ? m.table_width : m.hidden;
}

double table_parameters(const TransformerShape& m) { return m.vocabulary * embedding_width(m); }

double embedding_parameters(const TransformerShape& m) {
  const double positions = m.learned_positions ? static_cast<double>(m.max_positions) : 0.0;
  return (static_cast<double>(m.vocabulary) + positions) * embedding_width(m) +
         m.vision_parameters + m.other_parameters;
}

double total_parameters(const TransformerShape& m) {
  PerKind<double> known;
  double layers = 0;
  for (int i = 0; i < m.layers + m.predicted_tokens; ++i) {
    layers += known.at(m.kind(i < m.layers ? i : m.layers - 1), [&](LayerKind kind) {
      return layer_parameters(m, kind) + (kind.experts ? expert_parameters(m) : 0);
    });
  }
  return layers + m.predicted_tokens * prediction_parameters(m) + embedding_parameters(m) +
         output_parameters(m);
}

double output_parameters(const TransformerShape& m) {
  const double projection = m.tied ? 0.0 : table_parameters(m);
  return projection + (m.last_norm ? (m.biases ? 2.0 : 1.0) * m.hidden : 0.0);
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
