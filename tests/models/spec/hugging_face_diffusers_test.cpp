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

/// The keys that matter of a published file, and the weights of its checkpoint (safetensors index
/// on https://huggingface.co).
struct CountedDiffusion {
  std::string_view name, text;
  double parameters;
};
constexpr std::array kDiffusion{
    CountedDiffusion{"Qwen-Image",
                     R"({"_class_name": "QwenImageTransformer2DModel", "attention_head_dim": 128,
        "num_attention_heads": 24, "num_layers": 60, "in_channels": 64, "out_channels": 16,
        "patch_size": 2, "joint_attention_dim": 3584, "pooled_projection_dim": 768,
        "guidance_embeds": false, "axes_dims_rope": [16, 56, 56]})",
                     20'430'401'088.0},
    CountedDiffusion{"Wan2.1-T2V-1.3B",
                     R"({"_class_name": "WanTransformer3DModel", "attention_head_dim": 128,
        "num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960, "in_channels": 16,
        "out_channels": 16, "patch_size": [1, 2, 2], "text_dim": 4096, "freq_dim": 256,
        "cross_attn_norm": true, "qk_norm": "rms_norm_across_heads", "added_kv_proj_dim":
        null, "image_dim": null})",
                     1'418'996'800.0},
    CountedDiffusion{"Wan2.1-T2V-14B",
                     R"({"_class_name": "WanTransformer3DModel", "attention_head_dim": 128,
        "num_attention_heads": 40, "num_layers": 40, "ffn_dim": 13824, "in_channels": 16,
        "out_channels": 16, "patch_size": [1, 2, 2], "text_dim": 4096, "freq_dim": 256,
        "cross_attn_norm": true, "qk_norm": "rms_norm_across_heads", "added_kv_proj_dim":
        null, "image_dim": null})",
                     14'288'491'584.0},
    CountedDiffusion{"PixArt-Sigma-XL-2-1024-MS",
                     R"({"_class_name": "PixArtTransformer2DModel", "attention_head_dim": 72,
        "num_attention_heads": 16, "num_layers": 28, "in_channels": 4, "out_channels": 8,
        "patch_size": 2, "caption_channels": 4096, "cross_attention_dim": 1152, "sample_size":
        128, "use_additional_conditions": false})",
                     610'856'096.0},
    CountedDiffusion{"LTX-Video",
                     R"({"_class_name": "LTXVideoTransformer3DModel", "attention_head_dim": 64,
        "num_attention_heads": 32, "num_layers": 28, "in_channels": 128, "out_channels": 128,
        "patch_size": 1, "patch_size_t": 1, "cross_attention_dim": 2048, "caption_channels":
        4096, "qk_norm": "rms_norm_across_heads", "norm_elementwise_affine": false,
        "attention_bias": true, "activation_fn": "gelu-approximate"})",
                     1'923'385'472.0},
    CountedDiffusion{"PixArt-XL-2-1024-MS",
                     R"({"_class_name": "PixArtTransformer2DModel", "attention_head_dim": 72,
        "num_attention_heads": 16, "num_layers": 28, "in_channels": 4, "out_channels": 8,
        "patch_size": 2, "caption_channels": 4096, "cross_attention_dim": 1152, "sample_size":
        128, "use_additional_conditions": null})",
                     611'349'152.0},
    CountedDiffusion{"Wan2.1-I2V-14B-480P",
                     R"({"_class_name": "WanTransformer3DModel", "attention_head_dim": 128,
        "num_attention_heads": 40, "num_layers": 40, "ffn_dim": 13824, "in_channels": 36,
        "out_channels": 16, "patch_size": [1, 2, 2], "text_dim": 4096, "freq_dim": 256,
        "cross_attn_norm": true, "qk_norm": "rms_norm_across_heads", "added_kv_proj_dim": 5120,
        "image_dim": 1280})",
                     16'394'878'784.0},
    CountedDiffusion{"stable-diffusion-3.5-medium",
                     R"({"_class_name": "SD3Transformer2DModel", "attention_head_dim": 64,
        "caption_projection_dim": 1536, "dual_attention_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
        10, 11, 12], "in_channels": 16, "joint_attention_dim": 4096, "num_attention_heads": 24,
        "num_layers": 24, "out_channels": 16, "patch_size": 2, "pooled_projection_dim": 2048,
        "pos_embed_max_size": 384, "qk_norm": "rms_norm", "sample_size": 128})",
                     2'243'171'520.0},
    CountedDiffusion{"FLUX.2-dev",
                     R"({"_class_name": "Flux2Transformer2DModel", "attention_head_dim": 128,
        "axes_dims_rope": [32, 32, 32, 32], "in_channels": 128, "joint_attention_dim": 15360,
        "mlp_ratio": 3.0, "num_attention_heads": 48, "num_layers": 8, "num_single_layers": 48,
        "out_channels": null, "patch_size": 1, "timestep_guidance_channels": 256})",
                     32'223'281'152.0},
    CountedDiffusion{"FLUX.2-klein-4B",
                     R"({"_class_name": "Flux2Transformer2DModel", "attention_head_dim": 128,
        "axes_dims_rope": [32, 32, 32, 32], "guidance_embeds": false, "in_channels": 128,
        "joint_attention_dim": 7680, "mlp_ratio": 3.0, "num_attention_heads": 24,
        "num_layers": 5, "num_single_layers": 20, "out_channels": null, "patch_size": 1,
        "timestep_guidance_channels": 256})",
                     3'875'544'576.0},
    CountedDiffusion{"HunyuanVideo",
                     R"({"_class_name": "HunyuanVideoTransformer3DModel", "attention_head_dim":
        128, "guidance_embeds": true, "in_channels": 16, "mlp_ratio": 4.0,
        "num_attention_heads": 24, "num_layers": 20, "num_refiner_layers": 2,
        "num_single_layers": 40, "out_channels": 16, "patch_size": 2, "patch_size_t": 1,
        "pooled_projection_dim": 768, "qk_norm": "rms_norm", "rope_axes_dim": [16, 56, 56],
        "text_embed_dim": 4096})",
                     12'821'012'544.0},
    CountedDiffusion{"CogVideoX-2b",
                     R"({"_class_name": "CogVideoXTransformer3DModel", "attention_bias": true,
        "attention_head_dim": 64, "in_channels": 16, "num_attention_heads": 30, "num_layers":
        30, "out_channels": 16, "patch_size": 2, "text_embed_dim": 4096, "time_embed_dim": 512,
        "use_rotary_positional_embeddings": false})",
                     1'693'783'872.0},
    CountedDiffusion{"CogVideoX1.5-5B",
                     R"({"_class_name": "CogVideoXTransformer3DModel", "attention_bias": true,
        "attention_head_dim": 64, "in_channels": 16, "num_attention_heads": 48, "num_layers":
        42, "ofs_embed_dim": null, "out_channels": 16, "patch_bias": false, "patch_size": 2,
        "patch_size_t": 2, "text_embed_dim": 4096, "time_embed_dim": 512,
        "use_rotary_positional_embeddings": true})",
                     5'570'676'352.0},
    CountedDiffusion{"Chroma1-HD",
                     R"({"_class_name": "ChromaTransformer2DModel", "approximator_hidden_dim":
        5120, "approximator_layers": 5, "approximator_num_channels": 64, "attention_head_dim": 128,
        "in_channels": 64, "joint_attention_dim": 4096, "num_attention_heads": 24, "num_layers":
        19, "num_single_layers": 38, "out_channels": null, "patch_size": 1})",
                     8'899'983'424.0},
    CountedDiffusion{"CogView4-6B",
                     R"({"_class_name": "CogView4Transformer2DModel", "attention_head_dim": 128,
        "condition_dim": 256, "in_channels": 16, "num_attention_heads": 32, "num_layers": 28,
        "out_channels": 16, "patch_size": 2, "text_embed_dim": 4096, "time_embed_dim": 512})",
                     6'369'118'272.0},
    CountedDiffusion{"Z-Image-Turbo",
                     R"({"_class_name": "ZImageTransformer2DModel", "all_f_patch_size": [1],
        "all_patch_size": [2], "cap_feat_dim": 2560, "dim": 3840, "in_channels": 16, "n_heads": 30,
        "n_kv_heads": 30, "n_layers": 30, "n_refiner_layers": 2, "qk_norm": true})",
                     6'154'908'736.0},
    // 675,129,632 with one table of classes, what says the moment once, and a table of places.
    CountedDiffusion{"DiT-XL-2-256",
                     R"({"_class_name": "DiTTransformer2DModel", "attention_bias": true,
        "attention_head_dim": 72, "in_channels": 4, "norm_type": "ada_norm_zero",
        "num_attention_heads": 16, "num_embeds_ada_norm": 1000, "num_layers": 28,
        "out_channels": 8, "patch_size": 2, "sample_size": 32})",
                     749'826'464.0},
};
std::string_view diffusion_file(std::string_view name) {
  for (const CountedDiffusion& one : kDiffusion) {
    if (one.name == name) return one.text;
  }
  FAIL("no such file");
  return {};
}

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

