// Encoders of text and images; those with a decoder behind them: hugging_face_pairs.cpp. Sources:
// configuration_*.py and modeling_*.py of each family in
// https://github.com/huggingface/transformers.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"
#include "models/spec/hugging_face_stages.hpp"

namespace lockstep::hugging_face {
namespace {

/// How much there is beside a text encoder's layers: what predicts masked words, and for BERT and
/// those that do as it does what tells a pair of sentences from another.
double text_extras(const JsonCursor& config, std::string_view type, const TransformerShape& m) {
  const double h = m.hidden, words = config.at("vocab_size").integer(1, kMostTokens);
  const double masked = with_bias(h, h) + 2 * h + words;
  if (type == "distilbert") return masked;
  // A table of distances for all layers.
  if (type == "mpnet") {
    return masked +
           m.heads * integer_or(config, "relative_attention_num_buckets", 1, kMostTokens, 32);
  }
  double beside = masked + integer_or(config, "type_vocab_size", 0, kMostTokens, 2) * h;
  if (type == "ernie" && flag_or(config, "use_task_id", false)) {
    beside += integer_or(config, "task_type_vocab_size", 0, kMostTokens, 3) * h;
  }
  if (type == "roberta-prelayernorm") beside += 2 * h;  // norms behind words and the last layer
  constexpr std::array<std::string_view, 4> kPairs{"bert", "ernie", "megatron-bert", "big_bird"};
  const bool pairs = std::ranges::find(kPairs, type) != kPairs.end();
  return beside + (pairs ? with_bias(h, h) + with_bias(h, 2) : 0);
}

/// Weights of what tells classes from another, where a file names them.
double class_weights(const JsonCursor& config, double h) {
  const std::optional<JsonCursor> labels = config.find("id2label");
  if (!labels || !labels->is_object()) return 0;
  return with_bias(h, static_cast<double>(labels->keys().size()));
}

/// Whether one of the classes that a file is for has `part` in its name.
bool is_class_of(const JsonCursor& config, std::string_view part) {
  const std::optional<JsonCursor> classes = config.find("architectures");
  if (!classes || !classes->is_array()) return false;
  return std::ranges::any_of(classes->elements(kMostLayers), [&](const JsonCursor& one) {
    return one.is_string() && one.string().find(part) != std::string::npos;
  });
}

/// The keys of an encoder's widths.
struct EncoderKeys {
  std::string_view layers = "num_hidden_layers", hidden = "hidden_size",
                   heads = "num_attention_heads";
  std::string_view ffn = "intermediate_size";  ///< empty: four times the width
};

void read_widths(const JsonCursor& config, const EncoderKeys& keys, TransformerShape& m) {
  m.layers = config.at(keys.layers).integer(1, kMostLayers);
  m.hidden = config.at(keys.hidden).integer(1, kMostWidth);
  m.heads = m.kv_heads = config.at(keys.heads).integer(1, kMostHeads);
  m.head_dim = m.hidden / m.heads;
  if (m.hidden % m.heads != 0) {
    config.at(keys.heads)
        .fail("a divisor of " + std::to_string(m.hidden) + " (" + std::string(keys.hidden) + ")");
  }
  constexpr int kTimes = 4;
  m.ffn = keys.ffn.empty() ? kTimes * m.hidden : config.at(keys.ffn).integer(1, kMostWidth);
  m.biases = true;
}

/// Words in, words out; the norm behind the embedding is counted as the one before the output.
void read_text_encoder(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  if (flag_or(config, "is_decoder", false)) {
    config.at("is_decoder").fail("false: only encoders are known of " + std::string(type));
  }
  read_widths(config,
              type == "distilbert" ? EncoderKeys{"n_layers", "dim", "n_heads", "hidden_dim"}
                                   : EncoderKeys{},
              m);
  m.bidirectional = true;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.learned_positions = true;
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, 512);
  m.other_parameters = text_extras(config, type, m);
}

/// Layers of an encoder, each of which sees a window around a word.
void set_encoder_windows(const JsonCursor& config, const std::vector<int>& windows,
                         TransformerShape& m) {
  std::vector<KindShape> layers;
  for (const int window : windows) layers.push_back({.window = window, .ffn = m.ffn});
  set_kinds(config, layers, m);
}

/// Longformer: windows, and few words that see all and are seen by all, for which each layer has
/// queries, keys and values of its own.
void read_longformer(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_text_encoder(config, "longformer", m);
  set_encoder_windows(config, windows_of(config, m.layers), m);
  const double h = m.hidden;
  constexpr double kThree = 3;
  m.other_parameters += m.layers * kThree * with_bias(h, h);
  model.assumptions.emplace_back(
      "model: no words that see all others; the queries, keys and values that they would have are "
      "weights alone");
}

/// BigBird: blocks of keys around each block of words, at random, and at both ends, which see all
/// blocks themselves (Zaheer et al. 2020, arXiv:2007.14062, section 2).
void read_big_bird(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_text_encoder(config, "big_bird", m);
  constexpr std::array<std::string_view, 2> kTypes{"block_sparse", "original_full"};
  const std::optional<JsonCursor> type = config.find("attention_type");
  if (type && !type->is_null() && type->choice(kTypes) == 1) return;
  constexpr int kAround = 3, kEnds = 2, kMostBlock = 1 << 12;
  const int block = integer_or(config, "block_size", 1, kMostBlock, 64);
  const int random = integer_or(config, "num_random_blocks", 0, kMostBlock, 3);
  // What words at the ends see is, for each word of a text, as many keys as both ends have.
  const int keys = (kAround + 2 * kEnds + random) * block;
  set_encoder_windows(config, std::vector<int>(static_cast<std::size_t>(m.layers), keys), m);
  model.assumptions.push_back(
      "model: blocks of keys that its words see (block_size, "
      "num_random_blocks) were taken for a window of " +
      std::to_string(keys) + " tokens");
}

/// ESM: amino acids in, amino acids out, and a number for each head that says which of them touch.
void read_protein(const JsonCursor& config, TransformerShape& m) {
  if (flag_or(config, "is_folding_model", false)) {
    config.at("is_folding_model").fail("false: what folds a protein (ESMFold) is not known");
  }
  constexpr std::array<std::string_view, 2> kPlaces{"rotary", "absolute"};
  read_widths(config, {}, m);
  m.bidirectional = true;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.rotary = config.at("position_embedding_type").choice(kPlaces) == 0;
  m.learned_positions = !m.rotary;
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, 1026);
  const double h = m.hidden, heads = m.heads;
  const double before = flag_or(config, "emb_layer_norm_before", false) ? 2 * h : 0;
  m.other_parameters = before + with_bias(h, h) + 2 * h + m.vocabulary + m.layers * heads + 1;
}

