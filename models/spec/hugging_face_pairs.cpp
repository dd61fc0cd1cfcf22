// Encoders with a decoder behind them. Sources: configuration_*.py and modeling_*.py of each family
// in https://github.com/huggingface/transformers.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

struct StackOfLayers {
  int layers = 0, ffn = 0;
  int sparse = 0;  ///< of the layers from `first` on one of so many has experts; 0: none has
  int first = 0;

  [[nodiscard]] bool has_experts(int layer) const {
    return sparse > 0 && layer >= first && (layer - first) % sparse == 0;
  }
  [[nodiscard]] int sparse_layers() const {
    int count = 0;
    for (int i = 0; i < layers; ++i) count += has_experts(i) ? 1 : 0;
    return count;
  }
};

void add_stack(const StackOfLayers& stack, const KindShape& dense, char sparse_letter,
               TransformerShape& m) {
  KindShape sparse = dense;
  sparse.letter = std::string(1, sparse_letter);
  sparse.experts = true;
  sparse.ffn = 0;
  const int with_experts = stack.sparse_layers();
  if (with_experts < stack.layers) m.kinds.push_back(dense);
  if (with_experts > 0) m.kinds.push_back(sparse);
  for (int i = 0; i < stack.layers; ++i) {
    m.pattern += stack.has_experts(i) ? sparse.letter : dense.letter;
  }
  m.layers += stack.layers;
  m.ffn = std::max(m.ffn, stack.ffn);
}

void say_pair(HuggingFaceModel& model) {
  model.assumptions.emplace_back(
      "model: an encoder and a decoder; batch.tokens are the decoder's, batch.source_tokens the "
      "encoder's");
}

/// An encoder's layers and a decoder's, each of which attends to the encoder's result too.
void set_stacks(const StackOfLayers& encoder, const StackOfLayers& decoder,
                HuggingFaceModel& model) {
  KindShape reads, writes;
  reads.letter = "e";
  reads.bidirectional = reads.of_source = true;
  reads.ffn = encoder.ffn;
  writes.letter = "d";
  writes.cross = true;
  writes.ffn = decoder.ffn;
  add_stack(encoder, reads, 'E', model.shape);
  add_stack(decoder, writes, 'D', model.shape);
  say_pair(model);
}

/// Switch Transformers': of each stack's layers so many have experts, each as wide as an MLP.
void read_switch(const JsonCursor& config, StackOfLayers& encoder, StackOfLayers& decoder,
                 TransformerShape& m) {
  const auto step = [&](std::string_view key, const StackOfLayers& stack) {
    const int with_experts = integer_or(config, key, 0, stack.layers, 3);
    return with_experts > 0 ? stack.layers / with_experts : 0;
  };
  encoder.sparse = step("num_sparse_encoder_layers", encoder);
  decoder.sparse = step("num_sparse_decoder_layers", decoder);
  // The second of each so many; where all have them, all.
  encoder.first = encoder.sparse > 1 ? 1 : 0;
  decoder.first = decoder.sparse > 1 ? 1 : 0;
  if (encoder.sparse + decoder.sparse == 0) return;
  m.experts.count = config.at("num_experts").integer(1, kMostExperts);
  m.experts.ffn = encoder.ffn;
}

/// LongT5's encoder sees blocks beside each block of words, and of the later kind a sum of each few
/// words too, which have a table of distances and a norm in each layer (Guo et al. 2021,
/// arXiv:2112.07916, section 3).
void read_long_encoder(const JsonCursor& config, double buckets, TransformerShape& m) {
  constexpr std::array<std::string_view, 2> kTypes{"local", "transient-global"};
  constexpr int kBlocks = 3, kUsualRadius = 127, kUsualGlobal = 16;
  const bool sums = config.at("encoder_attention_type").choice(kTypes) == 1;
  const int block = integer_or(config, "local_radius", 1, kMostTokens / 4, kUsualRadius) + 1;
  for (KindShape& kind : m.kinds) {
    if (!kind.of_source) continue;
    kind.window = kBlocks * block;
    if (sums)
      kind.summaries = integer_or(config, "global_block_size", 1, kMostTokens, kUsualGlobal);
  }
  if (sums) m.other_parameters += buckets * m.heads;
}

