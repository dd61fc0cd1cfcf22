// Towers that turn images into tokens. Sources: modeling_qwen3_vl.py and modeling_gemma4.py in
// https://github.com/huggingface/transformers, and modeling_kimi_k25.py beside the weights of
// moonshotai/Kimi-K2.5 on https://huggingface.co.
#include <optional>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr int kMostPatch = 4096;

/// A layer: four square products and an MLP of two, with biases, and two norms.
double block(double h, double ffn) {
  return 4 * with_bias(h, h) + with_bias(h, ffn) + with_bias(ffn, h) + 4 * h;
}

/// Its layers, unless they cannot be said: heads that do not divide them, patches that nobody
/// knows.
VisionTower tower_of(double layers, double hidden, int heads, double ffn, double patches) {
  const int width = static_cast<int>(hidden);
  if (patches < 1 || width % heads != 0) return {};
  return {.layers = static_cast<int>(layers),
          .hidden = width,
          .heads = heads,
          .ffn = static_cast<int>(ffn),
          .patches = static_cast<int>(patches)};
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

}  // namespace

std::optional<VisionPart> vision_part(const JsonCursor& vision, int hidden) {
  if (vision.find("vt_hidden_size")) return kimi(vision, hidden);
  const std::optional<JsonCursor> type = vision.find("model_type");
  const std::string name = type && type->is_string() ? type->string() : std::string();
  if (name.starts_with("gemma4")) return gemma(vision, hidden);
  if (name.starts_with("qwen3")) return qwen(vision, hidden);
  return std::nullopt;
}

}  // namespace lockstep::hugging_face
