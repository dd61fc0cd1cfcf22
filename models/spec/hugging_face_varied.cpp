// Decoders that say what their layers are with keys of their own. Sources: configuration_*.py and
// modeling_*.py of gpt_neo, recurrent_gemma, falcon_h1, xlstm and rwkv in
// https://github.com/huggingface/transformers, modeling_openelm.py beside the weights of
// https://huggingface.co/apple/OpenELM-3B, modeling_phi4flash.py beside those of
// https://huggingface.co/microsoft/Phi-4-mini-flash-reasoning, modeling_rwkv5.py and
// modeling_rwkv6.py beside those of https://huggingface.co/RWKV/v6-Finch-7B-HF, modeling_llada.py
// beside those of https://huggingface.co/GSAI-ML/LLaDA-8B-Base, and
// fla/models/rwkv7 in https://github.com/fla-org/flash-linear-attention.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr std::array<std::string_view, 4> kVaried{"gpt_neo", "openelm", "llada", "hf_olmo"};

MixerNumbers& mixer_numbers(TransformerShape& m, Mixer mixer) {
  return m.mixers[static_cast<std::size_t>(mixer)];
}
std::optional<JsonCursor> said(const JsonCursor& config, std::string_view key) {
  std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value : std::nullopt;
}

/// Heads and their width, which is the stream's over them where the file leaves it out.
void read_plain_heads(const JsonCursor& config, std::string_view heads_key, TransformerShape& m) {
  const JsonCursor heads = config.at(heads_key);
  m.heads = heads.integer(1, kMostHeads);
  m.kv_heads = integer_or(config, "num_key_value_heads", 1, kMostHeads, m.heads);
  m.head_dim = integer_or(config, "head_dim", 1, kMostWidth, std::max(1, m.hidden / m.heads));
  if (m.heads % m.kv_heads != 0) {
    heads.fail("a multiple of " + std::to_string(m.kv_heads) + " (num_key_value_heads)");
  }
  if (!said(config, "head_dim") && m.hidden % m.heads != 0) {
    heads.fail("a divisor of " + std::to_string(m.hidden) +
               " (hidden_size), where \"head_dim\" is left out");
  }
}

// --- GPT-Neo -----------------------------------------------------------------------------------

constexpr std::array<std::string_view, 2> kSpans{"global", "local"};

/// Which layers are local: of a list, or of lists that are repeated.
std::vector<bool> local_layers(const JsonCursor& config) {
  std::vector<bool> local;
  if (const std::optional<JsonCursor> each = said(config, "attention_layers")) {
    for (const JsonCursor& one : each->elements(kMostLayers)) {
      local.push_back(one.choice(kSpans) == 1);
    }
    return local;
  }
  for (const JsonCursor& pair : config.at("attention_types").elements(kMostLayers)) {
    const std::vector<JsonCursor> parts = pair.elements(2);
    if (parts.size() != 2) pair.fail("a list of layers, and how often it is repeated");
    const int times = parts[1].integer(0, kMostLayers);
    for (int i = 0; i < times; ++i) {
      if (std::ssize(local) > kMostLayers) {
        pair.fail("at most " + std::to_string(kMostLayers) + " layers");
      }
      for (const JsonCursor& one : parts[0].elements(kMostLayers)) {
        local.push_back(one.choice(kSpans) == 1);
      }
    }
  }
  return local;
}

/// Layers that look back over a window alternate with others; queries, keys and values have no
/// biases.
void read_gpt_neo(const JsonCursor& config, TransformerShape& m) {
  constexpr int kUsualWindow = 256, kUsualPositions = 2048, kWider = 4;
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / kWider);
  read_plain_heads(config, "num_heads", m);
  m.ffn = integer_or(config, "intermediate_size", 1, kMostWidth, kWider * m.hidden);
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, kUsualPositions);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.biases = m.learned_positions = true;
  const int window = integer_or(config, "window_size", 1, kMostTokens, kUsualWindow);
  const std::vector<bool> local = local_layers(config);
  if (std::ssize(local) != m.layers) {
    config.at(said(config, "attention_layers") ? "attention_layers" : "attention_types")
        .fail(std::to_string(m.layers) + " layers (num_layers)");
  }
  std::vector<KindShape> layers;
  for (const bool windowed : local) {
    layers.push_back({.window = windowed ? window : 0, .ffn = m.ffn, .bare_heads = true});
  }
  set_kinds(config, layers, m);
}

// --- OpenELM -----------------------------------------------------------------------------------

