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
                   heads = "num_attention_heads";
  std::string_view ffn = "intermediate_size";  ///< empty: four times the width
};

void read_widths(const JsonCursor& config, const EncoderKeys& keys, TransformerShape& m) {
  m.layers = config.at(keys.layers).integer(1, kMostLayers);
  m.hidden = config.at(keys.hidden).integer(1, kMostWidth);
  m.heads = m.kv_heads = config.at(keys.heads).integer(1, kMostHeads);
  m.head_dim = m.hidden / m.heads;
  if (m.head_dim < 1) config.at(keys.heads).fail("at most " + std::to_string(m.hidden));
  constexpr int kTimes = 4;
  m.ffn = keys.ffn.empty() ? kTimes * m.hidden : config.at(keys.ffn).integer(1, kMostWidth);
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
  const std::optional<JsonCursor> labels = config.find("id2label");
  if (patch_bias && labels && labels->is_object()) {
    m.other_parameters += with_bias(h, static_cast<double>(labels->keys().size()));
  }
}

std::string patches_line(const TransformerShape& m, bool own_token = true) {
  return std::string("model: an encoder of images; batch.tokens are the patches of one") +
         (own_token ? " and a token beside them" : "") + ", of the file's images " +
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

/// A text encoder's layers beside those of the image encoder that `model` is.
void add_words(const TransformerShape& text, bool bidirectional, HuggingFaceModel& model) {
  TransformerShape& m = model.shape;
  model.assumptions.push_back(patches_line(m, !bidirectional));
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

constexpr std::array<std::string_view, 9> kAlone{
    "bert", "roberta", "xlm-roberta", "distilbert", "modernbert", "vit", "dinov2", "clip", "siglip",
};

}  // namespace

std::span<const std::string_view> encoder_families() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(kAlone.begin(), kAlone.end());
    names.insert(names.end(), pair_families().begin(), pair_families().end());
    return names;
  }();
  return kNames;
}

HuggingFaceModel read_encoder(const JsonCursor& config, std::string_view type) {
  HuggingFaceModel model;
  if (std::ranges::find(pair_families(), type) != pair_families().end()) {
    read_pair(config, type, model);
  } else if (type == "clip") {
    read_clip(config, model);
  } else if (type == "vit") {
    read_image_encoder(config, model.shape, true);
    model.assumptions.push_back(patches_line(model.shape));
  } else if (type == "siglip") {
    read_siglip(config, model);
  } else if (type == "dinov2") {
    read_dino(config, model.shape);
    model.assumptions.push_back(patches_line(model.shape));
  } else if (type == "modernbert") {
    read_modern(config, model.shape);
  } else {
    read_text_encoder(config, type, model.shape);
  }
  return model;
}

}  // namespace lockstep::hugging_face