/// Tables of words, places and kinds of sentences that may be narrower than the layers, their norm,
/// and a product behind it; what the shape counts by itself is left out.
double narrow_tables(const JsonCursor& config, TransformerShape& m) {
  const int words = config.at("vocab_size").integer(1, kMostTokens);
  const int table = integer_or(config, "embedding_size", 1, kMostWidth, 128);
  m.bidirectional = m.learned_positions = true;
  m.vocabulary = words;
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, 512);
  const double types = integer_or(config, "type_vocab_size", 0, kMostTokens, 2);
  if (table != m.hidden) m.table_width = table;
  const double h = m.hidden, t = table;
  // Their norm in place of one before the output.
  return (types + 2) * t - 2 * h + (table == m.hidden ? 0 : with_bias(t, h));
}

/// ELECTRA: a generator that predicts words, or a discriminator that says of each whether it was
/// replaced and whose table is therefore weights alone.
void read_electra(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_widths(config, {}, m);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.other_parameters = narrow_tables(config, m);
  const double h = m.hidden, table = m.table_width > 0 ? m.table_width : h;
  if (is_class_of(config, "ForMaskedLM")) {
    m.other_parameters += with_bias(h, table) + 2 * table + m.vocabulary;
    return;
  }
  m.other_parameters += (m.vocabulary + static_cast<double>(m.max_positions)) * table - h +
                        with_bias(h, h) + with_bias(h, 1);
  m.vocabulary = 1;
  m.tied = true;
  m.learned_positions = false;
  m.table_width = 0;
  model.assumptions.emplace_back(
      "model: the discriminator, which says of each word whether it was replaced; a generator "
      "beside it is a model of its own");
}