/// A number for each layer.
std::vector<JsonCursor> each_layer(const JsonCursor& list, int layers) {
  std::vector<JsonCursor> elements = list.elements(kMostLayers);
  if (std::ssize(elements) != layers) {
    list.fail("an array of " + std::to_string(layers) + " (num_transformer_layers)");
  }
  return elements;
}

/// The nearest multiple of `unit`, or the next if that is less than nine tenths.
int nearest_multiple(double value, int unit) {
  constexpr double kLeast = 0.9;
  const int nearest = static_cast<int>(value + unit / 2.0) / unit * unit;
  const int out = std::max(unit, nearest);
  return out < kLeast * value ? out + unit : out;
}

/// Heads and MLPs that grow from layer to layer (Mehta et al. 2024, arXiv:2404.14619, section 2.1).
void read_openelm(const JsonCursor& config, TransformerShape& m) {
  constexpr int kUnit = 256, kHeadColumns = 128;
  constexpr Interval kMultiple{0, 64, true};
  m.layers = config.at("num_transformer_layers").integer(1, kMostLayers);
  m.hidden = config.at("model_dim").integer(1, kMostWidth / 64);
  m.head_dim = integer_or(config, "head_dim", 1, kMostWidth, kHeadColumns);
  m.max_positions = integer_or(config, "max_context_length", 1, kMostTokens, 0);
  m.tied = flag_or(config, "share_input_output_layers", true);
  m.gated = flag_or(config, "ffn_with_glu", true);
  m.rotary = true;
  const int unit = integer_or(config, "ffn_dim_divisor", 1, kMostWidth, kUnit);
  const auto heads = each_layer(config.at("num_query_heads"), m.layers);
  const auto groups = each_layer(config.at("num_kv_heads"), m.layers);
  const auto multiples = each_layer(config.at("ffn_multipliers"), m.layers);
  std::vector<KindShape> layers;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    KindShape layer{.heads = heads[i].integer(1, kMostHeads),
                    .kv_heads = groups[i].integer(1, kMostHeads),
                    .ffn = nearest_multiple(multiples[i].number(kMultiple) * m.hidden, unit)};
    if (layer.heads % layer.kv_heads != 0) {
      groups[i].fail("a divisor of " + std::to_string(layer.heads) + " (num_query_heads)");
    }
    m.heads = std::max(m.heads, layer.heads);
    m.kv_heads = std::max(m.kv_heads, layer.kv_heads);
    m.ffn = std::max(m.ffn, layer.ffn);
    layers.push_back(std::move(layer));
  }
  if (m.heads % m.kv_heads != 0) m.kv_heads = m.heads;
  set_kinds(config, layers, m);
}

}  // namespace

// --- RecurrentGemma ----------------------------------------------------------------------------

/// Two recurrences and a layer that looks back over a window, in turns; MLPs have half of
/// "intermediate_size".
void read_recurrent_gemma(const JsonCursor& config, std::string_view, TransformerShape& m) {
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  constexpr int kUsualWindow = 2048, kTaps = 4;
  m.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth);
  read_plain_heads(config, "num_attention_heads", m);
  m.ffn = config.at("intermediate_size").integer(2, 2 * kMostWidth) / 2;
  m.gated = m.rotary = m.biases = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  const Mixer recurrence = mixer_called("gated_recurrence");
  const int width = integer_or(config, "lru_width", 1, kMostWidth, m.hidden);
  if (width % m.heads != 0) {
    config.at("lru_width")
        .fail("a multiple of " + std::to_string(m.heads) + " (num_attention_heads)");
  }
  MixerNumbers& numbers = mixer_numbers(m, recurrence);
  numbers[0] = width;
  numbers[1] = m.heads;
  numbers[2] = integer_or(config, "conv1d_width", 1, 64, kTaps);
  const int window = integer_or(config, "attention_window_size", 1, kMostTokens, kUsualWindow);
  constexpr std::array<std::string_view, 2> kTypes{"attention", "recurrent"};
  const std::vector<JsonCursor> turns =
      config.at(said(config, "block_types") ? "block_types" : "_block_types").elements(kMostLayers);
  if (turns.empty()) config.at("block_types").fail("an array with a type at least");
  const bool biases = flag_or(config, "attention_bias", false);
  std::vector<KindShape> layers;
  for (int i = 0; i < m.layers; ++i) {
    const bool recurs = turns[static_cast<std::size_t>(i) % turns.size()].choice(kTypes) == 1;
    KindShape layer{.ffn = m.ffn};
    if (recurs) {
      layer.mixer = recurrence;
    } else {
      layer.window = window;
      layer.bare_heads = !biases;
    }
    layers.push_back(std::move(layer));
  }
  set_kinds(config, layers, m);
}

