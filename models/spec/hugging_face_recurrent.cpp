// Decoders without attention: each layer is a Mamba block. Sources: modeling_mamba.py,
// modeling_mamba2.py and modeling_falcon_mamba.py in https://github.com/huggingface/transformers.
#include <numeric>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

/// A head for each column, as wide as the step sizes of "auto" where nothing says it.
void read_first(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWider = 2, kColumnsPerStep = 16;
  MambaShape& s = m.mamba;
  const int otherwise = m.hidden * integer_or(config, "expand", 1, 64, kWider);
  s.heads = integer_or(config, "intermediate_size", 1, kMostWidth, otherwise);
  s.head_dim = 1;
  s.state = integer_or(config, "state_size", 1, kMostWidth, 16);
  const std::optional<JsonCursor> rank = config.find("time_step_rank");
  s.step_rank = rank && rank->is_number() ? rank->integer(1, kMostWidth)
                                          : (m.hidden + kColumnsPerStep - 1) / kColumnsPerStep;
}

void read_second(const JsonCursor& config, TransformerShape& m) {
  MambaShape& s = m.mamba;
  const JsonCursor heads = config.at("num_heads");
  s.heads = heads.integer(1, kMostHeads);
  s.head_dim = config.at("head_dim").integer(1, kMostWidth);
  s.groups = integer_or(config, "n_groups", 1, kMostHeads, 8);
  s.state = integer_or(config, "state_size", 1, kMostWidth, 128);
  s.chunk = integer_or(config, "chunk_size", 1, kMostTokens, 256);
  const int columns = m.hidden * integer_or(config, "expand", 1, 64, 2);
  if (s.heads % s.groups != 0 || s.heads * s.head_dim != columns) {
    heads.fail("a multiple of n_groups that with head_dim makes " + std::to_string(columns) +
               " columns");
  }
}

}  // namespace

void share_states(int heads, int columns, TransformerShape& m) {
  constexpr int kBlocks = 64;
  m.heads = m.kv_heads = columns == 1 ? std::gcd(heads, kBlocks) : heads;
  m.head_dim = heads / m.heads * columns;
}

void read_recurrent(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  if (type == "plamo2") return read_plamo2(config, m);
  m.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth);
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", type == "mamba");
  m.ffn = m.hidden;  // no layer has an MLP
  m.mamba.kernel = integer_or(config, "conv_kernel", 1, 64, 4);
  if (type == "mamba2") {
    read_second(config, m);
  } else {
    read_first(config, m);
  }
  share_states(m.mamba.heads, m.mamba.head_dim, m);
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'M');
}

}  // namespace lockstep::hugging_face
