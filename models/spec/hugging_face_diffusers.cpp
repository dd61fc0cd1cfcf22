// Diffusion models, whose files say a class in place of a family: transformers here, UNets in
// hugging_face_unet.cpp. Sources:
// transformer_sd3.py, transformer_flux.py, transformer_flux2.py, transformer_qwenimage.py,
// transformer_hunyuan_video.py, cogvideox_transformer_3d.py, transformer_wan.py,
// pixart_transformer_2d.py, transformer_ltx.py, dit_transformer_2d.py, transformer_chroma.py,
// transformer_cogview4.py and transformer_z_image.py in
// https://github.com/huggingface/diffusers.
#include <algorithm>
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
void read_flux2(const JsonCursor& config, TransformerShape& m);
void read_hunyuan_video(const JsonCursor& config, TransformerShape& m);
void read_cogvideox(const JsonCursor& config, TransformerShape& m);
void read_dit(const JsonCursor& config, TransformerShape& m);
void read_chroma(const JsonCursor& config, TransformerShape& m);
void read_cogview4(const JsonCursor& config, TransformerShape& m);
void read_z_image(const JsonCursor& config, TransformerShape& m);

/// A class of transformers, and what its tokens are.
struct DiffusersClass {
  std::string_view name;
  void (*read)(const JsonCursor& config, TransformerShape& m);
  std::string_view tokens;
  std::string_view width{}, heads{};  ///< keys; empty: heads and the width of each
};
constexpr std::string_view kTogether =
    "an image's patches and the text's words together, and what encodes the text is not part of it";
constexpr std::string_view kVideoTogether =
    "a video's patches and the text's words together, and what encodes the text is not part of it";