/// ALBERT: one layer's weights for all of them, or for those of each group; a layer of the file can
/// be several in a row.
void read_albert(const JsonCursor& config, TransformerShape& m) {
  constexpr int kMostInner = 64;
  read_widths(config, {}, m);
  const int groups = integer_or(config, "num_hidden_groups", 1, kMostLayers, 1);
  if (m.layers % groups != 0) {
    config.at("num_hidden_groups")
        .fail("a divisor of " + std::to_string(m.layers) + " (num_hidden_layers)");
  }
  const int together = m.layers / groups;
  const int inner = integer_or(config, "inner_group_num", 1, kMostInner, 1);
  if (inner > kMostLayers / m.layers) {
    config.at("inner_group_num").fail("at most " + std::to_string(kMostLayers) + " layers in all");
  }
  m.layers *= inner;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.other_parameters = narrow_tables(config, m);
  KindShape layer;
  layer.letter = "a";
  layer.ffn = m.ffn;
  layer.shared_by = together;
  m.kinds = {layer};
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'a');
  const double h = m.hidden, table = m.table_width > 0 ? m.table_width : h;
  // What predicts words, and what tells a pair of sentences from another.
  m.other_parameters +=
      with_bias(h, table) + 2 * table + m.vocabulary + with_bias(h, h) + with_bias(h, 2);
}

/// ModernBERT: words in, words out, positions by rotation. All but every n-th layer attend to a
/// window around them; the first has no norm before attention.
void read_modern(const JsonCursor& config, TransformerShape& m) {
  constexpr int kOftenest = 3, kUsualWindow = 128;
  read_widths(config, {}, m);
  m.biases = flag_or(config, "attention_bias", false);
  if (flag_or(config, "mlp_bias", false) != m.biases) {
    config.at(m.biases ? "attention_bias" : "mlp_bias")
        .fail("false: biases in one half of a layer are not known");
  }
  m.bidirectional = m.gated = m.rotary = true;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  const int every = integer_or(config, "global_attn_every_n_layers", 1, kMostLayers, kOftenest);
  KindShape whole, near;
  whole.letter = "g";
  near.letter = "w";
  whole.bidirectional = near.bidirectional = true;
  whole.ffn = near.ffn = m.ffn;
  near.window = integer_or(config, "local_attention", 1, kMostTokens, kUsualWindow);
  for (int i = 0; i < m.layers; ++i) m.pattern += i % every == 0 ? 'g' : 'w';
  m.kinds.push_back(std::move(whole));
  if (every > 1) m.kinds.push_back(std::move(near));
  const double h = m.hidden;
  // A norm behind the embedding in place of that of the first layer; what predicts masked words.
  const double words = flag_or(config, "decoder_bias", true) ? m.vocabulary : 0;
  m.other_parameters = h * h + h + words;
}

/// Which distances a file of DeBERTa scores: those of what a word looks for to where others are,
/// and the other way round; a list, or words with a bar between them.
int distance_scores(const JsonCursor& config) {
  constexpr std::array<std::string_view, 2> kKnown{"c2p", "p2c"};
  const JsonCursor types = config.at("pos_att_type");
  if (types.is_array()) {
    int scores = 0;
    std::array<bool, kKnown.size()> seen{};
    for (const JsonCursor& one : types.elements(kKnown.size())) {
      bool& before = seen[one.choice(kKnown)];
      if (before) one.fail("each once");
      before = true;
      ++scores;
    }
    return scores;
  }
  const std::string words = types.string();
  int scores = 0;
  std::size_t known = words.empty() ? 0 : words.size() - (words.find('|') != std::string::npos);
  for (const std::string_view one : kKnown) {
    if (words.find(one) == std::string::npos) continue;
    ++scores;
    known -= one.size();
  }
  if (known != 0) types.fail("c2p, p2c, or both with | between them");
  return scores;
}

/// Weights of a layer of DeBERTa that bring a table of distances to queries and keys. Of the first
/// version keys have no biases, and neither has what makes keys of distances.
double distance_weights(const JsonCursor& config, std::string_view type, int scores, double h) {
  if (type == "deberta") return scores * h * h + (scores > 1 ? h : 0) - h;
  return flag_or(config, "share_att_key", false) ? 0 : scores * with_bias(h, h);
}

