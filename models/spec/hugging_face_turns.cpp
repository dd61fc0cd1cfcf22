// Decoders whose layers take turns in ways of their own. Sources: configuration_*.py and
// modeling_*.py of zamba and zamba2 in https://github.com/huggingface/transformers, and
// modeling_plamo.py beside the weights of https://huggingface.co/pfnet/plamo-2-8b.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr int kColumnsOfStep = 16;  ///< of the stream, for each of the step sizes' rank

std::optional<JsonCursor> turn_key(const JsonCursor& config, std::string_view key) {
  std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value : std::nullopt;
}

/// Heads of attention, and those of keys and values.
void read_turning_heads(const JsonCursor& config, int head_dim, TransformerShape& m) {
  const JsonCursor heads = config.at("num_attention_heads");
  m.heads = heads.integer(1, kMostHeads);
  m.kv_heads = integer_or(config, "num_key_value_heads", 1, kMostHeads, m.heads);
  if (m.heads % m.kv_heads != 0) {
    heads.fail("a multiple of " + std::to_string(m.kv_heads) + " (num_key_value_heads)");
  }
  if (head_dim == 0 && 2 * m.hidden % m.heads != 0) {
    heads.fail("a divisor of " + std::to_string(2 * m.hidden) + ", two of hidden_size");
  }
  m.head_dim = head_dim > 0 ? head_dim : 2 * m.hidden / m.heads;
}

// --- Zamba and Zamba2 ----------------------------------------------------------------------------

/// Which layers have a shared block before their Mamba.
std::vector<bool> shared_uses(const JsonCursor& config, std::string_view type, int layers) {
  constexpr std::array<std::string_view, 2> kTypes{"mamba", "hybrid"};
  std::vector<bool> uses;
  if (const auto types = turn_key(config, "layers_block_type")) {
    for (const JsonCursor& one : types->elements(kMostLayers))
      uses.push_back(one.choice(kTypes) == 1);
    if (std::ssize(uses) == layers) return uses;
    types->fail("an array of " + std::to_string(layers) + " (num_hidden_layers)");
  }
  uses.assign(static_cast<std::size_t>(layers), false);
  if (type == "zamba2") {
    for (const JsonCursor& one : config.at("hybrid_layer_ids").elements(kMostLayers)) {
      uses[static_cast<std::size_t>(one.integer(0, layers - 1))] = true;
    }
    return uses;
  }
  // The third, and of those behind it one of so many.
  constexpr int kFirstUse = 2;
  const int period = integer_or(config, "attn_layer_period", 1, kMostLayers, 6);
  const int offset =
      integer_or(config, "attn_layer_offset", 0, period - 1, std::min(4, period - 1));
  for (int i = kFirstUse; i < layers; ++i) {
    uses[static_cast<std::size_t>(i)] = i == kFirstUse || (i - kFirstUse - 1) % period == offset;
  }
  return uses;
}

void read_zamba_mamba(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  MambaShape& mamba = m.mamba;
  const int columns = m.hidden * integer_or(config, "mamba_expand", 1, 64, 2);
  mamba.kernel = integer_or(config, "mamba_d_conv", 1, 64, 4);
  if (type == "zamba") {
    // Heads of its own make B, C and step sizes out of their own columns: as many weights and as
    // much work as one for all.
    const int heads = integer_or(config, "n_mamba_heads", 1, kMostHeads, 2);
    if (columns % heads != 0) {
      config.at("n_mamba_heads").fail("a divisor of " + std::to_string(columns) + " columns");
    }
    mamba.heads = columns;
    mamba.head_dim = 1;
    mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 16);
    const auto rank = turn_key(config, "mamba_dt_rank");
    const bool automatic =
        !rank || rank->is_null() || (rank->is_string() && rank->string() == "auto");
    mamba.step_rank =
        automatic ? (m.hidden + kColumnsOfStep - 1) / kColumnsOfStep : rank->integer(1, kMostWidth);
    return;
  }
  const JsonCursor heads = config.at("n_mamba_heads");
  mamba.heads = heads.integer(1, kMostHeads);
  mamba.groups = integer_or(config, "mamba_ngroups", 1, kMostHeads, 1);
  mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 64);
  mamba.chunk = integer_or(config, "chunk_size", 1, kMostTokens, 256);
  mamba.head_dim = columns / mamba.heads;
  if (columns % mamba.heads != 0 || mamba.heads % mamba.groups != 0) {
    heads.fail("a divisor of " + std::to_string(columns) +
               " columns that is a multiple of mamba_ngroups");
  }
}

}  // namespace

