// Encoders of images that go from resolution to resolution (Liu et al. 2021, arXiv:2103.14030;
// 2021, arXiv:2111.09883). Sources: modeling_swin.py and modeling_swinv2.py in
// https://github.com/huggingface/transformers.
#include "models/spec/hugging_face_stages.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr std::size_t kMostStages = 8;
constexpr int kMostImageEdge = 1 << 14;

/// What a stage of one resolution has.
struct Stage {
  int layers = 0, heads = 0, columns = 0;
  int side = 0;    ///< of an image, in patches,
  int window = 0;  ///< and of the windows that attention stays in
};

std::vector<Stage> read_stages(const JsonCursor& config, int side) {
  constexpr int kUsualWindow = 7;
  const int columns = config.at("embed_dim").integer(1, kMostWidth >> kMostStages);
  const int window = integer_or(config, "window_size", 1, kMostImageEdge, kUsualWindow);
  const JsonCursor depths = config.at("depths"), heads = config.at("num_heads");
  const std::vector<JsonCursor> each = depths.elements(kMostStages);
  const std::vector<JsonCursor> of_heads = heads.elements(kMostStages);
  if (each.empty() || each.size() != of_heads.size()) {
    heads.fail("as many numbers as depths has, one for each resolution");
  }
  std::vector<Stage> out;
  for (std::size_t i = 0; i < each.size(); ++i) {
    Stage stage{.layers = each[i].integer(1, kMostLayers),
                .heads = of_heads[i].integer(1, kMostHeads),
                .columns = columns << i,
                .side = side >> i};
    if (stage.columns % stage.heads != 0) {
      of_heads[i].fail("a divisor of " + std::to_string(stage.columns) + " columns");
    }
    if (stage.side << i != side) {
      config.at("image_size")
          .fail("an image whose patches can be halved " + std::to_string(each.size() - 1) +
                " times");
    }
    stage.window = std::min(window, stage.side);
    out.push_back(stage);
  }
  return out;
}

/// Weights of a layer beside those that every encoder's layer has: a table of distances, or of the
/// second version a small network in its place, a scale for each head, and no biases of keys.
double window_weights(const Stage& stage, bool second) {
  constexpr double kNetwork = 512, kPlaces = 2;
  const double heads = stage.heads, reach = 2.0 * stage.window - 1;
  if (!second) return reach * reach * heads;
  return with_bias(kPlaces, kNetwork) + kNetwork * heads + heads - stage.columns;
}

/// Four neighbours side by side, a norm, and a product to twice the columns: a convolution over two
/// by two patches without biases, whose norm has weights of its own for each neighbour. Of the
/// second version the norm is behind the product.
void add_merge(const Stage& before, bool second, TransformerShape& m) {
  constexpr int kTwo = 2;
  KindShape merge;
  merge.letter = std::string(1, static_cast<char>('A' + m.kinds.size()));
  merge.mixer = mixer_called("convolution");
  merge.halvings = m.kinds.back().halvings + 1;
  merge.convolution = {.in = before.columns,
                       .out = kTwo * before.columns,
                       .kernel = kTwo,
                       .halves = true,
                       .norm = true};
  m.pattern += merge.letter;
  ++m.layers;
  m.kinds.push_back(std::move(merge));
  const double columns = before.columns;
  // Of what a convolution counts, less its biases, and a norm over other columns than its input's.
  m.other_parameters += (second ? 4 : 8) * columns - 2 * columns - 2 * columns;
}

void add_stage(const Stage& stage, double ratio, TransformerShape& m) {
  KindShape kind;
  kind.letter = std::string(1, static_cast<char>('A' + m.kinds.size()));
  kind.hidden = stage.columns;
  kind.heads = kind.kv_heads = stage.heads;
  kind.head_dim = stage.columns / stage.heads;
  kind.ffn = static_cast<int>(ratio * stage.columns);
  kind.window = stage.window * stage.window;
  kind.chunked = kind.bidirectional = true;
  kind.halvings = m.kinds.empty() ? 0 : m.kinds.back().halvings;
  m.pattern += std::string(static_cast<std::size_t>(stage.layers), kind.letter.front());
  m.layers += stage.layers;
  m.kinds.push_back(std::move(kind));
}

void read_stages_of(const JsonCursor& config, bool second, HuggingFaceModel& model) {
  constexpr Interval kRatio{0, 64, true};
  TransformerShape& m = model.shape;
  if (!flag_or(config, "qkv_bias", true)) {
    config.at("qkv_bias").fail("true: no published model is without them");
  }
  const int patch = config.at("patch_size").integer(1, kMostImageEdge);
  const int image = integer_or(config, "image_size", patch, kMostImageEdge, 224);
  const int side = image / patch;
  const std::vector<Stage> stages = read_stages(config, side);
  const std::optional<JsonCursor> written = config.find("mlp_ratio");
  const double ratio = written && !written->is_null() ? written->number(kRatio) : 4;
  const Stage &first = stages.front(), &last = stages.back();
  if (ratio * first.columns < 1) written->fail("a ratio that leaves a column");
  m.hidden = first.columns;
  m.heads = m.kv_heads = first.heads;
  m.head_dim = first.columns / first.heads;
  m.ffn = static_cast<int>(ratio * first.columns);
  m.vocabulary = 1;
  m.tied = m.biases = m.bidirectional = true;
  m.max_positions = side * side;
  const double columns = first.columns;
  // Patches and their norm, no row in place of words, and a last norm of the last stage's columns.
  m.other_parameters = with_bias(kColours * patch * patch, columns) + 2 * columns - columns +
                       2.0 * last.columns - 2 * columns;
  if (flag_or(config, "use_absolute_embeddings", false)) {
    m.other_parameters += m.max_positions * columns;
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) add_merge(stages[i - 1], second, m);
    add_stage(stages[i], ratio, m);
    m.other_parameters += stages[i].layers * window_weights(stages[i], second);
  }
  const std::optional<JsonCursor> labels = config.find("id2label");
  if (labels && labels->is_object()) {
    m.other_parameters += with_bias(last.columns, static_cast<double>(labels->keys().size()));
  }
  model.assumptions.push_back(
      "model: an encoder of images; batch.tokens are the patches of one, of "
      "the file's images " +
      std::to_string(m.max_positions));
}

}  // namespace

void read_swin(const JsonCursor& config, HuggingFaceModel& model) {
  read_stages_of(config, false, model);
}
void read_swin2(const JsonCursor& config, HuggingFaceModel& model) {
  read_stages_of(config, true, model);
}

}  // namespace lockstep::hugging_face
