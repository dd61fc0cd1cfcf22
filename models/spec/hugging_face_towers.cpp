// Towers of one plain make, a stack of layers over patches, and what brings their result to a
// decoder. Sources: modeling_*.py of each family in https://github.com/huggingface/transformers,
// modeling_intern_vit.py beside the weights of OpenGVLab/InternVL3-8B, modeling_kimi_vl.py beside
// those of moonshotai/Kimi-VL-A3B-Instruct and modeling_deepseek_vl_v2.py of
// github:deepseek-ai/DeepSeek-VL2.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr int kMostImageSide = 1 << 14;

/// What the code of a tower has where a file leaves it out; 0: a file has to say it.
struct TowerSizes {
  int hidden = 0, ffn = 0, layers = 0, heads = 16, patch = 0, image = 384;
};
constexpr TowerSizes kSmall{768, 3072, 12, 12, 16, 224};

/// What the code of a tower fixes.
struct TowerMake {
  std::string_view type;   ///< what "model_type" of its part of the file begins with
  bool gated = false;      ///< three MLP matrices instead of two
  bool biases = true;      ///< of its products
  bool patch_bias = true;  ///< of the product that makes vectors of patches
  bool root_mean = false;  ///< norms without a bias
  bool own_token = false;  ///< one beside the patches
  bool places = true;      ///< a table of positions, a row each
  bool scales = false;     ///< what a block gives is scaled, column by column
  int norms = 1;           ///< beside those of layers
  bool pools = false;      ///< attention that pools patches, unless "vision_use_head" says not
  TowerSizes sizes{};
};
constexpr std::array kMakes{
    TowerMake{.type = "siglip2_vision", .sizes = kSmall},
    TowerMake{.type = "siglip_vision", .pools = true, .sizes = kSmall},
    TowerMake{.type = "idefics2", .sizes = {768, 3072, 12, 12, 32, 224}},
    TowerMake{.type = "idefics3", .sizes = {1152, 3072, 12, 16, 32, 224}},
    TowerMake{.type = "smolvlm", .sizes = {1152, 3072, 12, 16, 32, 224}},
    TowerMake{.type = "clip_vision",
              .patch_bias = false,
              .own_token = true,
              .norms = 2,
              .sizes = {768, 3072, 12, 12, 32, 224}},
    TowerMake{.type = "pixtral",
              .gated = true,
              .biases = false,
              .patch_bias = false,
              .root_mean = true,
              .places = false,
              .sizes = {1024, 4096, 24, 16, 16, 1024}},
    TowerMake{.type = "llama4_vision", .patch_bias = false, .own_token = true, .norms = 2},
    TowerMake{.type = "intern", .own_token = true, .scales = true, .norms = 0},
    TowerMake{.type = "moonvit"},
    TowerMake{.type = "vision"},  // DeepSeek-VL2's
};

/// The number under the first of its names that is there, a list's first.
std::optional<int> number_under(const JsonCursor& config,
                                std::initializer_list<std::string_view> keys, int most) {
  for (const std::string_view key : keys) {
    const std::optional<JsonCursor> value = config.find(key);
    if (!value || value->is_null()) continue;
    if (!value->is_array()) return value->integer(1, most);
    const std::vector<JsonCursor> each = value->elements(kMostLayers);
    if (each.empty()) value->fail("a number, or a list of them");
    return each.front().integer(1, most);
  }
  return std::nullopt;
}

/// `otherwise`, where it is not 0 and none of them is there.
int number_at(const JsonCursor& config, std::initializer_list<std::string_view> keys, int most,
              int otherwise = 0) {
  const std::optional<int> found = number_under(config, keys, most);
  if (!found && otherwise > 0) return otherwise;
  return found ? *found : config.at(*keys.begin()).integer(1, most);
}

/// The patches of an image as large as the file says.
int patches_of(const JsonCursor& vision, int patch, int image) {
  if (const std::optional<int> rows = number_under(vision, {"num_patches"}, kMostTokens)) {
    return *rows;
  }
  if (const std::optional<int> rows =
          number_under(vision, {"init_pos_emb_height"}, kMostImageSide)) {
    return *rows * number_at(vision, {"init_pos_emb_width"}, kMostImageSide);
  }
  const int side = number_at(vision, {"image_size"}, kMostImageSide, image);
  return (side / patch) * (side / patch);
}

int ffn_of(const JsonCursor& vision, int hidden, int otherwise) {
  const std::optional<JsonCursor> ratio = vision.find("mlp_ratio");
  if (!ratio || ratio->is_null())
    return number_at(vision, {"intermediate_size"}, kMostWidth, otherwise);
  constexpr Interval kRatio{0.01, 64};
  return static_cast<int>(ratio->number(kRatio) * hidden);
}

double layer_weights(const JsonCursor& vision, const TowerMake& make, double h, double ffn) {
  const bool intern = make.type == "intern";
  const bool root_mean = make.root_mean || (intern && vision.find("norm_type") &&
                                            vision.at("norm_type").string() == "rms_norm");
  // InternViT's switches are about queries, keys and values alone.
  const bool heads_biased =
      make.biases && flag_or(vision, "qkv_bias", flag_or(vision, "attention_bias", true));
  const bool heads_normed =
      intern && flag_or(vision, "qk_normalization", flag_or(vision, "use_qk_norm", false));
  const double gates = make.gated ? 2 : 1;
  return 4 * h * h + (heads_biased ? 3 * h : 0) + (make.biases ? h : 0) + (gates + 1) * h * ffn +
         (make.biases ? gates * ffn + h : 0) + 2 * (root_mean ? h : 2 * h) +
         (heads_normed ? 2 * h : 0) + (make.scales ? 2 * h : 0);
}

