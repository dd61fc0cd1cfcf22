#include "models/transformer.hpp"

namespace lockstep {

double layer_matrix_parameters(const TransformerShape& m) {
  const double h = m.hidden, d = m.head_dim;
  const double attention = h * (m.heads + 2.0 * m.kv_heads) * d + m.heads * d * h;
  return attention + (m.gated ? 3.0 : 2.0) * h * m.ffn;
}

double layer_parameters(const TransformerShape& m) {
  const double h = m.hidden, d = m.head_dim;
  const double norms = (m.biases ? 4.0 : 2.0) * h;
  const double biases =
      m.biases ? (m.heads + 2.0 * m.kv_heads) * d + h + (m.gated ? 2.0 : 1.0) * m.ffn + h : 0.0;
  return layer_matrix_parameters(m) + norms + biases;
}

double embedding_parameters(const TransformerShape& m) {
  const double positions = m.learned_positions ? static_cast<double>(m.max_positions) : 0.0;
  return (static_cast<double>(m.vocabulary) + positions) * m.hidden;
}

double total_parameters(const TransformerShape& m) {
  const double head = m.tied ? 0.0 : static_cast<double>(m.vocabulary) * m.hidden;
  return m.layers * layer_parameters(m) + embedding_parameters(m) + head +
         (m.biases ? 2.0 : 1.0) * m.hidden;
}

}  // namespace lockstep
