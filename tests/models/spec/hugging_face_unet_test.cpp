// Convolutional UNets: the weights and the work that diffusers' code makes of a file, counted here
// block by block, once more.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/layer.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {
namespace {

/// What the closed count below needs of a UNet, and its file.
struct CountedUnet {
  std::string_view preset, text;
  std::vector<int> channels, depths;     ///< layers of attention by resolution; 0: none on the way
  int text_width, middle_depth, beside;  ///< beside: inputs of XL's second embedding
  double parameters;                     ///< of its checkpoint
};
const std::vector<CountedUnet>& counted_unets() {
  static const std::vector<CountedUnet> unets{
      {"sd_1_5",
       R"({"_class_name": "UNet2DConditionModel", "attention_head_dim": 8,
           "block_out_channels": [320, 640, 1280, 1280], "cross_attention_dim": 768,
           "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D",
             "CrossAttnDownBlock2D", "DownBlock2D"], "in_channels": 4, "layers_per_block": 2,
           "mid_block_type": "UNetMidBlock2DCrossAttn", "only_cross_attention": false,
           "out_channels": 4, "sample_size": 64, "time_embedding_type": "positional",
           "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D",
             "CrossAttnUpBlock2D"]})",
       {320, 640, 1280, 1280},
       {1, 1, 1, 0},
       768,
       1,
       0,
       859'520'964.0},
      {"sd_2_1",
       R"({"_class_name": "UNet2DConditionModel", "attention_head_dim": [5, 10, 20, 20],
           "block_out_channels": [320, 640, 1280, 1280], "cross_attention_dim": 1024,
           "down_block_types": ["CrossAttnDownBlock2D", "CrossAttnDownBlock2D",
             "CrossAttnDownBlock2D", "DownBlock2D"], "in_channels": 4, "layers_per_block": 2,
           "out_channels": 4, "sample_size": 96, "use_linear_projection": true,
           "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D",
             "CrossAttnUpBlock2D"]})",
       {320, 640, 1280, 1280},
       {1, 1, 1, 0},
       1024,
       1,
       0,
       865'910'724.0},
      {"sdxl",
       R"({"_class_name": "UNet2DConditionModel", "addition_embed_type": "text_time",
           "addition_time_embed_dim": 256, "attention_head_dim": [5, 10, 20],
           "block_out_channels": [320, 640, 1280], "cross_attention_dim": 2048,
           "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
           "in_channels": 4, "layers_per_block": 2, "num_class_embeds": null, "out_channels": 4,
           "projection_class_embeddings_input_dim": 2816, "sample_size": 128,
           "transformer_layers_per_block": [1, 2, 10],
           "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
           "use_linear_projection": true})",
       {320, 640, 1280},
       {0, 2, 10},
       2048,
       10,
       2816,
       2'567'463'684.0},
  };
  return unets;
}

HuggingFaceModel read_unet_file(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}

/// Weights, and multiply-adds of a forward pass over an image of `tokens` places.
struct UnetCount {
  double weights = 0, work = 0;

  void convolution(double in, double out, double kernel, double places) {
    weights += kernel * kernel * in * out + out;
    work += kernel * kernel * in * out * places;
  }
  void residual(double in, double out, double moment, double places) {
    weights += 2 * in + 2 * out + moment * out + out;
    convolution(in, out, 3, places);
    convolution(out, out, 3, places);
    if (in != out) convolution(in, out, 1, places);
  }
  void transformer(double c, int depth, double text, double places) {
    if (depth == 0) return;
    constexpr double kWords = 77;
    weights += 2 * c;
    convolution(c, c, 1, places);
    convolution(c, c, 1, places);
    // Attention over the image, over the text, and GEGLU; norms and biases.
    weights += depth * (4 * c * c + 2 * c * c + 2 * text * c + 12 * c * c + 6 * c + 2 * c + 9 * c);
    work += depth * (places * 18 * c * c + kWords * 2 * text * c);
    work += depth * places * 2 * c * (places + kWords);
  }
};

UnetCount count_unet(const CountedUnet& u, double tokens) {
  UnetCount sum;
  const double first = u.channels[0], moment = 4 * first;
  const auto linear = [&](double in, double out) { sum.weights += in * out + out; };
  linear(first, moment);
  linear(moment, moment);
  if (u.beside > 0) {
    linear(u.beside, moment);
    linear(moment, moment);
  }
  const std::size_t count = u.channels.size();
  const auto places = [&](std::size_t level) {
    return tokens / static_cast<double>(1U << (2 * level));
  };
  sum.convolution(4, first, 3, tokens);
  std::vector<double> skips{first};
  double here = first;
  for (std::size_t i = 0; i < count; ++i) {
    const double c = u.channels[i];
    for (int j = 0; j < 2; ++j) {
      sum.residual(here, c, moment, places(i));
      sum.transformer(c, u.depths[i], u.text_width, places(i));
      skips.push_back(here = c);
    }
    if (i + 1 == count) break;
    sum.convolution(c, c, 3, places(i + 1));
    skips.push_back(c);
  }
  sum.residual(here, here, moment, places(count - 1));
  sum.transformer(here, u.middle_depth, u.text_width, places(count - 1));
  sum.residual(here, here, moment, places(count - 1));
  for (std::size_t i = count; i-- > 0;) {
    const double c = u.channels[i];
    for (int j = 0; j < 3; ++j) {
      sum.residual(here + skips.back(), c, moment, places(i));
      skips.pop_back();
      sum.transformer(c, u.depths[i], u.text_width, places(i));
      here = c;
    }
    if (i > 0) sum.convolution(c, c, 3, places(i - 1));
  }
  sum.weights += 2 * first;
  sum.convolution(first, 4, 3, tokens);
  return sum;
}