/// Mamba layers, before some of which stands one of few blocks of attention and an MLP that all of
/// these share, over the stream and the embedding side by side. Zamba2's uses of a block differ by
/// thin products; both have a product of their own behind it.
void read_zamba(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  constexpr int kWider = 4, kInputs = 2, kUsualRank = 128;
  constexpr std::size_t kMostBlocks = 24;
  const bool second = type == "zamba2";
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  if (flag_or(config, "add_bias_linear", false)) {
    config.at("add_bias_linear").fail("false: no published model has them");
  }
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / 64);
  const int layers = config.at("num_hidden_layers").integer(1, kMostLayers / 2);
  read_turning_heads(config, integer_or(config, "attention_head_dim", 1, kMostWidth, 0), m);
  const int read = integer_or(config, "attention_hidden_size", 1, kMostWidth, kInputs * m.hidden);
  if (read != kInputs * m.hidden) {
    config.at("attention_hidden_size")
        .fail(std::to_string(kInputs * m.hidden) + ", two of hidden_size");
  }
  m.ffn = integer_or(config, "intermediate_size", 1, kMostWidth, kWider * m.hidden);
  m.gated = true;
  m.rotary = second && flag_or(config, "use_mem_rope", false);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  read_zamba_mamba(config, type, m);
  const Mixer wide = mixer_called("wide_attention");
  MixerNumbers& numbers = m.mixers[static_cast<std::size_t>(wide)];
  numbers[0] = kInputs;
  const int rank = integer_or(config, "adapter_rank", 1, kMostWidth, kUsualRank);
  if (second) numbers[2] = rank;
  if (second && flag_or(config, "use_shared_attention_adapter", false)) numbers[1] = rank;
  const std::vector<bool> uses = shared_uses(config, type, layers);
  const auto used = static_cast<int>(std::ranges::count(uses, true));
  const int blocks = second ? integer_or(config, "num_mem_blocks", 1, kMostBlocks, 1) : 1;
  if (used == 0 || used < blocks) {
    config.fail("a model with a layer for each block of attention that layers share");
  }
  KindShape plain, behind;
  plain.letter = "m";
  plain.mixer = Mixer::mamba;
  behind.letter = "n";
  behind.mixer = mixer_called("adapted_mamba");
  m.kinds = {plain, behind};
  for (int i = 0; i < blocks; ++i) {
    KindShape block;
    block.letter = std::string(1, static_cast<char>('A' + i));
    block.mixer = wide;
    block.ffn = m.ffn;
    // Blocks take turns, the first of which may come once more.
    block.shared_by = used / blocks + (i < used % blocks ? 1 : 0);
    m.kinds.push_back(block);
  }
  int next = 0;
  for (const bool one : uses) {
    if (one) m.pattern += static_cast<char>('A' + next++ % blocks);
    m.pattern += one ? 'n' : 'm';
  }
  m.layers = static_cast<int>(m.pattern.size());
}

// --- PLaMo 2 -------------------------------------------------------------------------------------

/// Heads whose step sizes, B and C come from the convolved columns, in turns with attention over a
/// window. Each block has a norm of its result too.
void read_plamo2(const JsonCursor& config, TransformerShape& m) {
  constexpr int kLeastRank = 64;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  if (!flag_or(config, "mamba_enabled", true)) {
    config.at("mamba_enabled").fail("true: no published model is without Mamba");
  }
  m.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / 64);
  const int columns = config.at("hidden_size_per_head").integer(1, kMostWidth);
  read_turning_heads(config, columns, m);
  m.ffn = config.at("intermediate_size").integer(1, kMostWidth);
  m.gated = m.rotary = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  MambaShape& mamba = m.mamba;
  mamba.heads = config.at("mamba_num_heads").integer(1, kMostHeads);
  mamba.head_dim = columns;
  mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 64);
  mamba.kernel = integer_or(config, "mamba_d_conv", 1, 64, 4);
  mamba.chunk = integer_or(config, "mamba_chunk_size", 1, kMostTokens, 256);
  mamba.step_rank = std::max(kLeastRank, m.hidden / kColumnsOfStep);
  const int step = integer_or(config, "mamba_step", 2, kMostLayers, 2);
  const int window = integer_or(config, "attention_window_size", 1, kMostTokens, 2048);
  std::vector<KindShape> layers;
  for (int i = 0; i < m.layers; ++i) {
    // So few layers that none would attend: the last one does.
    const bool few = m.layers <= step / 2;
    const bool attends = few ? i == m.layers - 1 : i % step == step / 2;
    KindShape layer{.ffn = m.ffn};
    if (attends) {
      layer.window = window;
      m.other_parameters += (static_cast<double>(m.heads) + m.kv_heads) * m.head_dim;
    } else {
      layer.mixer = Mixer::mamba;
    }
    layers.push_back(std::move(layer));
  }
  if (const auto full = turn_key(config, "full_attention_idx")) {
    for (const JsonCursor& one : full->elements(kMostLayers)) {
      layers[static_cast<std::size_t>(one.integer(0, m.layers - 1))].window = 0;
    }
  }
  m.other_parameters += 2.0 * m.layers * m.hidden;
  set_kinds(config, layers, m);
}

}  // namespace lockstep::hugging_face
