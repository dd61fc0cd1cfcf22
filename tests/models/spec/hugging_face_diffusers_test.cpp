// Diffusion transformers: the weights that diffusers' code makes, and blocks that count them.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/layer.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_transformer(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}
std::string diffusers_complaint(std::string_view text) {
  try {
    (void)read_transformer(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

constexpr std::string_view kSd3 =
    R"({"_class_name": "SD3Transformer2DModel", "attention_head_dim": 64,
        "caption_projection_dim": 1536, "in_channels": 16, "joint_attention_dim": 4096,
        "num_attention_heads": 24, "num_layers": 24, "out_channels": 16, "patch_size": 2,
        "pooled_projection_dim": 2048, "pos_embed_max_size": 192, "sample_size": 128})";
constexpr std::string_view kFlux =
    R"({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 128,
        "guidance_embeds": true, "in_channels": 64, "joint_attention_dim": 4096,
        "num_attention_heads": 24, "num_layers": 19, "num_single_layers": 38, "patch_size": 1,
        "pooled_projection_dim": 768})";

}  // namespace

TEST_CASE("read_hugging_face: SD3 medium and FLUX.1 dev have the weights that their classes hold") {
  CHECK(total_parameters(read_transformer(kSd3).shape) == 2'028'328'000.0);
  CHECK(total_parameters(read_transformer(kFlux).shape) == 11'901'408'320.0);
}

TEST_CASE("joint attention: a token meets one stream's weights, and a layer holds both") {
  const TransformerShape m = read_transformer(kFlux).shape;
  const double h = m.hidden;
  const LayerKind both = m.kind(0), single = m.kind(19);
  CHECK(layer_matrix_parameters(m, both) == 12 * h * h);
  CHECK(layer_matrix_parameters(m, single) == 12 * h * h);
  CHECK(single.parallel);
  // Two streams of attention and MLP, six vectors each, and all biases.
  CHECK(layer_parameters(m, both) == 36 * h * h + 30 * h);
  CHECK(layer_parameters(m, single) == 15 * h * h + 11 * h);
  const TransformerShape sd3 = read_transformer(kSd3).shape;
  const double w = sd3.hidden;
  CHECK(layer_parameters(sd3, sd3.kind(22)) == 36 * w * w + 30 * w);
  CHECK(layer_parameters(sd3, sd3.kind(23)) == 23 * w * w + 20 * w);
}

TEST_CASE("joint attention: FLOP of a step are 6 for each weight met and the whole square") {
  TrainingJob job;
  job.model = read_transformer(kSd3).shape;
  job.batch = {.sequences = 4, .micro_sequences = 1, .tokens = 4096 + 333};
  const double h = job.model.hidden, tokens = 4096 + 333;
  // A row stands in place of a table of words.
  const double closed = 4 * tokens * (6 * (24 * 12 * h * h + h) + 12 * 24 * h * tokens);
  CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
  CHECK(step_flops(job).causal == step_flops(job).full);
}

TEST_CASE("read_hugging_face: classes and layers of diffusers that are not known are refused") {
  CHECK(diffusers_complaint(R"({"_class_name": "UNet2DModel"})") ==
        "config.json#/_class_name: found \"UNet2DModel\"; allowed: "
        "SD3Transformer2DModel, FluxTransformer2DModel, UNet2DConditionModel, "
        "FlaxUNet2DConditionModel. Did you mean \"UNet2DConditionModel\"?");
  std::string dual{kSd3};
  dual.replace(dual.find("\"in_channels\""), 13,
               "\"dual_attention_layers\": [0, 1], \"in_channels\"");
  CHECK(diffusers_complaint(dual).starts_with(
      "config.json#/dual_attention_layers: found an array; allowed: "
      "none: layers with a second attention"));
}

}  // namespace lockstep