std::string unet_complaint(std::string_view text) {
  try {
    (void)read_unet_file(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}
std::string with_key(std::string_view key) {
  std::string text{counted_unets()[0].text};
  return text.insert(1, std::string(key) + ", ");
}

}  // namespace

TEST_CASE("UNets: weights are those of the checkpoint and of the closed count") {
  for (const CountedUnet& one : counted_unets()) {
    CAPTURE(one.preset);
    const HuggingFaceModel model = read_unet_file(one.text);
    CHECK(total_parameters(model.shape) == one.parameters);
    CHECK(count_unet(one, 4096).weights == one.parameters);
    REQUIRE(model.assumptions.size() == 1);
    CHECK(model.assumptions[0].starts_with("model: a convolutional UNet; batch.tokens are"));
  }
}

TEST_CASE("UNets: FLOP are those of each resolution, of convolutions and of attention") {
  for (const CountedUnet& one : counted_unets()) {
    for (const int tokens : {1024, 4096, 16384}) {
      CAPTURE(one.preset);
      CAPTURE(tokens);
      TrainingJob job;
      job.model = read_unet_file(one.text).shape;
      job.batch = {.sequences = 3, .micro_sequences = 1, .tokens = tokens};
      // A row stands in place of a table of words.
      const double row = static_cast<double>(tokens) * one.channels[0];
      const double closed = 3 * 6 * (count_unet(one, tokens).work + row);
      CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
      CHECK(step_flops(job).causal == step_flops(job).full);
    }
  }
}

TEST_CASE("UNets: presets are what their files are read as") {
  const PresetStore presets;
  for (const CountedUnet& one : counted_unets()) {
    CAPTURE(one.preset);
    const TransformerShape file = read_unet_file(one.text).shape;
    const TransformerShape preset = presets.model(one.preset);
    CHECK(preset.pattern == file.pattern);
    CHECK(preset.kinds == file.kinds);
    CHECK(preset.other_parameters == file.other_parameters);
    CHECK(total_parameters(preset) == one.parameters);
  }
}

TEST_CASE("UNets: what goes across is kept twice, where it comes from and beside what meets it") {
  const TransformerShape m = read_unet_file(counted_unets()[0].text).shape;
  double skipped = 0;
  for (int i = 0; i < m.layers; ++i) {
    const KindShape kind = shape_of(m, m.kind(i));
    if (kind.convolution.skip == 0) continue;
    const Layer layer = declare_layer(m, m.kind(i));
    // The norm's input, both tensors side by side.
    CHECK(layer.saved.front().columns == kind.convolution.in);
    CHECK(layer.input == kind.convolution.in);
    skipped += kind.convolution.skip / static_cast<double>(1U << (2 * kind.halvings));
  }
  // 320 channels four times, once halved; 640 twice and once, 1,280 twice and once, and twice.
  const double whole = 3 * 320 + (320 + 2 * 640) / 4.0 + (640 + 2 * 1280) / 16.0;
  CHECK(skipped == whole + 3 * 1280 / 64.0);
}

TEST_CASE("UNets: files whose layers are not known are refused in one line") {
  CHECK(unet_complaint(with_key(R"("dual_cross_attention": true)"))
            .starts_with("config.json#/dual_cross_attention: found true; allowed: null or false"));
  CHECK(unet_complaint(with_key(R"("class_embed_type": "timestep")"))
            .starts_with("config.json#/class_embed_type: found \"timestep\"; allowed: null or "));
  CHECK(unet_complaint(with_key(R"("num_attention_heads": 7)")) ==
        "config.json#/num_attention_heads: found 7; allowed: heads that divide the channels of "
        "their block, 320");
  std::string other{counted_unets()[0].text};
  other.replace(other.find("\"DownBlock2D\""), 13, "\"AttnDownBlock2D\"");
  CHECK(unet_complaint(other) ==
        "config.json#/down_block_types/3: found \"AttnDownBlock2D\"; allowed: DownBlock2D, "
        "CrossAttnDownBlock2D. Did you mean \"DownBlock2D\"?");
  CHECK(unet_complaint(with_key(R"("transformer_layers_per_block": [1, 2])"))
            .starts_with("config.json#/transformer_layers_per_block: found an array; allowed: 4 "
                         "numbers"));
}

}  // namespace lockstep