TEST_CASE("read_hugging_face: diffusion models have the weights of their checkpoints") {
  for (const CountedDiffusion& row : kDiffusion) {
    CAPTURE(row.name);
    CHECK(total_parameters(read_transformer(row.text).shape) == row.parameters);
  }
}

TEST_CASE("read_hugging_face: Wan's layers attend to a video's patches, then to a text's words") {
  TrainingJob job;
  job.model = read_transformer(kDiffusion[1].text).shape;
  const TransformerShape& m = job.model;
  CHECK(m.kind(0).cross);
  CHECK(shape_of(m, m.kind(0)).bidirectional);
  CHECK(shape_of(m, m.kind(0)).source_tokens == 512);
  // A token meets six square products and the MLP, a word of the text two.
  const double h = 1536, f = 8960, layers = 30, tokens = 8192, words = 512;
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 8192};
  const double products =
      tokens * (layers * (6 * h * h + 2 * h * f) + h) + words * layers * 2 * h * h;
  const double cores = tokens * layers * 2 * h * (tokens + words);
  CHECK(step_flops(job).full.base_units() ==
        doctest::Approx(6 * products + 6 * cores).epsilon(1e-12));
}

TEST_CASE("read_hugging_face: where a Wan video begins with an image, layers attend to it too") {
  const TransformerShape m = read_transformer(diffusion_file("Wan2.1-I2V-14B-480P")).shape;
  CHECK(shape_of(m, m.kind(0)).source_tokens == 512 + 257);
  std::string places{diffusion_file("Wan2.1-I2V-14B-480P")};
  places.insert(1, R"("pos_embed_seq_len": 514, )");
  const TransformerShape two = read_transformer(places).shape;
  CHECK(shape_of(two, two.kind(0)).source_tokens == 512 + 514);
  CHECK(total_parameters(two) == total_parameters(m) + 514.0 * 1280);
  std::string alone{kDiffusion[1].text};
  alone.replace(alone.find("\"image_dim\": null"), 17, "\"image_dim\": 1280");
  CHECK(diffusers_complaint(alone) ==
        "config.json#/added_kv_proj_dim: found null; allowed: 1536, the width of its layers");
}

