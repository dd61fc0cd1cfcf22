// Encoders, alone and with a decoder behind them. Sources: configuration_*.py and modeling_*.py of
// each family in https://github.com/huggingface/transformers.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

/// How much there is beside a text encoder's layers: what predicts masked words, and for BERT what
/// tells a pair of sentences from another.
double text_extras(const JsonCursor& config, std::string_view type, double h) {
  const double words = config.at("vocab_size").integer(1, kMostTokens);
  const double masked = with_bias(h, h) + 2 * h + words;
  if (type == "distilbert") return masked;
  const double types = integer_or(config, "type_vocab_size", 0, kMostTokens, 2) * h;
  return masked + types + (type == "bert" ? with_bias(h, h) + with_bias(h, 2) : 0);
}

/// The keys of an encoder's widths.
struct EncoderKeys {
  std::string_view layers = "num_hidden_layers", hidden = "hidden_size",
                   heads = "num_attention_heads", ffn = "intermediate_size";
};

void read_widths(const JsonCursor& config, const EncoderKeys& keys, TransformerShape& m) {
  m.layers = config.at(keys.layers).integer(1, kMostLayers);
  m.hidden = config.at(keys.hidden).integer(1, kMostWidth);
  m.heads = m.kv_heads = config.at(keys.heads).integer(1, kMostHeads);
  m.head_dim = m.hidden / m.heads;
  if (m.head_dim < 1) config.at(keys.heads).fail("at most " + std::to_string(m.hidden));
  m.ffn = config.at(keys.ffn).integer(1, kMostWidth);
  m.biases = true;
}

/// Words in, words out; the norm behind the embedding is counted as the one before the output.
void read_text_encoder(const JsonCursor& config, std::string_view type, TransformerShape& m) {
  read_widths(config,
              type == "distilbert" ? EncoderKeys{"n_layers", "dim", "n_heads", "hidden_dim"}
                                   : EncoderKeys{},
              m);
  m.bidirectional = true;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.learned_positions = true;
  m.max_positions = integer_or(config, "max_position_embeddings", 1, kMostTokens, 512);
  m.other_parameters = text_extras(config, type, m.hidden);
}

/// An encoder of patches, which has a token of its own beside them. Its classes and what makes
/// vectors of patches are weights that compute next to nothing; there is no table of words but a
/// row, which is that token.
void read_image_encoder(const JsonCursor& config, TransformerShape& m, bool patch_bias) {
  constexpr int kMostPixels = 1 << 14;
  read_widths(config, {}, m);
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
  const std::optional<JsonCursor> labels = config.find("id2label");
  if (patch_bias && labels && labels->is_object()) {
    m.other_parameters += with_bias(h, static_cast<double>(labels->keys().size()));
  }
}

std::string patches_line(const TransformerShape& m) {
  return "model: an encoder of images; batch.tokens are the patches of one and a token beside "
         "them, "
         "of the file's images " +
         std::to_string(m.max_positions);
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
  model.assumptions.push_back(patches_line(m));
  KindShape image = tower_kind("i", m), word = tower_kind("w", text);
  image.bidirectional = true;
  word.tokens = text.max_positions;
  m.bidirectional = false;  // of one of them
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'i') +
              std::string(static_cast<std::size_t>(text.layers), 'w');
  m.kinds = {std::move(image), std::move(word)};
  m.layers += text.layers;
  model.assumptions.push_back("model: its text encoder reads " +
                              std::to_string(text.max_positions) + " words beside each image");
}