void read_t5(const JsonCursor& config, std::string_view type, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  m.hidden = config.at("d_model").integer(1, kMostWidth);
  m.heads = m.kv_heads = config.at("num_heads").integer(1, kMostHeads);
  m.head_dim = config.at("d_kv").integer(1, kMostWidth);
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", type == "t5" || type == "switch_transformers");
  const std::optional<JsonCursor> activation = config.find("feed_forward_proj");
  m.gated = type == "umt5" || type == "mt5";
  if (activation && !activation->is_null()) m.gated = activation->string().starts_with("gated");
  StackOfLayers encoder{.layers = config.at("num_layers").integer(1, kMostLayers),
                        .ffn = config.at("d_ff").integer(1, kMostWidth)};
  StackOfLayers decoder = encoder;
  decoder.layers = integer_or(config, "num_decoder_layers", 1, kMostLayers, encoder.layers);
  if (type == "switch_transformers") read_switch(config, encoder, decoder, m);
  // A table of distances for each stack, of umt5 for each layer, and the encoder's last norm.
  const double buckets = integer_or(config, "relative_attention_num_buckets", 1, kMostTokens, 32);
  const double tables = type == "umt5" ? encoder.layers + decoder.layers : 2;
  m.other_parameters = tables * buckets * m.heads + m.hidden;
  set_stacks(encoder, decoder, model);
  if (type == "longt5") read_long_encoder(config, buckets, m);
}

/// Width, heads and words of an encoder and a decoder, which have the same.
void read_equal_stacks(const JsonCursor& config, TransformerShape& m) {
  m.hidden = config.at("d_model").integer(1, kMostWidth);
  const JsonCursor heads = config.at("encoder_attention_heads");
  m.heads = m.kv_heads = heads.integer(1, m.hidden);
  const int others = config.at("decoder_attention_heads").integer(1, m.hidden);
  if (others != m.heads) heads.fail(std::to_string(others) + " (decoder_attention_heads)");
  if (m.hidden % m.heads != 0) {
    heads.fail("a divisor of " + std::to_string(m.hidden) + " (d_model)");
  }
  m.head_dim = m.hidden / m.heads;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
}

/// What the code of a family like BART's fixes.
struct LikeBart {
  std::string_view type;
  /// Rows of each stack's table of positions beyond the longest text; -1: no table, as positions
  /// are sine waves.
  int rows_more;
  int norms;  ///< beside the layers: behind the words, behind the last layer, of both stacks
};
constexpr int kWaves = -1;
constexpr std::array kLikeBart{
    LikeBart{"bart", 2, 2},          LikeBart{"plbart", 2, 2},
    LikeBart{"mbart", 2, 4},         LikeBart{"m2m_100", kWaves, 2},
    LikeBart{"nllb-moe", kWaves, 2}, LikeBart{"pegasus", kWaves, 2},
    LikeBart{"marian", kWaves, 0},   LikeBart{"led", kWaves, 2},
    LikeBart{"blenderbot", 0, 2},    LikeBart{"blenderbot-small", 0, 2},
};

/// NLLB-MoE's: the last of each so many layers has experts with biases, of which a word goes to
/// two.
void read_translating_experts(const JsonCursor& config, StackOfLayers& encoder,
                              StackOfLayers& decoder, TransformerShape& m) {
  constexpr int kUsualStep = 4, kOfWord = 2;
  encoder.sparse = integer_or(config, "encoder_sparse_step", 0, kMostLayers, kUsualStep);
  decoder.sparse = integer_or(config, "decoder_sparse_step", 0, kMostLayers, kUsualStep);
  encoder.first = encoder.sparse - 1;
  decoder.first = decoder.sparse - 1;
  const int sparse_layers = encoder.sparse_layers() + decoder.sparse_layers();
  if (sparse_layers == 0) return;
  if (encoder.ffn != decoder.ffn) {
    config.at("decoder_ffn_dim").fail(std::to_string(encoder.ffn) + " (encoder_ffn_dim)");
  }
  m.experts.count = config.at("num_experts").integer(1, kMostExperts);
  m.experts.per_token = std::min(kOfWord, m.experts.count);
  m.experts.ffn = encoder.ffn;
  // A layer counts one bias behind its experts.
  const double count = m.experts.count, h = m.hidden;
  m.other_parameters += sparse_layers * (count * (encoder.ffn + h) - h);
  if (flag_or(config, "router_bias", false)) m.other_parameters += sparse_layers * count;
}