// --- Falcon-H1 ---------------------------------------------------------------------------------

/// Attention and Mamba-2 read the same input in every layer, before an MLP.
void read_falcon_h1(const JsonCursor& config, std::string_view, TransformerShape& m) {
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / 64);
  read_plain_heads(config, "num_attention_heads", m);
  m.ffn = config.at("intermediate_size").integer(1, kMostWidth);
  m.gated = m.rotary = true;
  m.tied = flag_or(config, "tie_word_embeddings", false);
  for (const std::string_view key : {"attention_bias", "mlp_bias", "projectors_bias"}) {
    if (flag_or(config, key, false)) config.at(key).fail("false: no published model has them");
  }
  MambaShape& mamba = m.mamba;
  const int wider = m.hidden * integer_or(config, "mamba_expand", 1, 64, 2);
  const int columns = integer_or(config, "mamba_d_ssm", 1, kMostWidth, wider);
  const JsonCursor heads = config.at("mamba_n_heads");
  mamba.heads = heads.integer(1, kMostHeads);
  const std::optional<JsonCursor> dim = said(config, "mamba_d_head");
  mamba.head_dim = dim && dim->is_number() ? dim->integer(1, kMostWidth) : columns / mamba.heads;
  mamba.groups = integer_or(config, "mamba_n_groups", 1, kMostHeads, 1);
  mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 256);
  mamba.kernel = integer_or(config, "mamba_d_conv", 1, 64, 4);
  mamba.chunk = integer_or(config, "mamba_chunk_size", 1, kMostTokens, 256);
  if (mamba.inner() != columns || mamba.heads % mamba.groups != 0) {
    heads.fail("a multiple of mamba_n_groups that with mamba_d_head makes " +
               std::to_string(columns) + " columns (mamba_d_ssm)");
  }
  const KindShape layer{.mixer = mixer_called("attention_and_mamba"), .ffn = m.ffn};
  set_kinds(config, std::vector<KindShape>(static_cast<std::size_t>(m.layers), layer), m);
}

namespace {

// --- Phi-4-mini-flash --------------------------------------------------------------------------

/// Mamba and attention over a window in turns up to the middle; there a Mamba layer whose result
/// later ones gate, and one of full attention whose keys the others of the rest take.
KindShape sambay_layer(int layer, int middle, bool recurs, int window) {
  const bool crosses = layer >= middle + 2;
  KindShape out;
  if (recurs) {
    out.mixer = crosses ? mixer_called("gated_memory") : Mixer::mamba;
  } else {
    out.shared_keys = crosses;
    out.window = layer < middle ? window : 0;
  }
  return out;
}

/// A number for all windows, or one for each layer, of which null is none.
int sambay_window(const JsonCursor& config) {
  constexpr int kUsual = 512;
  const std::optional<JsonCursor> written = said(config, "sliding_window");
  if (!written) return kUsual;
  if (!written->is_array()) return written->integer(1, kMostTokens);
  int window = 0;
  for (const JsonCursor& one : written->elements(kMostLayers)) {
    if (!one.is_null()) window = std::max(window, one.integer(1, kMostTokens));
  }
  return window;
}

}  // namespace

void read_sambay(const JsonCursor& config, std::string_view, TransformerShape& m) {
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  constexpr int kColumnsPerStep = 16;
  m.layers = config.at("num_hidden_layers").integer(4, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / 64);
  read_plain_heads(config, "num_attention_heads", m);
  m.ffn = config.at("intermediate_size").integer(1, kMostWidth);
  m.gated = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  const JsonCursor every = config.at("mb_per_layer");
  const int turns = every.integer(1, kMostLayers);
  const int middle = m.layers / 2;
  if (middle % turns != 0 || (middle + 1) % turns == 0) {
    every.fail("a divisor of " + std::to_string(middle) +
               " (half of num_hidden_layers) other than 1, so that a recurrence is in the middle");
  }
  MambaShape& mamba = m.mamba;
  mamba.heads = m.hidden * integer_or(config, "mamba_expand", 1, 64, 2);
  mamba.head_dim = 1;
  mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 16);
  mamba.kernel = integer_or(config, "mamba_d_conv", 1, 64, 4);
  const std::optional<JsonCursor> rank = said(config, "mamba_dt_rank");
  mamba.step_rank = rank && rank->is_number() ? rank->integer(1, kMostWidth)
                                              : (m.hidden + kColumnsPerStep - 1) / kColumnsPerStep;
  const int window = sambay_window(config);
  std::vector<KindShape> layers;
  for (int i = 0; i < m.layers; ++i) {
    layers.push_back(sambay_layer(i, middle, i % turns == 0, window));
    layers.back().ffn = m.ffn;
  }
  set_kinds(config, layers, m);
}