/// An encoder's layers and a decoder's, each of which attends to the encoder's result too.
struct Stacks {
  int encoder = 0, decoder = 0, encoder_ffn = 0, decoder_ffn = 0;
};
void set_stacks(const Stacks& stacks, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  m.layers = stacks.encoder + stacks.decoder;
  m.ffn = std::max(stacks.encoder_ffn, stacks.decoder_ffn);
  KindShape encoder, decoder;
  encoder.letter = "e";
  encoder.bidirectional = true;
  encoder.of_source = true;
  encoder.ffn = stacks.encoder_ffn;
  decoder.letter = "d";
  decoder.cross = true;
  decoder.ffn = stacks.decoder_ffn;
  m.kinds = {encoder, decoder};
  m.pattern = std::string(static_cast<std::size_t>(stacks.encoder), 'e') +
              std::string(static_cast<std::size_t>(stacks.decoder), 'd');
  model.assumptions.emplace_back(
      "model: an encoder and a decoder; batch.tokens are the decoder's, batch.source_tokens the "
      "encoder's");
}

void read_t5(const JsonCursor& config, std::string_view type, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  m.hidden = config.at("d_model").integer(1, kMostWidth);
  m.heads = m.kv_heads = config.at("num_heads").integer(1, kMostHeads);
  m.head_dim = config.at("d_kv").integer(1, kMostWidth);
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.tied = flag_or(config, "tie_word_embeddings", type == "t5");
  const std::optional<JsonCursor> activation = config.find("feed_forward_proj");
  m.gated = type == "umt5" || type == "mt5";
  if (activation && !activation->is_null()) m.gated = activation->string().starts_with("gated");
  const int ffn = config.at("d_ff").integer(1, kMostWidth);
  const int layers = config.at("num_layers").integer(1, kMostLayers);
  const int decoders = integer_or(config, "num_decoder_layers", 1, kMostLayers, layers);
  // A table of distances for each stack, of umt5 for each layer, and the encoder's last norm.
  const double buckets = integer_or(config, "relative_attention_num_buckets", 1, kMostTokens, 32);
  const double tables = type == "umt5" ? layers + decoders : 2;
  m.other_parameters = tables * buckets * m.heads + m.hidden;
  set_stacks({layers, decoders, ffn, ffn}, model);
}

void read_bart(const JsonCursor& config, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  m.hidden = config.at("d_model").integer(1, kMostWidth);
  const JsonCursor heads = config.at("encoder_attention_heads");
  m.heads = m.kv_heads = heads.integer(1, m.hidden);
  const int others = config.at("decoder_attention_heads").integer(1, m.hidden);
  if (others != m.heads) heads.fail(std::to_string(others) + " (decoder_attention_heads)");
  m.head_dim = m.hidden / m.heads;
  m.vocabulary = config.at("vocab_size").integer(1, kMostTokens);
  m.biases = true;
  m.tied = flag_or(config, "tie_word_embeddings", true);
  m.learned_positions = true;
  // A table for each stack, with two rows more (BartLearnedPositionalEmbedding).
  m.max_positions = 2 * (config.at("max_position_embeddings").integer(1, kMostTokens / 4) + 2);
  m.other_parameters = 2.0 * m.hidden;
  set_stacks({.encoder = config.at("encoder_layers").integer(1, kMostLayers),
              .decoder = config.at("decoder_layers").integer(1, kMostLayers),
              .encoder_ffn = config.at("encoder_ffn_dim").integer(1, kMostWidth),
              .decoder_ffn = config.at("decoder_ffn_dim").integer(1, kMostWidth)},
             model);
}

constexpr std::array<std::string_view, 9> kEncoders{"bert", "roberta", "distilbert", "vit", "clip",
                                                    "t5",   "mt5",     "umt5",       "bart"};

}  // namespace

std::span<const std::string_view> encoder_families() { return kEncoders; }

HuggingFaceModel read_encoder(const JsonCursor& config, std::string_view type) {
  HuggingFaceModel model;
  if (type == "clip") {
    read_clip(config, model);
  } else if (type == "vit") {
    read_image_encoder(config, model.shape, true);
    model.assumptions.push_back(patches_line(model.shape));
  } else if (type == "bart") {
    read_bart(config, model);
  } else if (type.ends_with("t5")) {
    read_t5(config, type, model);
  } else {
    read_text_encoder(config, type, model.shape);
  }
  return model;
}

}  // namespace lockstep::hugging_face