/// DeBERTa: words in, words out. A table of distances, or of buckets of them, which queries and
/// keys are scored against beside each other (He et al. 2020, arXiv:2006.03654, section 3.1; 2021,
/// arXiv:2111.09543).
void read_deberta(const JsonCursor& config, std::string_view type, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_widths(config, {}, m);
  const double h = m.hidden;
  const int table = integer_or(config, "embedding_size", 1, kMostWidth, m.hidden);
  if (table != m.hidden) {
    config.at("embedding_size").fail(std::to_string(m.hidden) + " (hidden_size)");
  }
  m.bidirectional = true;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.learned_positions = flag_or(config, "position_biased_input", true);
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, 512);
  m.other_parameters = integer_or(config, "type_vocab_size", 0, kMostTokens, 0) * h +
                       with_bias(h, h) + 2 * h + m.vocabulary;
  const int kernel = integer_or(config, "conv_kernel_size", 0, 64, 0);
  if (kernel > 0) {
    const int groups = integer_or(config, "conv_groups", 1, m.hidden, 1);
    m.other_parameters += with_bias(kernel * h / groups, h) + 2 * h;
    model.assumptions.emplace_back(
        "model: the convolution beside its first layer (conv_kernel_size) is weights alone");
  }
  if (!flag_or(config, "relative_attention", false)) return;
  // -1 and 0 say that there is no such number.
  int span = type == "deberta" ? -1 : integer_or(config, "position_buckets", -1, kMostTokens, -1);
  if (span < 1) span = integer_or(config, "max_relative_positions", -1, kMostTokens, -1);
  if (span < 1) span = m.max_positions;
  const int scores = distance_scores(config);
  const std::optional<JsonCursor> norm = config.find("norm_rel_ebd");
  constexpr std::string_view kNorm = "layer_norm";
  const bool normed = norm && norm->is_string() && norm->string() == kNorm;
  m.other_parameters +=
      2 * span * h + (normed ? 2 * h : 0) + m.layers * distance_weights(config, type, scores, h);
  if (scores == 0) return;
  KindShape layer;
  layer.letter = "d";
  layer.ffn = m.ffn;
  layer.distances = scores * span / 2;
  m.kinds = {layer};
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'd');
  model.assumptions.push_back(
      "model: attention scores a table of " + std::to_string(2 * span) +
      " distances too; what its layers make of that table once a micro batch is weights alone, and "
      "picking scores out of it is left out");
}

/// Nomic's BERT: GPT-2's names, rotation in place of a table of positions where its share is not 0,
/// a gate where the activation says so, and a flag for each bias.
void read_nomic(const JsonCursor& config, TransformerShape& m) {
  constexpr std::array<std::string_view, 4> kActivations{"swiglu", "geglu", "gelu", "gelu_new"};
  constexpr int kGated = 2;
  constexpr Interval kShare{0, 1};
  if (integer_or(config, "moe_every_n_layers", 0, kMostLayers, 0) > 0) {
    config.at("moe_every_n_layers").fail("0: experts with biases of a BERT are not known");
  }
  read_widths(config, {"n_layer", "n_embd", "n_head", {}}, m);
  m.ffn = integer_or(config, "n_inner", 1, kMostWidth, m.ffn);
  m.gated = config.at("activation_function").choice(kActivations) < kGated;
  m.biases = flag_or(config, "qkv_proj_bias", true);
  for (const std::string_view key : {"mlp_fc1_bias", "mlp_fc2_bias"}) {
    if (flag_or(config, key, true) != m.biases) {
      config.at(key).fail(std::string(m.biases ? "true" : "false") + ", as qkv_proj_bias");
    }
  }
  m.bidirectional = true;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  const std::optional<JsonCursor> share = config.find("rotary_emb_fraction");
  m.rotary = share && !share->is_null() && share->number(kShare) > 0;
  m.learned_positions = !m.rotary;
  m.max_positions = integer_or(config, "n_positions", 1, kMostTokens, 0);
  const double h = m.hidden;
  // What predicts masked words, and kinds of sentences; norms have biases whatever products have.
  m.other_parameters = integer_or(config, "type_vocab_size", 0, kMostTokens, 2) * h + h * h +
                       2 * h + m.vocabulary + (m.biases ? h : (2.0 * m.layers + 1) * h);
}

/// An encoder of patches, which has a token of its own beside them. Its classes and what makes
/// vectors of patches are weights that compute next to nothing; there is no table of words but a
/// row, which is that token.
void read_image_encoder(const JsonCursor& config, TransformerShape& m, bool patch_bias,
                        const EncoderKeys& keys = {}) {
  constexpr int kMostPixels = 1 << 14;
  read_widths(config, keys, m);
  m.bidirectional = true;
  const JsonCursor patch = config.at("patch_size");
  const int side = patch.integer(1, kMostPixels);
  const int image = integer_or(config, "image_size", side, kMostPixels, 224);
  const int patches = (image / side) * (image / side);
  const double h = m.hidden;
  m.vocabulary = 1;
  m.tied = true;
  m.learned_positions = true;
  m.max_positions = patches + 1;
  m.other_parameters = kColours * side * side * h + (patch_bias ? h : 0);
  if (patch_bias) m.other_parameters += class_weights(config, h);
}