TEST_CASE(
    "read_hugging_face: a second attention of Stable Diffusion 3.5 is a block before others") {
  const HuggingFaceModel model = read_transformer(diffusion_file("stable-diffusion-3.5-medium"));
  const TransformerShape& m = model.shape;
  CHECK(m.pattern == "ajajajajajajajajajajajajaj" + std::string(10, 'j') + "c");
  const double h = m.hidden;
  CHECK(layer_matrix_parameters(m, m.kind(0)) == 4 * h * h);
  CHECK(layer_parameters(m, m.kind(0)) == 7 * h * h + 7 * h);
  REQUIRE(model.assumptions.size() == 2);
  CHECK(model.assumptions[1].find("dual_attention_layers") != std::string::npos);
}

TEST_CASE("read_hugging_face: of FLUX.2 no layer holds what modulates it, and MLPs are gated") {
  TrainingJob job;
  job.model = read_transformer(diffusion_file("FLUX.2-dev")).shape;
  const TransformerShape& m = job.model;
  const double h = m.hidden, tokens = 4096 + 512;
  CHECK(layer_parameters(m, m.kind(0)) == 26 * h * h);
  CHECK(layer_parameters(m, m.kind(8)) == 13 * h * h);
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 4096 + 512};
  const double closed = 2 * tokens * (6 * (56 * 13 * h * h + h) + 12 * 56 * h * tokens);
  CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
}

