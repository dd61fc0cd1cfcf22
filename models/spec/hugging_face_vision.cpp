// Towers that turn images into tokens. Sources: modeling_qwen2_vl.py, modeling_qwen2_5_vl.py,
// modeling_qwen3_vl.py, modeling_glm4v.py and modeling_gemma4.py in
// https://github.com/huggingface/transformers, and modeling_kimi_k25.py beside the weights of
// moonshotai/Kimi-K2.5 on https://huggingface.co. Plain ones: hugging_face_towers.cpp.
#include <optional>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr int kMostPatch = 4096;
/// A layer: four square products and an MLP of two, with biases, and two norms.
double block(double h, double ffn) {
  return 4 * with_bias(h, h) + with_bias(h, ffn) + with_bias(ffn, h) + 4 * h;
}

/// Four neighbouring patches become one token; `deepstack_visual_indexes` names layers whose
/// patches are brought to the decoder too, by a merger of their own.
VisionPart qwen(const JsonCursor& vision, int hidden) {
  const double h = vision.at("hidden_size").integer(1, kMostWidth);
  const double ffn = vision.at("intermediate_size").integer(1, kMostWidth);
  const double depth = vision.at("depth").integer(1, kMostLayers);
  const double side = integer_or(vision, "spatial_merge_size", 1, kMostPatch, 2);
  const double patch = integer_or(vision, "patch_size", 1, kMostPatch, 16);
  const double frames = integer_or(vision, "temporal_patch_size", 1, kMostPatch, 2);
  const double colours = integer_or(vision, "in_channels", 1, 16, 3);
  const double places = integer_or(vision, "num_position_embeddings", 0, kMostTokens, 0);
  const double out = integer_or(vision, "out_hidden_size", 1, kMostWidth, hidden);
  const double merged = side * side * h;
  const auto merger = [&](double norm) {
    return 2 * norm + with_bias(merged, merged) + with_bias(merged, out);
  };
  double deep = 0;
  if (const std::optional<JsonCursor> indexes = vision.find("deepstack_visual_indexes")) {
    deep = static_cast<double>(indexes->elements(kMostLayers).size());
  }
  return {depth * block(h, ffn) + places * h + with_bias(colours * frames * patch * patch, h) +
              merger(h) + deep * merger(merged),
          tower_of(depth, h, integer_or(vision, "num_heads", 1, kMostHeads, 16), ffn, places)};
}

/// Kimi's: biases or not, heads as wide as they are or wider.
VisionPart kimi(const JsonCursor& vision, int hidden) {
  const double h = vision.at("vt_hidden_size").integer(1, kMostWidth);
  const double ffn = vision.at("vt_intermediate_size").integer(1, kMostWidth);
  const double depth = vision.at("vt_num_hidden_layers").integer(1, kMostLayers);
  const double heads = integer_or(vision, "qkv_hidden_size", 1, kMostWidth, static_cast<int>(h));
  const double patch = integer_or(vision, "patch_size", 1, kMostPatch, 14);
  const double places =
      static_cast<double>(integer_or(vision, "init_pos_emb_height", 1, kMostPatch, 64)) *
      integer_or(vision, "init_pos_emb_width", 1, kMostPatch, 64);
  constexpr double kMerged = 4;
  const double layer = 4 * h * heads + 2 * h * ffn + 4 * h;
  const double projector =
      2 * h + with_bias(kMerged * h, kMerged * h) + with_bias(kMerged * h, hidden);
  return {depth * layer + places * h + with_bias(3 * patch * patch, h) + projector,
          tower_of(depth, h, integer_or(vision, "vt_num_attention_heads", 1, kMostHeads, 16), ffn,
                   places)};
}

/// Gated MLPs, and a table of places for each direction.
VisionPart gemma(const JsonCursor& vision, int hidden) {
  const double h = vision.at("hidden_size").integer(1, kMostWidth);
  const double ffn = vision.at("intermediate_size").integer(1, kMostWidth);
  const double depth = vision.at("num_hidden_layers").integer(1, kMostLayers);
  const double patch = vision.at("patch_size").integer(1, kMostPatch);
  const double places = integer_or(vision, "position_embedding_size", 0, kMostTokens, 0);
  // Patches are pooled to the tokens of an image.
  const int pooled = integer_or(vision, "pooling_kernel_size", 1, kMostPatch, 3);
  const double patches =
      integer_or(vision, "default_output_length", 1, kMostTokens / 64, 280) * pooled * pooled;
  VisionTower tower = tower_of(
      depth, h, integer_or(vision, "num_attention_heads", 1, kMostHeads, 12), ffn, patches);
  tower.gated = true;
  return {depth * (4 * h * h + 3 * h * ffn + 4 * h) + 2 * places * h + 3 * patch * patch * h +
              h * hidden,
          tower};
}

/// What makes vectors of `frames` neighbouring images' patches.
double patches_in(const JsonCursor& vision, double h) {
  const double patch = integer_or(vision, "patch_size", 1, kMostPatch, 14);
  const double frames = integer_or(vision, "temporal_patch_size", 1, kMostPatch, 2);
  return kColours * frames * patch * patch * h;
}