constexpr std::array kTransformers{
    DiffusersClass{"SD3Transformer2DModel", read_sd3, kTogether},
    DiffusersClass{"FluxTransformer2DModel", read_flux, kTogether},
    DiffusersClass{"QwenImageTransformer2DModel", read_qwen_image, kTogether},
    DiffusersClass{"WanTransformer3DModel", read_wan,
                   "a video's patches, beside the 512 words of its text and, where a video begins "
                   "with an image, that image's 257 vectors, and what encodes both is not part of "
                   "it"},
    DiffusersClass{"PixArtTransformer2DModel", read_pixart,
                   "an image's patches, beside the 300 words of its text, and what encodes the "
                   "text is not part of it"},
    DiffusersClass{"LTXVideoTransformer3DModel", read_ltx,
                   "a video's patches, beside the 128 words of its text, and what encodes the text "
                   "is not part of it"},
    DiffusersClass{"Flux2Transformer2DModel", read_flux2, kTogether},
    DiffusersClass{"HunyuanVideoTransformer3DModel", read_hunyuan_video, kVideoTogether},
    DiffusersClass{"CogVideoXTransformer3DModel", read_cogvideox, kVideoTogether},
    DiffusersClass{"ChromaTransformer2DModel", read_chroma, kTogether},
    DiffusersClass{"CogView4Transformer2DModel", read_cogview4, kTogether},
    DiffusersClass{"ZImageTransformer2DModel", read_z_image, kTogether, "dim", "n_heads"},
    DiffusersClass{"DiTTransformer2DModel", read_dit, "an image's patches"},
    DiffusersClass{"Transformer2DModel", read_dit, "an image's patches"},
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
void read_diffusion_widths(const JsonCursor& config, const DiffusersClass& one,
                           TransformerShape& m) {
  if (one.width.empty()) {
    m.heads = config.at("num_attention_heads").integer(1, kMostHeads);
    m.head_dim = config.at("attention_head_dim").integer(1, kMostWidth / m.heads);
    m.hidden = m.heads * m.head_dim;
  } else {
    m.hidden = config.at(one.width).integer(1, kMostWidth);
    m.heads = config.at(one.heads).integer(1, m.hidden);
    m.head_dim = m.hidden / m.heads;
  }
  m.kv_heads = m.heads;
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

void set_vectors(TransformerShape& m, const KindShape& kind, int vectors, bool shared = false) {
  MixerNumbers& numbers = m.mixers[static_cast<std::size_t>(kind.mixer)];
  numbers[0] = vectors;
  numbers[1] = shared ? 1 : 0;
}

constexpr int kOfDouble = 6, kOfSingle = 3;  ///< vectors of a stream

/// Which layers have a second attention, over the image alone (Stable Diffusion 3.5 medium).
std::vector<bool> dual_layers(const JsonCursor& config, int layers) {
  std::vector<bool> out(static_cast<std::size_t>(layers));
  const std::optional<JsonCursor> dual = config.find("dual_attention_layers");
  if (!dual || dual->is_null()) return out;
  for (const JsonCursor& layer : dual->elements(kMostLayers)) {
    out[static_cast<std::size_t>(layer.integer(0, layers - 1))] = true;
  }
  return out;
}

/// A second attention is a block of its own before the layer's others: a norm that three more
/// vectors modulate, an attention with products of its own, and a sum.
void read_sd3(const JsonCursor& config, TransformerShape& m) {
  const int layers = config.at("num_layers").integer(2, kMostLayers);
  const KindShape joint = block("j", "joint_attention", m.ffn);
  const KindShape second = block("a", "modulated_attention", 0);
  m.kinds = {joint, block("c", "closing_joint_attention", m.ffn)};
  set_vectors(m, joint, kOfDouble);
  int seconds = 0;
  const std::vector<bool> dual = dual_layers(config, layers);
  for (int i = 0; i < layers; ++i) {
    if (dual[static_cast<std::size_t>(i)]) {
      m.pattern += 'a';
      ++seconds;
    }
    m.pattern += i < layers - 1 ? 'j' : 'c';
  }
  if (seconds > 0) {
    m.kinds.push_back(second);
    set_vectors(m, second, kOfSingle);
  }
  m.layers = layers + seconds;
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const int text = integer_or(config, "caption_projection_dim", 1, kMostWidth, m.hidden);
  m.other_parameters = beside(config, m, patch, text);
  const std::optional<JsonCursor> norm = config.find("qk_norm");
  // Queries and keys of both streams, and of the second attention.
  if (norm && !norm->is_null()) {
    m.other_parameters += (4.0 * layers + 2.0 * seconds) * m.head_dim;
  }
}

/// Layers over two streams, then layers over one, and their norms of queries and keys; `shared`:
/// one product modulates all of a kind.
void set_joined(const JsonCursor& config, bool shared, TransformerShape& m) {
  const int both = config.at("num_layers").integer(1, kMostLayers);
  const int single = config.at("num_single_layers").integer(1, kMostLayers);
  m.layers = both + single;
  m.rotary = true;
  const KindShape joint = block("j", "joint_attention", m.ffn);
  KindShape modulated = block("s", "modulated_attention", m.ffn);
  modulated.parallel = true;
  m.kinds = {joint, modulated};
  set_vectors(m, joint, kOfDouble, shared);
  set_vectors(m, modulated, kOfSingle, shared);
  m.pattern = std::string(static_cast<std::size_t>(both), 'j') +
              std::string(static_cast<std::size_t>(single), 's');
  m.other_parameters += (4.0 * both + 2.0 * single) * m.head_dim;
}

void read_flux(const JsonCursor& config, TransformerShape& m) {
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 1);
  const double outside = beside(config, m, patch, m.hidden);
  set_joined(config, false, m);
  m.other_parameters += outside;
  if (flag_or(config, "guidance_embeds", false)) {
    m.other_parameters += embedder(kTimeColumns, m.hidden);
  }
}

/// Gated MLPs, no biases, and one product for the modulation of all layers of a kind.
void read_flux2(const JsonCursor& config, TransformerShape& m) {
  constexpr int kUsualRatio = 3;
  m.biases = false;
  m.gated = true;
  const std::optional<JsonCursor> ratio = config.find("mlp_ratio");
  const double wider = ratio ? ratio->number({0.01, 64}) : kUsualRatio;
  m.ffn = static_cast<int>(m.hidden * wider);
  const double h = m.hidden, in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 1);
  const double words = config.at("joint_attention_dim").integer(1, kMostWidth);
  const double time = integer_or(config, "timestep_guidance_channels", 1, kMostWidth, 256);
  const double said = flag_or(config, "guidance_embeds", true) ? 2 : 1;
  // Of both streams, of one, and of the last norm.
  constexpr double kVectors = 2 * kOfDouble + kOfSingle + 2;
  const double counted = embedding_parameters(m) + output_parameters(m);
  set_joined(config, true, m);
  m.other_parameters += kVectors * h * h + said * (time * h + h * h) +
                        h * (in + words + patch * patch * out) - counted;
}