TEST_CASE("read_hugging_face: a CogVideoX layer has one stream, a DiT's a product of modulation") {
  const TransformerShape cog = read_transformer(diffusion_file("CogVideoX-2b")).shape;
  const double h = cog.hidden;
  CHECK(cog.layers == 30);
  CHECK(shape_of(cog, cog.kind(0)).bidirectional);
  CHECK(layer_parameters(cog, cog.kind(0)) == 12 * h * h + 13 * h);
  const TransformerShape dit = read_transformer(diffusion_file("DiT-XL-2-256")).shape;
  const double w = dit.hidden;
  CHECK(layer_matrix_parameters(dit, dit.kind(0)) == 12 * w * w);
  CHECK(layer_parameters(dit, dit.kind(0)) == 18 * w * w + 15 * w);
}

TEST_CASE("read_hugging_face: Z-Image's and CogView4's layers have one stream, Chroma's two") {
  const TransformerShape z = read_transformer(diffusion_file("Z-Image-Turbo")).shape;
  const double h = 3840, f = 10240;
  CHECK(z.layers == 32);
  CHECK(layer_matrix_parameters(z, z.kind(0)) == 4 * h * h + 3 * h * f);
  const TransformerShape cog = read_transformer(diffusion_file("CogView4-6B")).shape;
  CHECK(layer_matrix_parameters(cog, cog.kind(0)) == 12.0 * 4096 * 4096);
  const TransformerShape chroma = read_transformer(diffusion_file("Chroma1-HD")).shape;
  const double w = 3072;
  CHECK(layer_parameters(chroma, chroma.kind(0)) == 24 * w * w + 18 * w);
  CHECK(layer_parameters(chroma, chroma.kind(19)) == 12 * w * w + 8 * w);
  std::string grouped{diffusion_file("Z-Image-Turbo")};
  grouped.replace(grouped.find("\"n_kv_heads\": 30"), 16, "\"n_kv_heads\": 10");
  CHECK(diffusers_complaint(grouped) == "config.json#/n_kv_heads: found 10; allowed: 30 (n_heads)");
}

TEST_CASE("read_hugging_face: classes and layers of diffusers that are not known are refused") {
  CHECK(diffusers_complaint(R"({"_class_name": "UNet2DModel"})") ==
        "config.json#/_class_name: found \"UNet2DModel\"; allowed: "
        "SD3Transformer2DModel, FluxTransformer2DModel, QwenImageTransformer2DModel, "
        "WanTransformer3DModel, PixArtTransformer2DModel, LTXVideoTransformer3DModel, "
        "Flux2Transformer2DModel, HunyuanVideoTransformer3DModel, CogVideoXTransformer3DModel, "
        "ChromaTransformer2DModel, CogView4Transformer2DModel, ZImageTransformer2DModel, "
        "DiTTransformer2DModel, Transformer2DModel, UNet2DConditionModel, "
        "FlaxUNet2DConditionModel. Did you mean \"Transformer2DModel\"?");
  std::string dual{kSd3};
  dual.replace(dual.find("\"in_channels\""), 13,
               "\"dual_attention_layers\": [0, 24], \"in_channels\"");
  CHECK(diffusers_complaint(dual).starts_with("config.json#/dual_attention_layers/1: found 24"));
  std::string norm{diffusion_file("DiT-XL-2-256")};
  norm.replace(norm.find("ada_norm_zero"), 13, "ada_norm_single");
  CHECK(diffusers_complaint(norm).starts_with(
      "config.json#/norm_type: found \"ada_norm_single\"; allowed: ada_norm_zero"));
}

}  // namespace lockstep