/// Qwen2-VL's and Qwen2.5-VL's: rotary positions, and no size of an image. The newer one has gated
/// MLPs and norms without biases; "hidden_size" of the older one is that of the decoder.
VisionPart older_qwen(const JsonCursor& vision, int hidden) {
  const bool newer = !vision.find("embed_dim");
  const double h = vision.at(newer ? "hidden_size" : "embed_dim").integer(1, kMostWidth);
  const double ffn = newer ? vision.at("intermediate_size").integer(1, kMostWidth)
                           : integer_or(vision, "mlp_ratio", 1, 64, 4) * h;
  const double depth = vision.at("depth").integer(1, kMostLayers);
  const double side = integer_or(vision, "spatial_merge_size", 1, kMostPatch, 2);
  const double merged = side * side * h, norm = newer ? h : 2 * h;
  const double mlp = newer ? 2 * with_bias(h, ffn) : with_bias(h, ffn);
  const double layer = 4 * with_bias(h, h) + mlp + with_bias(ffn, h) + 2 * norm;
  return {.parameters = depth * layer + patches_in(vision, h) + norm + with_bias(merged, merged) +
                        with_bias(merged, hidden)};
}

/// GLM-4.1V's to GLM-4.6V's: MLPs as wide as the decoder, and a merger of its own width.
VisionPart glm(const JsonCursor& vision, int hidden) {
  const double h = vision.at("hidden_size").integer(1, kMostWidth);
  const double depth = vision.at("depth").integer(1, kMostLayers);
  const int out = integer_or(vision, "out_hidden_size", 1, kMostWidth, hidden);
  const double merger = vision.at("intermediate_size").integer(1, kMostWidth);
  const double side = integer_or(vision, "spatial_merge_size", 1, kMostPatch, 2);
  const int patch = integer_or(vision, "patch_size", 1, kMostPatch, 14);
  const int image = integer_or(vision, "image_size", patch, kMostPatch * patch, 336);
  const int side_patches = image / patch;
  const double places = static_cast<double>(side_patches) * side_patches;
  const double biases = flag_or(vision, "attention_bias", false) ? 3 * h : 0;
  const double layer = 4 * h * h + biases + 3 * h * out + 2 * h;
  const double wide = out;
  VisionTower tower =
      tower_of(depth, h, integer_or(vision, "num_heads", 1, kMostHeads, 12), wide, places);
  tower.gated = true;
  return {.parameters = depth * layer + patches_in(vision, h) + h + places * h + 2 * h +
                        with_bias(side * side * h, wide) + wide * wide + 2 * wide +
                        3 * wide * merger,
          .tower = tower};
}

/// Llama 3.2 Vision's: tiles of an image, with places and tables for each aspect, plain layers and
/// gated ones behind them, and a product to the decoder, whose own layers attend to what it gives.
VisionPart tiles(const JsonCursor& vision, int hidden) {
  const double h = vision.at("hidden_size").integer(1, kMostWidth);
  const double ffn = vision.at("intermediate_size").integer(1, kMostWidth);
  const double layers = vision.at("num_hidden_layers").integer(1, kMostLayers);
  const double gated = integer_or(vision, "num_global_layers", 0, kMostLayers, 8);
  const int patch = integer_or(vision, "patch_size", 1, kMostPatch, 14);
  const int image = integer_or(vision, "image_size", patch, kMostPatch * patch, 448);
  const int patches = (image / patch) * (image / patch) + 1;
  const int most = integer_or(vision, "max_num_tiles", 1, kMostPatch, 4);
  const double aspects = integer_or(vision, "max_aspect_ratio_id", 1, kMostPatch, 8) + 1;
  const double out = integer_or(vision, "vision_output_dim", 1, kMostWidth, 7680);
  const double layer = 4 * h * h + with_bias(h, ffn) + with_bias(ffn, h) + 4 * h;
  constexpr double kGates = 2;
  // Two tables of tiles and one of their places, each with a gate; the tower's own token.
  const double places =
      h * patches + aspects * most * h * patches + 1 + 2 * (aspects * most * h + 1);
  return {.parameters = (layers + gated) * layer + gated * kGates + places + h +
                        kColours * patch * patch * h + 4 * h + with_bias(out, hidden),
          .seen = most * patches};
}

}  // namespace

VisionTower tower_of(double layers, double hidden, int heads, double ffn, double patches) {
  const int width = static_cast<int>(hidden);
  if (patches < 1 || width % heads != 0) return {};
  return {.layers = static_cast<int>(layers),
          .hidden = width,
          .heads = heads,
          .ffn = static_cast<int>(ffn),
          .patches = static_cast<int>(patches)};
}

std::optional<VisionPart> vision_part(const JsonCursor& file, const JsonCursor& vision,
                                      int hidden) {
  if (vision.find("vt_hidden_size")) return kimi(vision, hidden);
  const auto type_of = [](const JsonCursor& config) {
    const std::optional<JsonCursor> type = config.find("model_type");
    return type && type->is_string() ? type->string() : std::string();
  };
  // Files of Qwen2-VL leave out what their tower is.
  const std::string inner = type_of(vision), name = inner.empty() ? type_of(file) : inner;
  if (name.starts_with("gemma4")) return gemma(vision, hidden);
  if (name.starts_with("qwen3")) return qwen(vision, hidden);
  if (name.starts_with("qwen2")) return older_qwen(vision, hidden);
  if (name.starts_with("glm4v")) return glm(vision, hidden);
  if (name.starts_with("mllama")) return tiles(vision, hidden);
  return plain_tower(file, vision, hidden);
}

}  // namespace lockstep::hugging_face
