// Diffusion models, whose files say a class in place of a family: transformers here, UNets in
// hugging_face_unet.cpp. Sources:
// transformer_sd3.py, transformer_flux.py, transformer_qwenimage.py, transformer_wan.py,
// pixart_transformer_2d.py and transformer_ltx.py in https://github.com/huggingface/diffusers.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr double kTimeColumns = 256;  ///< of a moment's sine waves
constexpr int kMostSide = 1 << 10;

void read_sd3(const JsonCursor& config, TransformerShape& m);
void read_flux(const JsonCursor& config, TransformerShape& m);
void read_qwen_image(const JsonCursor& config, TransformerShape& m);
void read_wan(const JsonCursor& config, TransformerShape& m);
void read_pixart(const JsonCursor& config, TransformerShape& m);
void read_ltx(const JsonCursor& config, TransformerShape& m);

/// A class of transformers, and what its tokens are.
struct DiffusersClass {
  std::string_view name;
  void (*read)(const JsonCursor& config, TransformerShape& m);
  std::string_view tokens;
};
constexpr std::string_view kTogether =
    "an image's patches and the text's words together, and what encodes the text is not part of it";
constexpr std::array kTransformers{
    DiffusersClass{"SD3Transformer2DModel", read_sd3, kTogether},
    DiffusersClass{"FluxTransformer2DModel", read_flux, kTogether},
    DiffusersClass{"QwenImageTransformer2DModel", read_qwen_image, kTogether},
    DiffusersClass{"WanTransformer3DModel", read_wan,
                   "a video's patches, beside the 512 words of its text, and what encodes the text "
                   "is not part of it"},
    DiffusersClass{"PixArtTransformer2DModel", read_pixart,
                   "an image's patches, beside the 300 words of its text, and what encodes the "
                   "text is not part of it"},
    DiffusersClass{"LTXVideoTransformer3DModel", read_ltx,
                   "a video's patches, beside the 128 words of its text, and what encodes the text "
                   "is not part of it"},
};
constexpr std::array<std::string_view, 2> kUnetClasses{"UNet2DConditionModel",
                                                       "FlaxUNet2DConditionModel"};

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

/// Two streams to the end, the text's too; nothing beside words and moment modulates.
void read_qwen_image(const JsonCursor& config, TransformerShape& m) {
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  m.rotary = true;
  const KindShape joint = block("j", "joint_attention", m.ffn);
  m.kinds = {joint};
  set_vectors(m, joint, kOfDouble);
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'j');
  const double h = m.hidden, patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  const double words = config.at("joint_attention_dim").integer(1, kMostWidth);
  const double counted = embedding_parameters(m) + output_parameters(m);
  m.other_parameters = with_bias(in, h) + words + with_bias(words, h) + embedder(kTimeColumns, h) +
                       with_bias(h, 2 * h) + with_bias(h, out * patch * patch) +
                       4.0 * m.layers * m.head_dim - counted;
}

/// Layers that attend to patches, then to a text of `words` words as wide as they are. Its norms
/// have no weights; what says the moment scales and shifts them by a table of six rows a layer.
void set_cross_layers(int words, TransformerShape& m) {
  KindShape kind;
  kind.letter = "x";
  kind.bidirectional = kind.cross = true;
  kind.source_tokens = words;
  kind.ffn = m.ffn;
  m.kinds = {kind};
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'x');
}

/// Patches in and out, their last norm's table, words and the moment, and the latter's six vectors.
double beside_cross(const TransformerShape& m, double patch, double out, double text) {
  const double h = m.hidden, counted = embedding_parameters(m) + output_parameters(m);
  return with_bias(patch, h) + with_bias(h, out) + 2 * h + embedder(text, h) +
         embedder(kTimeColumns, h) + with_bias(h, kOfDouble * h) - counted;
}

void read_wan(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWords = 512;
  for (const std::string_view key : {"image_dim", "added_kv_proj_dim"}) {
    const std::optional<JsonCursor> image = config.find(key);
    if (image && !image->is_null()) {
      image->fail("null: attention over an image that a video begins with is not known");
    }
  }
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  m.ffn = config.at("ffn_dim").integer(1, kMostWidth);
  m.rotary = true;
  set_cross_layers(kWords, m);
  double patch = 1;
  for (const JsonCursor& side : config.at("patch_size").elements(3)) {
    patch *= side.integer(1, kMostSide);
  }
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  const double h = m.hidden;
  // Norms of queries and keys in both attentions over all heads; of the others only the one before
  // the text has weights.
  m.other_parameters =
      beside_cross(m, in * patch, out * patch, config.at("text_dim").integer(1, kMostWidth)) +
      m.layers * (4 * h - (flag_or(config, "cross_attn_norm", true) ? 4 * h : 6 * h) + 6 * h);
}

void read_pixart(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWords = 300;
  if (const std::optional<JsonCursor> sizes = config.find("use_additional_conditions")) {
    if (!sizes->is_null() && sizes->boolean()) {
      sizes->fail("false: sizes and aspects that modulate (PixArt-alpha 1024) are not known");
    }
  }
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  set_cross_layers(kWords, m);
  m.kinds.front().source_width = integer_or(config, "cross_attention_dim", 1, kMostWidth, m.hidden);
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  m.other_parameters = beside_cross(m, in * patch * patch, out * patch * patch,
                                    config.at("caption_channels").integer(1, kMostWidth));
}

void read_ltx(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWords = 128;
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  m.rotary = true;
  set_cross_layers(kWords, m);
  m.kinds.front().source_width = integer_or(config, "cross_attention_dim", 1, kMostWidth, m.hidden);
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 1) *
                       static_cast<double>(integer_or(config, "patch_size_t", 1, kMostSide, 1));
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  const double text = config.at("caption_channels").integer(1, kMostWidth);
  // Norms of queries and keys in both attentions over all heads.
  m.other_parameters = beside_cross(m, in * patch, out * patch, text) + 4.0 * m.layers * m.hidden;
}

}  // namespace

HuggingFaceModel read_diffusers(const JsonCursor& config) {
  HuggingFaceModel model;
  std::vector<std::string_view> names;
  for (const DiffusersClass& one : kTransformers) names.push_back(one.name);
  names.insert(names.end(), kUnetClasses.begin(), kUnetClasses.end());
  const std::size_t which = config.at("_class_name").choice(names);
  if (which >= kTransformers.size()) {
    read_unet(config, model.shape);
    model.assumptions.emplace_back(
        "model: a convolutional UNet; batch.tokens are the places of a latent image (64 x 64: "
        "4096), its text has 77 words, and what encodes both is not part of it");
    return model;
  }
  read_widths(config, model.shape);
  kTransformers[which].read(config, model.shape);
  model.assumptions.emplace_back("model: a diffusion transformer; batch.tokens are " +
                                 std::string(kTransformers[which].tokens));
  return model;
}

}  // namespace lockstep::hugging_face