/// `own` tokens beside an image's patches; of them all there are `tokens`.
std::string patches_line(int tokens, int own) {
  const std::string beside = own == 0   ? ""
                             : own == 1 ? " and a token beside them"
                                        : " and " + std::to_string(own) + " tokens beside them";
  return "model: an encoder of images; batch.tokens are the patches of one" + beside +
         ", of the file's images " + std::to_string(tokens);
}

/// A layer of a tower, beside or before others.
KindShape tower_kind(std::string_view letter, const TransformerShape& tower) {
  KindShape kind;
  kind.letter = letter;
  kind.hidden = tower.hidden;
  kind.heads = kind.kv_heads = tower.heads;
  kind.head_dim = tower.head_dim;
  kind.ffn = tower.ffn;
  return kind;
}

/// A text encoder's layers beside those of the image encoder that `model` is.
void add_words(const TransformerShape& text, bool bidirectional, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  model.assumptions.push_back(patches_line(m.max_positions, bidirectional ? 0 : 1));
  KindShape image = tower_kind("i", m), word = tower_kind("w", text);
  image.bidirectional = true;
  word.bidirectional = bidirectional;
  word.tokens = text.max_positions;
  m.bidirectional = false;  // of one of them, or said by both
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'i') +
              std::string(static_cast<std::size_t>(text.layers), 'w');
  m.kinds = {std::move(image), std::move(word)};
  m.layers += text.layers;
  model.assumptions.push_back("model: its text encoder reads " +
                              std::to_string(text.max_positions) + " words beside each image");
}

/// CLIP: an image encoder, whose patches are the batch's tokens, and a text encoder beside it,
/// which is causal and reads as many words as it has positions.
void read_clip(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape text;
  const JsonCursor words = config.at("text_config");
  read_widths(words, {}, text);
  text.vocabulary = words.at("vocab_size").integer(1, kMostTokens);
  text.tied = text.learned_positions = true;
  text.max_positions = words.at("max_position_embeddings").integer(1, kMostTokens);
  TransformerShape& m = model.shape;
  read_image_encoder(config.at("vision_config"), m, false);
  const double projected = config.at("projection_dim").integer(1, kMostWidth);
  const double h = m.hidden;
  // A norm before the first layer too, two projections, and a scale; words and their last norm.
  m.other_parameters += 2 * h + projected * (h + text.hidden) + 1 + embedding_parameters(text) +
                        output_parameters(text);
  add_words(text, false, model);
}

/// SigLIP: an image encoder that pools its patches by attention, and a text encoder beside it,
/// neither of which is causal.
void read_siglip(const JsonCursor& config, HuggingFaceModel& model) {
  constexpr int kWords = 32'000, kPlaces = 64;
  TransformerShape text;
  const JsonCursor words = config.at("text_config"), vision = config.at("vision_config");
  read_widths(words, {}, text);
  text.vocabulary = integer_or(words, "vocab_size", 1, kMostTokens, kWords);
  text.tied = text.learned_positions = true;
  text.max_positions = integer_or(words, "max_position_embeddings", 1, kMostTokens, kPlaces);
  TransformerShape& m = model.shape;
  read_image_encoder(vision, m, false);
  --m.max_positions;  // no token beside the patches
  const double pooled = vision_pooling(vision, m.hidden, m.ffn);
  // A bias of the patches, no row in place of words; what reads the text's last word; a scale and a
  // bias.
  m.other_parameters += pooled + embedding_parameters(text) + output_parameters(text) +
                        with_bias(text.hidden, text.hidden) + 2;
  add_words(text, true, model);
}

/// DINOv2: blocks whose results are scaled column by column, and a token that stands for patches
/// that are hidden.
void read_dino(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWider = 4, kBlock = 8;
  read_image_encoder(config, m, false, {.ffn = {}});
  const double h = m.hidden;
  m.ffn = m.hidden * integer_or(config, "mlp_ratio", 1, 64, kWider);
  if (flag_or(config, "use_swiglu_ffn", false)) {
    m.gated = true;
    m.ffn = (2 * m.ffn / 3 + kBlock - 1) / kBlock * kBlock;
  }
  m.other_parameters += h + h + 2 * h * m.layers;
}

