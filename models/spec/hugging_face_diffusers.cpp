// Diffusion models, whose files say a class in place of a family: transformers here, UNets in
// hugging_face_unet.cpp. Sources:
// transformer_sd3.py and transformer_flux.py in https://github.com/huggingface/diffusers.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr double kTimeColumns = 256;  ///< of a moment's sine waves
constexpr int kMostSide = 1 << 10;

constexpr std::array<std::string_view, 4> kClasses{"SD3Transformer2DModel",
                                                   "FluxTransformer2DModel", "UNet2DConditionModel",
                                                   "FlaxUNet2DConditionModel"};
constexpr std::size_t kUnets = 2;  ///< the first of them

/// Two products with biases, from `in` columns to h and to h again.
double embedder(double in, double h) { return with_bias(in, h) + with_bias(h, h); }

KindShape block(std::string_view letter, std::string_view mixer, int ffn) {
  KindShape kind;
  kind.letter = letter;
  kind.bidirectional = true;
  kind.ffn = ffn;
  for (const MixerKind* one : mixer_kinds()) {
    if (one->name == mixer) kind.mixer = one->mixer;
  }
  return kind;
}

/// Widths, and a row in place of a table of words, whose weights and norm no file has.
void read_widths(const JsonCursor& config, TransformerShape& m) {
  m.heads = m.kv_heads = config.at("num_attention_heads").integer(1, kMostHeads);
  m.head_dim = config.at("attention_head_dim").integer(1, kMostWidth / m.heads);
  m.hidden = m.heads * m.head_dim;
  constexpr int kWider = 4;
  m.ffn = kWider * m.hidden;
  m.vocabulary = 1;
  m.tied = true;
  m.biases = true;
}

/// What is beside the layers: patches and words in, time and text for modulation, patches out.
double beside(const JsonCursor& config, const TransformerShape& m, double patch, double text) {
  const double h = m.hidden, in = config.at("in_channels").integer(1, kMostWidth);
  const std::optional<JsonCursor> written = config.find("out_channels");
  const double out = written && !written->is_null() ? written->integer(1, kMostWidth) : in;
  const double words = config.at("joint_attention_dim").integer(1, kMostWidth);
  const double pooled = config.at("pooled_projection_dim").integer(1, kMostWidth);
  const double counted = embedding_parameters(m) + output_parameters(m);
  return with_bias(in * patch * patch, h) + with_bias(words, text) + embedder(kTimeColumns, h) +
         embedder(pooled, h) + with_bias(h, 2 * h) + with_bias(h, out * patch * patch) - counted;
}

void set_vectors(TransformerShape& m, const KindShape& kind, int vectors) {
  m.mixers[static_cast<std::size_t>(kind.mixer)][0] = vectors;
}

constexpr int kOfDouble = 6, kOfSingle = 3;  ///< vectors of a stream

void read_sd3(const JsonCursor& config, TransformerShape& m) {
  m.layers = config.at("num_layers").integer(2, kMostLayers);
  const std::optional<JsonCursor> dual = config.find("dual_attention_layers");
  if (dual && dual->is_array() && !dual->elements(kMostLayers).empty()) {
    dual->fail("none: layers with a second attention over the image (SD 3.5 medium) are not known");
  }
  const KindShape joint = block("j", "joint_attention", m.ffn);
  m.kinds = {joint, block("c", "closing_joint_attention", m.ffn)};
  set_vectors(m, joint, kOfDouble);
  m.pattern = std::string(static_cast<std::size_t>(m.layers - 1), 'j') + "c";
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const int text = integer_or(config, "caption_projection_dim", 1, kMostWidth, m.hidden);
  m.other_parameters = beside(config, m, patch, text);
  const std::optional<JsonCursor> norm = config.find("qk_norm");
  // Queries and keys of both streams.
  if (norm && !norm->is_null()) m.other_parameters += 4.0 * m.layers * m.head_dim;
}

void read_flux(const JsonCursor& config, TransformerShape& m) {
  const int both = config.at("num_layers").integer(1, kMostLayers);
  const int single = config.at("num_single_layers").integer(1, kMostLayers);
  m.layers = both + single;
  m.rotary = true;
  const KindShape joint = block("j", "joint_attention", m.ffn);
  KindShape modulated = block("s", "modulated_attention", m.ffn);
  modulated.parallel = true;
  m.kinds = {joint, modulated};
  set_vectors(m, joint, kOfDouble);
  set_vectors(m, modulated, kOfSingle);
  m.pattern = std::string(static_cast<std::size_t>(both), 'j') +
              std::string(static_cast<std::size_t>(single), 's');
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 1);
  m.other_parameters =
      beside(config, m, patch, m.hidden) + (4.0 * both + 2.0 * single) * m.head_dim;
  if (flag_or(config, "guidance_embeds", false)) {
    m.other_parameters += embedder(kTimeColumns, m.hidden);
  }
}

}  // namespace

HuggingFaceModel read_diffusers(const JsonCursor& config) {
  HuggingFaceModel model;
  const std::size_t which = config.at("_class_name").choice(kClasses);
  if (which >= kUnets) {
    read_unet(config, model.shape);
    model.assumptions.emplace_back(
        "model: a convolutional UNet; batch.tokens are the places of a latent image (64 x 64: "
        "4096), its text has 77 words, and what encodes both is not part of it");
    return model;
  }
  read_widths(config, model.shape);
  if (which == 0) {
    read_sd3(config, model.shape);
  } else {
    read_flux(config, model.shape);
  }
  model.assumptions.emplace_back(
      "model: a diffusion transformer; batch.tokens are an image's patches and the text's words "
      "together, and what encodes the text is not part of it");
  return model;
}

}  // namespace lockstep::hugging_face