// --- xLSTM ---------------------------------------------------------------------------------------

int whole_units(const JsonCursor& config, std::string_view share_key, double usual, int hidden,
                int unit) {
  constexpr Interval kShare{0, 64, true};
  const std::optional<JsonCursor> share = said(config, share_key);
  const double width = (share ? share->number(kShare) : usual) * hidden;
  return std::max(1, static_cast<int>(std::ceil(width / unit))) * unit;
}

/// A matrix memory for each head in every layer, with gates that take in and forget, and a gated
/// MLP.
void read_xlstm(const JsonCursor& config, std::string_view, TransformerShape& m) {
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  constexpr int kUnit = 64, kUsualHeads = 8, kUsualChunk = 64, kGates = 2;
  constexpr double kKeys = 0.5, kValues = 1, kMlp = 2.667;
  m.layers = config.at(said(config, "num_blocks") ? "num_blocks" : "num_hidden_layers")
                 .integer(1, kMostLayers);
  m.hidden = config.at(said(config, "embedding_dim") ? "embedding_dim" : "hidden_size")
                 .integer(1, kMostWidth / 64);
  const int unit = integer_or(config, "mlstm_round_up_to_multiple_of", 1, kMostWidth, kUnit);
  const int keys = whole_units(config, "qk_dim_factor", kKeys, m.hidden, unit);
  const int values = whole_units(config, "v_dim_factor", kValues, m.hidden, unit);
  const int heads = integer_or(config, "num_heads", 1, kMostHeads, kUsualHeads);
  if (keys % heads != 0 || values % heads != 0) {
    config.at("num_heads")
        .fail("a divisor of " + std::to_string(keys) + " (qk_dim_factor) and " +
              std::to_string(values) + " (v_dim_factor) columns");
  }
  m.ffn = whole_units(config, "ffn_proj_factor", kMlp, m.hidden,
                      integer_or(config, "ffn_round_up_to_multiple_of", 1, kMostWidth, kUnit));
  m.gated = true;
  m.tied = flag_or(config, "tie_word_embeddings", false);
  share_states(heads, values / heads, m);
  const Mixer mixer = mixer_called("linear_attention");
  MixerNumbers& numbers = mixer_numbers(m, mixer);
  numbers = {heads, values / heads, integer_or(config, "chunk_size", 1, kMostTokens, kUsualChunk),
             keys / heads, kGates};
  const KindShape layer{.mixer = mixer, .ffn = m.ffn};
  set_kinds(config, std::vector<KindShape>(static_cast<std::size_t>(m.layers), layer), m);
}