/// DINOv2 with registers: tokens that have no place in an image.
void read_dino_with_registers(const JsonCursor& config, HuggingFaceModel& model) {
  read_dino(config, model.shape);
  const int registers = integer_or(config, "num_register_tokens", 0, kMostTokens, 4);
  model.shape.other_parameters += static_cast<double>(registers) * model.shape.hidden;
  model.assumptions.push_back(patches_line(model.shape.max_positions + registers, 1 + registers));
}

/// DINOv3: places by rotation, registers, and a flag for each bias.
void read_dino3(const JsonCursor& config, HuggingFaceModel& model) {
  constexpr int kMostPixels = 1 << 14;
  TransformerShape& m = model.shape;
  read_widths(config, {}, m);
  m.bidirectional = m.rotary = m.tied = true;
  m.gated = flag_or(config, "use_gated_mlp", false);
  m.vocabulary = 1;  // the token that stands for the image
  const int side = config.at("patch_size").integer(1, kMostPixels);
  const int image = integer_or(config, "image_size", side, kMostPixels, 224);
  const int registers = integer_or(config, "num_register_tokens", 0, kMostTokens, 0);
  m.max_positions = (image / side) * (image / side) + 1 + registers;
  const double h = m.hidden, f = m.ffn;
  double biases = 0;  // that layers do not have
  for (const auto& [key, usual] : {std::pair{"query_bias", true}, std::pair{"key_bias", false},
                                   std::pair{"value_bias", true}, std::pair{"proj_bias", true}}) {
    biases += flag_or(config, key, usual) ? 0 : h;
  }
  if (!flag_or(config, "mlp_bias", true)) biases += (m.gated ? 2 : 1) * f + h;
  // Patches, a token for hidden ones, registers, and a scale for each column of a block's result.
  m.other_parameters =
      with_bias(kColours * side * side, h) + (1.0 + registers) * h + m.layers * (2 * h - biases);
  model.assumptions.push_back(patches_line(m.max_positions, 1 + registers));
}

/// DeiT: a token more, which learns from a teacher.
void read_deit(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_image_encoder(config, m, true);
  ++m.max_positions;
  m.other_parameters += m.hidden;
  if (is_class_of(config, "WithTeacher")) m.other_parameters += class_weights(config, m.hidden);
  model.assumptions.push_back(patches_line(m.max_positions, 2));
}

/// BEiT: tables of distances for each layer or all, keys without biases, and results that are
/// scaled column by column.
void read_beit(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_image_encoder(config, m, true);
  m.learned_positions = flag_or(config, "use_absolute_position_embeddings", false);
  const double h = m.hidden;
  const int side = config.at("patch_size").integer(1, kMostWidth);
  const int image = integer_or(config, "image_size", side, kMostWidth, 224);
  const int patches = image / side;
  const double distances = 2.0 * patches - 1;
  // The image's token has three of its own.
  const double table = (distances * distances + 3) * m.heads;
  const std::optional<JsonCursor> scale = config.find("layer_scale_init_value");
  const bool scaled = !scale || (!scale->is_null() && scale->number({-1e30, 1e30}) > 0);
  m.other_parameters += m.layers * ((scaled ? 2 * h : 0) - h);
  if (flag_or(config, "use_mask_token", false)) m.other_parameters += h;
  if (flag_or(config, "use_relative_position_bias", false)) m.other_parameters += m.layers * table;
  if (flag_or(config, "use_shared_relative_position_bias", false)) m.other_parameters += table;
  model.assumptions.push_back(patches_line(m.max_positions, 1));
}

void read_vit(const JsonCursor& config, HuggingFaceModel& model) {
  read_image_encoder(config, model.shape, true);
  model.assumptions.push_back(patches_line(model.shape.max_positions, 1));
}

void read_plain_dino(const JsonCursor& config, HuggingFaceModel& model) {
  read_dino(config, model.shape);
  model.assumptions.push_back(patches_line(model.shape.max_positions, 1));
}

/// What brings a tower's result to a width that it shares with another; of a file that names it.
double shared_width(const JsonCursor& config, double h) {
  if (!is_class_of(config, "WithProjection")) return 0;
  return h * config.at("projection_dim").integer(1, kMostWidth);
}