/// Chroma: FLUX.1's layers, for all of which a small network makes what modulates them.
void read_chroma(const JsonCursor& config, TransformerShape& m) {
  const double h = m.hidden, in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  const double words = config.at("joint_attention_dim").integer(1, kMostWidth);
  const double channels = integer_or(config, "approximator_num_channels", 1, kMostWidth, 64);
  const double wide = integer_or(config, "approximator_hidden_dim", 1, kMostWidth, 5120);
  const double deep = integer_or(config, "approximator_layers", 1, kMostLayers, 5);
  const double counted = embedding_parameters(m) + output_parameters(m);
  set_joined(config, true, m);
  m.other_parameters += with_bias(channels, wide) + deep * (embedder(wide, wide) + wide) +
                        with_bias(wide, h) + with_bias(in, h) + with_bias(words, h) +
                        with_bias(h, out) - counted;
}

/// FLUX.1's layers over a video's patches and a text, whose words two layers of their own refine
/// first: next to no work beside a video's, so that they are weights alone.
void read_hunyuan_video(const JsonCursor& config, TransformerShape& m) {
  const std::optional<JsonCursor> ratio = config.find("mlp_ratio");
  if (ratio) m.ffn = static_cast<int>(m.hidden * ratio->number({0.01, 64}));
  const double h = m.hidden, patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const double volume = patch * patch * integer_or(config, "patch_size_t", 1, kMostSide, 1);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  const double words = config.at("text_embed_dim").integer(1, kMostWidth);
  const double pooled = config.at("pooled_projection_dim").integer(1, kMostWidth);
  const double refiners = integer_or(config, "num_refiner_layers", 0, kMostLayers, 2);
  const double moments = flag_or(config, "guidance_embeds", false) ? 2 : 1;
  const double refiner =
      4 * with_bias(h, h) + with_bias(h, m.ffn) + with_bias(m.ffn, h) + 4 * h + with_bias(h, 2 * h);
  const double counted = embedding_parameters(m) + output_parameters(m);
  set_joined(config, false, m);
  m.other_parameters += with_bias(in * volume, h) + with_bias(h, out * volume) +
                        with_bias(h, 2 * h) + moments * embedder(kTimeColumns, h) +
                        embedder(pooled, h) + embedder(kTimeColumns, h) + embedder(words, h) +
                        with_bias(words, h) + refiners * refiner - counted;
}

/// One stream of a video's patches and a text's words; each of them has vectors of its own for
/// every norm, out of a narrow one that says the moment.
void read_cogvideox(const JsonCursor& config, TransformerShape& m) {
  const std::optional<JsonCursor> weighed = config.find("norm_elementwise_affine");
  if (weighed && !weighed->boolean()) weighed->fail("true: norms without weights are not known");
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  m.rotary = flag_or(config, "use_rotary_positional_embeddings", false);
  m.kinds = {block("x", "attention", m.ffn)};
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'x');
  const double h = m.hidden, moment = integer_or(config, "time_embed_dim", 1, kMostWidth, 512);
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const double volume = patch * patch * integer_or(config, "patch_size_t", 1, kMostSide, 1);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, 16);
  const double words = integer_or(config, "text_embed_dim", 1, kMostWidth, 4096);
  const double offset = integer_or(config, "ofs_embed_dim", 0, kMostWidth, 0);
  const double biases = flag_or(config, "attention_bias", true) ? 0 : 3 * h;
  // The newer class's patches of several images have one in any case.
  const bool images = config.find("patch_size_t") && !config.at("patch_size_t").is_null();
  const double patch_bias = images || flag_or(config, "patch_bias", true) ? h : 0;
  const double layer = 2 * with_bias(moment, kOfDouble * h) + 4.0 * m.head_dim - biases;
  const double counted = embedding_parameters(m) + output_parameters(m);
  m.other_parameters = m.layers * layer + in * volume * h + patch_bias + with_bias(words, h) +
                       embedder(h, moment) + 4 * h + with_bias(moment, 2 * h) +
                       with_bias(h, out * volume) - counted;
  if (offset > 0) m.other_parameters += embedder(offset, offset);
}