void read_like_bart(const JsonCursor& config, std::string_view type, HuggingFaceModel& model) {
  const LikeBart& family = *std::ranges::find(kLikeBart, type, &LikeBart::type);
  TransformerShape& m = model.shape;
  read_equal_stacks(config, m);
  m.biases = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  const std::optional<JsonCursor> shared = config.find("share_encoder_decoder_embeddings");
  if (shared && !shared->is_null() && !shared->boolean()) {
    shared->fail("true: a table of words for each stack is not known");
  }
  if (family.rows_more >= 0) {
    m.learned_positions = true;
    m.max_positions =
        2 * (config.at("max_position_embeddings").integer(1, kMostTokens / 4) + family.rows_more);
  }
  // One norm is counted as the one before the output.
  m.last_norm = family.norms > 0;
  m.other_parameters = 2.0 * std::max(0, family.norms - 1) * m.hidden;
  StackOfLayers encoder{.layers = config.at("encoder_layers").integer(1, kMostLayers),
                        .ffn = config.at("encoder_ffn_dim").integer(1, kMostWidth)};
  StackOfLayers decoder{.layers = config.at("decoder_layers").integer(1, kMostLayers),
                        .ffn = config.at("decoder_ffn_dim").integer(1, kMostWidth)};
  if (type == "nllb-moe") read_translating_experts(config, encoder, decoder, m);
  set_stacks(encoder, decoder, model);
}

/// LED: BART whose encoder sees windows, with a table of positions for each stack, and queries,
/// keys and values for few words that see all.
void read_led(const JsonCursor& config, HuggingFaceModel& model) {
  read_like_bart(config, "led", model);
  TransformerShape& m = model.shape;
  constexpr int kUsualSource = 16'384, kUsualTarget = 1024;
  m.learned_positions = true;
  m.max_positions =
      integer_or(config, "max_encoder_position_embeddings", 1, kMostTokens, kUsualSource) +
      integer_or(config, "max_decoder_position_embeddings", 1, kMostTokens, kUsualTarget);
  const int layers = config.at("encoder_layers").integer(1, kMostLayers);
  const std::vector<int> windows = windows_of(config, layers);
  if (std::ranges::any_of(windows, [&](int one) { return one != windows.front(); })) {
    config.at("attention_window").fail("one number for all layers");
  }
  for (KindShape& kind : m.kinds) {
    if (kind.of_source) kind.window = windows.front();
  }
  constexpr double kThree = 3;
  m.other_parameters += kThree * layers * with_bias(m.hidden, m.hidden);
  model.assumptions.emplace_back(
      "model: no words that see all others; the queries, keys and values that they would have are "
      "weights alone");
}

/// Sound in, words out: two convolutions before the encoder, positions for both, and no biases of
/// keys.
void read_whisper(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_equal_stacks(config, m);
  m.biases = m.learned_positions = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.max_positions = integer_or(config, "max_target_positions", 1, kMostTokens, 448);
  const int moments = integer_or(config, "max_source_positions", 1, kMostTokens, 1500);
  const StackOfLayers encoder{.layers = config.at("encoder_layers").integer(1, kMostLayers),
                              .ffn = config.at("encoder_ffn_dim").integer(1, kMostWidth)};
  const StackOfLayers decoder{.layers = config.at("decoder_layers").integer(1, kMostLayers),
                              .ffn = config.at("decoder_ffn_dim").integer(1, kMostWidth)};
  set_stacks(encoder, decoder, model);
  // Convolutions, positions and a last norm, beside layers; keys of all attentions.
  const double beside = audio_encoder_weights(
      {.layers = 0,
       .hidden = static_cast<double>(m.hidden),
       .mels = static_cast<double>(integer_or(config, "num_mel_bins", 1, kMostWidth, 80)),
       .positions = static_cast<double>(moments)});
  m.other_parameters = beside - (encoder.layers + 2.0 * decoder.layers) * m.hidden;
  model.assumptions.push_back("model: 30 s of sound are batch.source_tokens of " +
                              std::to_string(moments));
}

/// A stack of T5Gemma: layers of Gemma 2.
struct GemmaStack {
  JsonCursor config;
  TransformerShape shape{};
};

GemmaStack read_gemma_stack(const JsonCursor& at) {
  GemmaStack out{.config = at};
  TransformerShape& m = out.shape;
  m.layers = at.at("num_hidden_layers").integer(1, kMostLayers);
  m.hidden = at.at("hidden_size").integer(1, kMostWidth);
  m.heads = at.at("num_attention_heads").integer(1, kMostHeads);
  const JsonCursor groups = at.at("num_key_value_heads");
  m.kv_heads = groups.integer(1, m.heads);
  if (m.heads % m.kv_heads != 0) groups.fail("a divisor of " + std::to_string(m.heads));
  m.head_dim = at.at("head_dim").integer(1, kMostWidth);
  m.ffn = at.at("intermediate_size").integer(1, kMostWidth);
  m.vocabulary = at.at("vocab_size").integer(1, kMostTokens);
  m.window = integer_or(at, "sliding_window", 1, kMostTokens, 4096);
  return out;
}