/// CLIP's image encoder alone.
void read_clip_vision(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_image_encoder(config, m, false);
  m.other_parameters += 2.0 * m.hidden + shared_width(config, m.hidden);
  model.assumptions.push_back(patches_line(m.max_positions, 1));
}

/// CLIP's text encoder alone, which is causal and predicts no words: its table is weights alone.
void read_clip_text(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_widths(config, {}, m);
  m.vocabulary = 1;
  m.tied = m.learned_positions = true;
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, 77);
  const double words = config.at("vocab_size").integer(1, kMostTokens);
  m.other_parameters = (words - 1) * m.hidden + shared_width(config, m.hidden);
  model.assumptions.emplace_back("model: a text encoder, which predicts no words");
}

/// SigLIP's image encoder alone.
void read_siglip_vision(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  read_image_encoder(config, m, false);
  --m.max_positions;  // no token beside the patches
  m.other_parameters += vision_pooling(config, m.hidden, m.ffn);
  model.assumptions.push_back(patches_line(m.max_positions, 0));
}

/// A family whose encoder stands alone, or beside another.
struct EncoderFamily {
  std::string_view type;
  void (*read)(const JsonCursor& config, HuggingFaceModel& model);
};
template <void (*kRead)(const JsonCursor& config, TransformerShape& m)>
void shape_alone(const JsonCursor& config, HuggingFaceModel& model) {
  kRead(config, model.shape);
}
constexpr bool kFirstVersion = true, kLaterVersion = false;
template <bool kVersion>
void deberta_of(const JsonCursor& config, HuggingFaceModel& model) {
  read_deberta(config, kVersion == kFirstVersion ? "deberta" : "deberta-v2", model);
}
constexpr std::array kAlone{
    EncoderFamily{"modernbert", shape_alone<read_modern>},
    EncoderFamily{"esm", shape_alone<read_protein>},
    EncoderFamily{"longformer", read_longformer},
    EncoderFamily{"big_bird", read_big_bird},
    EncoderFamily{"nomic_bert", shape_alone<read_nomic>},
    EncoderFamily{"deberta", deberta_of<kFirstVersion>},
    EncoderFamily{"deberta-v2", deberta_of<kLaterVersion>},
    EncoderFamily{"electra", read_electra},
    EncoderFamily{"albert", shape_alone<read_albert>},
    EncoderFamily{"vit", read_vit},
    EncoderFamily{"vit_msn", read_vit},
    EncoderFamily{"deit", read_deit},
    EncoderFamily{"beit", read_beit},
    EncoderFamily{"swin", read_swin},
    EncoderFamily{"swinv2", read_swin2},
    EncoderFamily{"dinov2", read_plain_dino},
    EncoderFamily{"dinov2_with_registers", read_dino_with_registers},
    EncoderFamily{"dinov3_vit", read_dino3},
    EncoderFamily{"clip", read_clip},
    EncoderFamily{"siglip", read_siglip},
    EncoderFamily{"clip_vision_model", read_clip_vision},
    EncoderFamily{"clip_text_model", read_clip_text},
    EncoderFamily{"siglip_vision_model", read_siglip_vision},
};
/// Those that read_text_encoder() reads.
constexpr std::array<std::string_view, 10> kLikeBert{
    "bert",  "roberta",       "xlm-roberta",    "distilbert",           "camembert",
    "ernie", "megatron-bert", "xlm-roberta-xl", "roberta-prelayernorm", "mpnet",
};

}  // namespace

std::span<const std::string_view> encoder_families() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(kLikeBert.begin(), kLikeBert.end());
    for (const EncoderFamily& family : kAlone) names.push_back(family.type);
    names.insert(names.end(), pair_families().begin(), pair_families().end());
    return names;
  }();
  return kNames;
}

HuggingFaceModel read_encoder(const JsonCursor& config, std::string_view type) {
  HuggingFaceModel model;
  const auto* alone = std::ranges::find(kAlone, type, &EncoderFamily::type);
  if (alone != kAlone.end()) {
    alone->read(config, model);
  } else if (std::ranges::find(kLikeBert, type) != kLikeBert.end()) {
    read_text_encoder(config, type, model.shape);
  } else {
    read_pair(config, type, model);
  }
  return model;
}

}  // namespace lockstep::hugging_face