/// CogView4: one stream of an image's patches and a text's words, each with six vectors of its own
/// out of a narrow one that says the moment and the image's size. Norms have no weights.
void read_cogview4(const JsonCursor& config, TransformerShape& m) {
  constexpr double kSizes = 6;
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  m.rotary = true;
  m.kinds = {block("x", "attention", m.ffn)};
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'x');
  const double h = m.hidden, moment = integer_or(config, "time_embed_dim", 1, kMostWidth, 512);
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, 16);
  const double words = integer_or(config, "text_embed_dim", 1, kMostWidth, 4096);
  const double size = integer_or(config, "condition_dim", 1, kMostWidth, 256);
  const double counted = embedding_parameters(m) + output_parameters(m);
  m.other_parameters = m.layers * (with_bias(moment, 2 * kOfDouble * h) - 4 * h) +
                       with_bias(in * patch * patch, h) + with_bias(words, h) +
                       embedder(h, moment) + embedder(kSizes * size, moment) +
                       with_bias(moment, 2 * h) + with_bias(h, out * patch * patch) - counted;
}

/// Z-Image: gated layers of one stream without biases, with norms of their results. Before them an
/// image's patches and a text's words have layers of their own, counted as one set over all tokens
/// and the other's weights beside it; those of the words are not modulated.
void read_z_image(const JsonCursor& config, TransformerShape& m) {
  constexpr double kVectors = 4, kMiddle = 1024;
  const int refiners = integer_or(config, "n_refiner_layers", 0, kMostLayers, 2);
  const JsonCursor groups = config.at("n_kv_heads");
  if (groups.integer(1, m.heads) != m.heads) groups.fail(std::to_string(m.heads) + " (n_heads)");
  const double layers = config.at("n_layers").integer(1, kMostLayers);
  m.layers = static_cast<int>(layers) + refiners;
  m.biases = false;
  m.gated = m.rotary = true;
  m.ffn = static_cast<int>(m.hidden / 3.0 * 8);
  m.kinds = {block("x", "attention", m.ffn)};
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 'x');
  const double h = m.hidden, f = m.ffn, moment = std::min(kTimeColumns, h);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double words = config.at("cap_feat_dim").integer(1, kMostWidth);
  double patches = 0;
  const std::vector<JsonCursor> sides = config.at("all_patch_size").elements(kMostLayers),
                                times = config.at("all_f_patch_size").elements(kMostLayers);
  for (std::size_t i = 0; i < std::min(sides.size(), times.size()); ++i) {
    const double side = sides[i].integer(1, kMostSide);
    const double volume = in * side * side * times[i].integer(1, kMostSide);
    patches += with_bias(volume, h) + with_bias(h, volume) + with_bias(moment, h);
  }
  const double norms = 2 * h + (flag_or(config, "qk_norm", true) ? 2.0 * m.head_dim : 0);
  const double counted = embedding_parameters(m) + output_parameters(m);
  m.other_parameters = m.layers * (norms + with_bias(moment, kVectors * h)) +
                       refiners * (4 * h * h + 3 * h * f + 2 * h + norms) + patches +
                       with_bias(kTimeColumns, kMiddle) + with_bias(kMiddle, moment) + words +
                       with_bias(words, h) + 2 * h - counted;
}