namespace {

// --- OLMo's own files, and LLaDA's ---------------------------------------------------------------

/// The first OLMo, whose files say both halves of a gated MLP and whose norms have no weights, and
/// LLaDA, an encoder of the same keys that fills words in.
void read_like_olmo(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  constexpr std::array<std::string_view, 2> kActivations{"silu", "swiglu"};
  const bool fills = type == "llada";
  m.layers = config.at("n_layers").integer(1, kMostLayers);
  m.hidden = config.at("d_model").integer(1, kMostWidth / 64);
  const JsonCursor heads = config.at("n_heads");
  m.heads = heads.integer(1, kMostHeads);
  const int usual = flag_or(config, "multi_query_attention", false) ? 1 : m.heads;
  m.kv_heads = integer_or(config, "n_kv_heads", 1, kMostHeads, usual);
  if (m.hidden % m.heads != 0 || m.heads % m.kv_heads != 0) {
    heads.fail("a divisor of " + std::to_string(m.hidden) + " (d_model) and a multiple of " +
               std::to_string(m.kv_heads) + " (n_kv_heads)");
  }
  m.head_dim = m.hidden / m.heads;
  const int wide = integer_or(config, "mlp_hidden_size", 2, 2 * kMostWidth,
                              m.hidden * integer_or(config, "mlp_ratio", 1, 64, 4));
  // A product for the gate beside that for the rest, or one for both.
  constexpr std::array<std::string_view, 2> kBlocks{"sequential", "llama"};
  const bool apart = config.at("block_type").choice(kBlocks) == 1;
  const bool gated = config.at("activation_type").choice(kActivations) == 1;
  m.gated = apart || gated;
  m.ffn = apart ? wide : gated ? wide / 2 : wide;
  m.vocabulary = std::max(m.vocabulary, integer_or(config, "embedding_size", 1, kMostTokens, 1));
  m.tied = flag_or(config, "weight_tying", true);
  m.rotary = flag_or(config, "rope", false);
  m.biases = flag_or(config, "include_bias", false);
  m.bidirectional = fills;
  m.learned_positions = !m.rotary && !flag_or(config, "alibi", false);
  m.max_positions = integer_or(config, "max_sequence_length", 1, kMostTokens, 0);
  if (!flag_or(config, "layer_norm_with_affine", true)) {
    m.other_parameters = -(2.0 * m.layers + 1) * m.hidden;
  }
}

// --- RWKV --------------------------------------------------------------------------------------

constexpr int kLastGeneration = 7;

/// Columns of thin products: of generation 6 five mixtures and a decay, whose widths the code sets
/// by the width of the stream; of 7 each has a key.
int rwkv_low_rank(const JsonCursor& config, int generation, int hidden) {
  constexpr int kWide = 4096, kMixtures = 5, kMixture = 32, kDecay = 64;
  if (generation < 6) return 0;
  if (generation == 6) return (kMixtures * kMixture + kDecay) * (hidden == kWide ? 2 : 1);
  int sum = 0;
  for (const std::string_view key :
       {"decay_low_rank_dim", "gate_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim"}) {
    sum += config.at(key).integer(1, kMostWidth / 4);
  }
  return sum;
}

/// Flash Linear Attention's files of generation 6 have keys of another shape, and its hybrids have
/// attention.
void refuse_other_rwkv(const JsonCursor& config, int hidden) {
  for (const std::string_view key : {"attn", "expand_k", "expand_v", "proj_low_rank_dim"}) {
    if (const auto other = said(config, key)) {
      other->fail("a model without this key, whose layers are those of RWKV's own code");
    }
  }
  const auto require_hidden = [hidden](const JsonCursor& width) {
    if (width.integer(1, kMostWidth) != hidden) {
      width.fail(std::to_string(hidden) + " (hidden_size)");
    }
  };
  for (const std::string_view key : {"attention_hidden_size", "key_dim", "value_dim"}) {
    const std::optional<JsonCursor> width = said(config, key);
    if (!width) continue;
    if (!width->is_array()) {
      require_hidden(*width);
      continue;
    }
    for (const JsonCursor& of_layer : width->elements(kMostLayers)) require_hidden(of_layer);
  }
}

int rwkv_ffn(const JsonCursor& config, int generation, int hidden) {
  constexpr int kUnit = 32;
  // Flash Linear Attention's share of the stream's width.
  if (generation == kLastGeneration && !said(config, "intermediate_size")) {
    return whole_units(config, "hidden_ratio", 4, hidden, kUnit);
  }
  const bool narrow = generation == 5 || generation == 6;
  const int usual = narrow ? hidden * 7 / 2 / kUnit * kUnit : 4 * hidden;
  return integer_or(config, "intermediate_size", 1, kMostWidth, usual);
}

}  // namespace

void read_rwkv(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  constexpr int kHeadColumns = 64;
  const int generation = type == "rwkv" ? 4 : type.back() - '0';
  m.layers = config.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = config.at("hidden_size").integer(1, kMostWidth / 8);
  refuse_other_rwkv(config, m.hidden);
  m.ffn = rwkv_ffn(config, generation, m.hidden);
  m.tied = flag_or(config, "tie_word_embeddings", false);
  const std::string_view width_key = generation == kLastGeneration ? "head_dim" : "head_size";
  const int width =
      generation == 4 ? 1 : integer_or(config, width_key, 1, kMostWidth, kHeadColumns);
  if (m.hidden % width != 0) {
    config.at(width_key).fail("a divisor of " + std::to_string(m.hidden) + " (hidden_size)");
  }
  const Mixer mixer = mixer_called("rwkv");
  MixerNumbers& numbers = mixer_numbers(m, mixer);
  numbers[0] = generation;
  numbers[1] = m.hidden / width;
  numbers[2] = width;
  numbers[3] = rwkv_low_rank(config, generation, m.hidden);
  share_states(numbers[1], width, m);
  // A norm before the first layer, and the bias of the last one.
  m.other_parameters = 3.0 * m.hidden;
  const KindShape layer{.mixer = mixer, .ffn = m.ffn};
  set_kinds(config, std::vector<KindShape>(static_cast<std::size_t>(m.layers), layer), m);
}

std::span<const std::string_view> varied_families() { return kVaried; }

void read_varied(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  if (type == "gpt_neo") return read_gpt_neo(config, m);
  if (type == "openelm") return read_openelm(config, m);
  read_like_olmo(config, type, m);
}

}  // namespace lockstep::hugging_face