/// A letter for each layer, capitals where attention goes over all.
std::string gemma_pattern(const GemmaStack& stack, char near) {
  const char far = static_cast<char>(near - 'a' + 'A');
  std::string out;
  constexpr std::array<std::string_view, 2> kTypes{"sliding_attention", "full_attention"};
  const std::optional<JsonCursor> types = stack.config.find("layer_types");
  if (types && !types->is_null()) {
    for (const JsonCursor& type : types->elements(kMostLayers)) {
      out += type.choice(kTypes) == 0 ? near : far;
    }
    const auto layers = static_cast<std::size_t>(stack.shape.layers);
    if (out.size() != layers) types->fail(std::to_string(layers) + " names");
    return out;
  }
  for (int i = 0; i < stack.shape.layers; ++i) out += i % 2 == 0 ? near : far;
  return out;
}

void add_gemma_stack(const GemmaStack& stack, KindShape kind, TransformerShape& m) {
  const TransformerShape& own = stack.shape;
  kind.hidden = own.hidden;
  kind.heads = own.heads;
  kind.kv_heads = own.kv_heads;
  kind.head_dim = own.head_dim;
  kind.ffn = own.ffn;
  const char near = kind.letter.front();
  const std::string pattern = gemma_pattern(stack, near);
  KindShape windowed = kind;
  windowed.window = own.window;
  kind.letter = std::string(1, static_cast<char>(near - 'a' + 'A'));
  for (const KindShape& one : {windowed, kind}) {
    if (pattern.find(one.letter) != std::string::npos) m.kinds.push_back(one);
  }
  m.pattern += pattern;
  // Norms of results, of which the layers count those before their blocks alone.
  const double blocks = kind.cross ? 3 : 2;
  m.other_parameters += blocks * own.layers * own.hidden;
}

/// T5Gemma: two stacks of any widths, each with a table of words, of which the decoder's is the
/// output too.
void read_t5gemma(const JsonCursor& config, HuggingFaceModel& model) {
  const GemmaStack encoder = read_gemma_stack(config.at("encoder")),
                   decoder = read_gemma_stack(config.at("decoder"));
  TransformerShape& m = model.shape;
  m = decoder.shape;
  m.window = 0;
  m.layers += encoder.shape.layers;
  m.gated = m.rotary = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  const double words = encoder.shape.vocabulary, h = encoder.shape.hidden;
  m.other_parameters = words * h + h;  // the encoder's table and its last norm
  KindShape reads, writes;
  reads.letter = "e";
  reads.bidirectional = reads.of_source = true;
  writes.letter = "d";
  writes.cross = true;
  writes.source_width = encoder.shape.hidden;
  add_gemma_stack(encoder, reads, m);
  add_gemma_stack(decoder, writes, m);
  say_pair(model);
}

constexpr std::array<std::string_view, 17> kPairFamilies{
    "longt5",
    "led",
    "t5",
    "mt5",
    "umt5",
    "switch_transformers",
    "t5gemma",
    "whisper",
    "bart",
    "plbart",
    "mbart",
    "m2m_100",
    "nllb-moe",
    "pegasus",
    "marian",
    "blenderbot",
    "blenderbot-small",
};

}  // namespace

std::vector<int> windows_of(const JsonCursor& config, int layers) {
  const JsonCursor windows = config.at("attention_window");
  const auto count = static_cast<std::size_t>(layers);
  if (!windows.is_array()) return std::vector<int>(count, windows.integer(2, kMostTokens));
  std::vector<int> out;
  for (const JsonCursor& one : windows.elements(kMostLayers)) {
    out.push_back(one.integer(2, kMostTokens));
  }
  if (out.size() != count) {
    windows.fail("a number, or an array of " + std::to_string(layers) + " (layers)");
  }
  return out;
}

std::span<const std::string_view> pair_families() { return kPairFamilies; }

void read_pair(const JsonCursor& config, std::string_view type, HuggingFaceModel& model) {
  if (type == "whisper") {
    read_whisper(config, model);
  } else if (type == "led") {
    read_led(config, model);
  } else if (type == "t5gemma") {
    read_t5gemma(config, model);
  } else if (type.ends_with("t5") || type == "switch_transformers") {
    read_t5(config, type, model);
  } else {
    read_like_bart(config, type, model);
  }
}

}  // namespace lockstep::hugging_face