/// Its tower's result, made smaller, through two products (Llama 4).
double shuffled(const JsonCursor& vision) {
  const double in = number_at(vision, {"projector_input_dim"}, kMostWidth);
  return in * (number_at(vision, {"intermediate_size"}, kMostWidth) +
               number_at(vision, {"projector_output_dim"}, kMostWidth));
}

double two_products(double in, double between, double out) {
  return with_bias(in, between) + with_bias(between, out);
}

/// Neighbouring patches that one token is made of, along a side.
double joined(const JsonCursor& file, std::string_view key, int otherwise) {
  return integer_or(file, key, 1, kMostImageSide, otherwise);
}

/// A product, an activation that gates one half by the other, and a product (Aya Vision, Command A
/// Vision).
double gated_products(const JsonCursor& file, double h, double text) {
  const double side = joined(file, "downsample_factor", 2), in = side * side * h;
  const double between = number_at(file, {"alignment_intermediate_size"}, kMostWidth);
  return with_bias(in, between) + with_bias(between / 2, text);
}

/// Queries of its own that attend to patches (MiniCPM-V).
double resampler(const JsonCursor& file, double h, double text) {
  constexpr double kNorms = 3;
  const double queries = number_at(file, {"query_num"}, kMostTokens);
  return queries * text + h * text + 4 * with_bias(text, text) + kNorms * 2 * text + text * text;
}

std::string text_under(const JsonCursor& config, std::string_view key) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && value->is_string() ? value->string() : std::string();
}

}  // namespace

double vision_pooling(const JsonCursor& vision, double h, double ffn) {
  if (!flag_or(vision, "vision_use_head", true)) return 0;
  return h + 4 * with_bias(h, h) + 2 * h + with_bias(h, ffn) + with_bias(ffn, h);
}

std::optional<double> projector_weights(const JsonCursor& file, const JsonCursor& vision, double h,
                                        double text) {
  const std::string type = text_under(file, "model_type");
  const auto is = [&](std::string_view family) { return type.starts_with(family); };
  if (is("gemma3")) return h * text + h;
  if (is("mistral3")) {
    const double side = joined(file, "spatial_merge_size", 2);
    const double bias = flag_or(file, "multimodal_projector_bias", false) ? 2 * text : 0;
    return h + side * side * h * h + h * text + text * text + bias;
  }
  if (is("llava")) return two_products(h, text, text) + (type == "llava" ? 0 : text);
  if (is("paligemma")) return with_bias(h, number_at(vision, {"projection_dim"}, kMostWidth));
  if (is("internvl")) return 2 * 4 * h + two_products(4 * h, text, text);
  if (is("idefics3") || is("smolvlm")) {
    const double side = joined(file, "scale_factor", 2);
    return side * side * h * text;
  }
  if (is("aya_vision")) {
    const double side = joined(file, "downsample_factor", 2);
    return 2 * side * side * h + gated_products(file, h, text);
  }
  if (is("cohere2_vision")) return gated_products(file, h, text);
  if (is("lfm2_vl")) {
    const double side = joined(file, "downsample_factor", 2), in = side * side * h;
    return 2 * in + two_products(in, number_at(file, {"projector_hidden_size"}, kMostWidth), text);
  }
  if (is("minicpm")) return resampler(file, h, text);
  if (is("kimi_vl")) return 2 * h + two_products(4 * h, 4 * h, text);
  if (is("deepseek_vl")) return two_products(4 * h, text, text) + 2 * text;
  if (is("llama4")) {
    return shuffled(vision) + number_at(vision, {"vision_output_dim"}, kMostWidth) * text;
  }
  return std::nullopt;
}

std::optional<VisionPart> plain_tower(const JsonCursor& file, const JsonCursor& vision, int text) {
  const std::string type = text_under(vision, "model_type");
  const auto make = std::ranges::find_if(
      kMakes, [&](const TowerMake& one) { return type.starts_with(one.type); });
  if (make == kMakes.end()) return std::nullopt;
  // Two towers, each under a name of its own (DeepSeek-OCR).
  if (const auto several = vision.find("width"); several && several->is_object()) {
    return std::nullopt;
  }
  const TowerSizes& sizes = make->sizes;
  const int hidden = number_at(vision, {"hidden_size", "width"}, kMostWidth, sizes.hidden);
  const int layers = number_at(vision, {"num_hidden_layers", "layers"}, kMostLayers, sizes.layers);
  const int patch = number_at(vision, {"patch_size"}, kMostImageSide, sizes.patch);
  const int ffn = ffn_of(vision, hidden, sizes.ffn);
  const int patches = patches_of(vision, patch, sizes.image);
  const double h = hidden, norm = make->root_mean ? h : 2 * h;
  const double rows = make->places ? patches + (make->own_token ? 1 : 0) : 0;
  double weights = layers * layer_weights(vision, *make, h, ffn) + rows * h +
                   (make->own_token ? h : 0) + kColours * patch * patch * h +
                   (make->patch_bias ? h : 0) + make->norms * norm;
  const bool pools = make->pools && !text_under(file, "model_type").starts_with("minicpm");
  if (pools) weights += vision_pooling(vision, h, ffn);
  const std::optional<double> projector = projector_weights(file, vision, h, text);
  const int heads =
      number_at(vision, {"num_attention_heads", "num_heads"}, kMostHeads, sizes.heads);
  VisionTower tower = tower_of(layers, h, heads, ffn, patches);
  tower.gated = make->gated;
  return VisionPart{.parameters = weights + projector.value_or(0),
                    .tower = tower,
                    .whole = projector.has_value()};
}

}  // namespace lockstep::hugging_face