/// DiT: an image's class in place of a text. Diffusers gives each layer a table of classes and
/// what says the moment.
void read_dit(const JsonCursor& config, TransformerShape& m) {
  constexpr std::array<std::string_view, 1> kNorms{"ada_norm_zero"};
  (void)config.at("norm_type").choice(kNorms);
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  const KindShape modulated = block("s", "modulated_attention", m.ffn);
  m.kinds = {modulated};
  set_vectors(m, modulated, kOfDouble);
  m.pattern = std::string(static_cast<std::size_t>(m.layers), 's');
  const double h = m.hidden, patch = config.at("patch_size").integer(1, kMostSide);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  // A class more stands for none.
  const double classes = config.at("num_embeds_ada_norm").integer(1, kMostTokens) + 1.0;
  const double biases = flag_or(config, "attention_bias", false) ? 0 : 3 * h;
  const double counted = embedding_parameters(m) + output_parameters(m);
  m.other_parameters = m.layers * (embedder(kTimeColumns, h) + classes * h - biases) +
                       with_bias(in * patch * patch, h) + with_bias(h, 2 * h) +
                       with_bias(h, out * patch * patch) - counted;
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

/// Weights of an image that a video begins with: two products and two norms make vectors of what
/// encodes it; each layer makes keys and values of those by products of its own and attends to
/// them beside the words, which costs as much as that many words more.
double first_image(const JsonCursor& config, TransformerShape& m) {
  const int width = integer_or(config, "image_dim", 0, kMostWidth, 0);
  const int added = integer_or(config, "added_kv_proj_dim", 0, kMostWidth, 0);
  if (width == 0 && added == 0) return 0;
  if (width == 0 || added != m.hidden) {
    config.at(width == 0 ? "image_dim" : "added_kv_proj_dim")
        .fail(width == 0 ? "a width, as added_kv_proj_dim has one"
                         : std::to_string(m.hidden) + ", the width of its layers");
  }
  constexpr int kVectors = 257;  // of CLIP's image encoder
  const int places = integer_or(config, "pos_embed_seq_len", 0, kMostTokens / 2, 0);
  m.kinds.front().source_tokens += places > 0 ? places : kVectors;
  const double h = m.hidden, in = width;
  return with_bias(in, in) + with_bias(in, h) + 2 * in + 2 * h + places * in +
         m.layers * (2 * with_bias(h, h) + h);
}

void read_wan(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWords = 512;
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
  const double image = first_image(config, m);
  // Norms of queries and keys in both attentions over all heads; of the others only the one before
  // the text has weights.
  m.other_parameters =
      image +
      beside_cross(m, in * patch, out * patch, config.at("text_dim").integer(1, kMostWidth)) +
      m.layers * (4 * h - (flag_or(config, "cross_attn_norm", true) ? 4 * h : 6 * h) + 6 * h);
}

void read_pixart(const JsonCursor& config, TransformerShape& m) {
  constexpr int kWords = 300, kLarge = 128, kOfSize = 3;
  m.layers = config.at("num_layers").integer(1, kMostLayers);
  set_cross_layers(kWords, m);
  m.kinds.front().source_width = integer_or(config, "cross_attention_dim", 1, kMostWidth, m.hidden);
  const double patch = integer_or(config, "patch_size", 1, kMostSide, 2);
  const double in = config.at("in_channels").integer(1, kMostWidth);
  const double out = integer_or(config, "out_channels", 1, kMostWidth, static_cast<int>(in));
  m.other_parameters = beside_cross(m, in * patch * patch, out * patch * patch,
                                    config.at("caption_channels").integer(1, kMostWidth));
  // The size of an image and its aspect say a third of a vector each (two of the former).
  const bool large = integer_or(config, "sample_size", 1, kMostSide, kLarge) == kLarge;
  if (flag_or(config, "use_additional_conditions", large)) {
    const int columns = m.hidden / kOfSize;
    m.other_parameters += 2 * embedder(kTimeColumns, columns);
  }
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
  read_diffusion_widths(config, kTransformers[which], model.shape);
  kTransformers[which].read(config, model.shape);
  model.assumptions.emplace_back("model: a diffusion transformer; batch.tokens are " +
                                 std::string(kTransformers[which].tokens));
  if (model.shape.pattern.find('a') != std::string::npos) {
    model.assumptions.emplace_back(
        "model: a second attention over the image alone (dual_attention_layers) is a block of its "
        "own, and taken for one over the text's words too");
  }
  return model;
}

}  // namespace lockstep::hugging_face
