// Decoders whose layers differ by more than experts and windows.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"
#include "tests/support/real_files.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_config(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}

/// GLM-5.2, the keys that matter, with a letter for each of its 78 indices.
std::string glm(std::string_view more) {
  return R"({"model_type": "glm_moe_dsa", "first_k_dense_replace": 3, "head_dim": 192,
      "hidden_size": 6144, "index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048,
      "intermediate_size": 12288, "kv_lora_rank": 512, "moe_intermediate_size": 2048,
      "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1,
      "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 78,
      "num_key_value_heads": 64, "q_lora_rank": 2048, "qk_nope_head_dim": 192,
      "qk_rope_head_dim": 64, "tie_word_embeddings": false, "v_head_dim": 256,
      "vocab_size": 154880)" +
         std::string(more) + "}";
}

constexpr std::string_view kQwenNext =
    R"({"model_type": "qwen3_next", "decoder_sparse_step": 1, "full_attention_interval": 4,
        "head_dim": 256, "hidden_size": 2048, "intermediate_size": 5120,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "linear_value_head_dim": 128, "mlp_only_layers": [],
        "moe_intermediate_size": 512, "num_attention_heads": 16, "num_experts": 512,
        "num_experts_per_tok": 10, "num_hidden_layers": 48, "num_key_value_heads": 2,
        "shared_expert_intermediate_size": 512, "tie_word_embeddings": false,
        "vocab_size": 151936)";

std::string complaint_about(std::string_view text) {
  try {
    (void)read_config(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("read_hugging_face: of Qwen3-Next every fourth layer attends, the others pass a state") {
  const TransformerShape shape = read_config(std::string(kQwenNext) + "}").shape;
  CHECK(shape.kind(0).mixer == Mixer::delta);
  CHECK(shape.kind(3).mixer == Mixer::attention);
  CHECK(std::ranges::count(shape.pattern, shape.pattern[3]) == 12);
  CHECK(shape_of(shape, shape.kind(3)).output_gate);
  // 80 B and 3 B by its name; with both embeddings in what is active.
  const ParameterCounts counts = parameter_counts(shape);
  CHECK(counts.total == doctest::Approx(79.67e9).epsilon(0.0003));
  CHECK(counts.active == doctest::Approx(3.87e9).epsilon(0.002));
}

TEST_CASE("read_hugging_face: of LFM2 ten of sixteen layers are short convolutions") {
  const std::string widths = R"({"model_type": "lfm2", "block_auto_adjust_ff_dim": true,
      "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "conv_L_cache": 3,
      "conv_bias": false, "hidden_size": 2048, "intermediate_size": 12288,
      "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
      "vocab_size": 65536, )";
  const TransformerShape shape =
      read_config(widths + R"("full_attn_idxs": [2, 5, 8, 10, 12, 14]})").shape;
  CHECK(info(shape.kind(0).mixer).name == "short_convolution");
  CHECK(shape.kind(2).mixer == Mixer::attention);
  CHECK(shape.ffn == 8192);
  // The checkpoint's weights but for norms of queries and keys.
  CHECK(total_parameters(shape) == 1'170'340'608.0 - 6 * 2 * 64);
  std::string types;
  for (int i = 0; i < 16; ++i) {
    const bool full = shape.kind(i).mixer == Mixer::attention;
    types += std::string(i > 0 ? ", " : "") + (full ? "\"full_attention\"" : "\"conv\"");
  }
  CHECK(read_config(widths + R"("layer_types": [)" + types + "]}").shape.pattern == shape.pattern);
  CHECK(complaint_about(widths + R"("layer_types": ["convolution"]})").find("array of 16") !=
        std::string::npos);
}

TEST_CASE("read_hugging_face: of GLM-5.2 three of four layers take the keys that others chose") {
  std::string types;
  for (int i = 0; i < 78; ++i) {
    const bool full = i < 3 || (i - 2) % 4 == 0;
    types += std::string(i > 0 ? ", " : "") + (full ? "\"full\"" : "\"shared\"");
  }
  const TransformerShape shape = read_config(glm(R"(, "indexer_types": [)" + types + "]")).shape;
  CHECK_FALSE(shape_of(shape, shape.kind(2)).index.shared);
  CHECK(shape_of(shape, shape.kind(3)).index.shared);
  CHECK_FALSE(shape.kind(2).experts);
  CHECK(shape.kind(3).experts);
  // The checkpoint's weights but for the biases of its routers, 75 x 256.
  CHECK(parameter_counts(shape).total == 743'377'000'704.0);
  // GLM-5 has an index in each layer.
  CHECK(parameter_counts(read_config(glm("")).shape).total > 743.9e9);
}

TEST_CASE("read_hugging_face: a family with keys that its name does not tell is not what it says") {
  // DeepSeek-V3.2 under the name of V3: read as what its keys say, which a line tells.
  std::string renamed = glm("");
  renamed.replace(renamed.find("glm_moe_dsa"), 11, "deepseek_v3");
  const HuggingFaceModel model = read_config(renamed);
  CHECK(shape_of(model.shape, model.shape.kind(0)).index.keys == 2048);
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions[0] ==
        "model: deepseek_v3 with index_topk; its layers were taken for those of deepseek_v32, "
        "whose attention chooses keys");
  std::string next{kQwenNext};
  next.replace(next.find("qwen3_next"), 10, "qwen3_moe");
  CHECK(complaint_about(next + "}") ==
        "config.json#/linear_conv_kernel_dim: found 4; allowed: a decoder without this key, which "
        "says that its layers are not those of its model_type");
}

TEST_CASE(
    "read_hugging_face: a family that nobody knows, with the keys of one that is, is like it") {
  std::string next{kQwenNext};
  next.replace(next.find("qwen3_next"), 10, "qwen4_next");
  const HuggingFaceModel model = read_config(next + R"(, "hidden_act": "silu"})");
  const TransformerShape known = read_config(std::string(kQwenNext) + "}").shape;
  CHECK(parameter_counts(model.shape).total == parameter_counts(known).total);
  CHECK(model.shape.pattern == known.pattern);
  CHECK(model.shape.kinds == known.kinds);
  CHECK(model.assumptions.back().starts_with(
      "model: qwen4_next is no family that is known; its keys were taken for gated delta nets and "
      "output gates as qwen3_next has them, "));
  std::string chooses = glm(R"(, "hidden_act": "silu")");
  chooses.replace(chooses.find("glm_moe_dsa"), 11, "newest");
  CHECK(shape_of(read_config(chooses).shape, read_config(chooses).shape.kind(0)).index.keys ==
        2048);
  // What else a key says of its layers is not passed over.
  CHECK(complaint_about(next + R"(, "hidden_act": "silu", "ssm_state_size": 16})")
            .starts_with("config.json#/ssm_state_size: found 16; "));
  std::string half = next + R"(, "hidden_act": "silu"})";
  const std::string key = "linear_value_head_dim";
  half.replace(half.find(key), key.size(), "linear_other_head_dim");
  CHECK(complaint_about(half).starts_with("config.json#/linear_"));
}

TEST_CASE("read_hugging_face: of a family that nobody knows, keys that nobody read are listed") {
  const std::string file = R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
      "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 8,
      "vocab_size": 1000, "wavelet_attention_rank": 64, "extra_blocks": [1, 2],
      "attention_bias": true, "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "bos_token_id": 1,
      "attention_dropout": 0.1, "initializer_range": 0.02, "torch_dtype": "bfloat16",
      "use_cache": true, "max_position_embeddings": 4096, "mlp_bias": false, "extra_layers": 0,
      "shape_of_wavelets": null, "wavelet": "haar", "routed_scaling_factor": 2.5)";
  const HuggingFaceModel model = read_config(file + "}");
  REQUIRE(model.assumptions.size() == 2);
  CHECK(model.assumptions[1] ==
        "model: not read, whatever they say of its layers: wavelet_attention_rank, extra_blocks, "
        "attention_bias");
  // A family that is known has read what it needs.
  std::string known = file;
  known.replace(known.find("newest"), 6, "llama");
  CHECK(read_config(known + "}").assumptions.empty());
}

TEST_CASE("read_hugging_face: a family that nobody knows is read by its keys, which a line says") {
  const HuggingFaceModel model =
      read_config(R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
          "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
          "num_hidden_layers": 8, "num_experts": 16, "num_experts_per_tok": 2,
          "moe_intermediate_size": 32, "first_k_dense_replace": 1, "vocab_size": 1000})");
  CHECK(model.shape.kinds.empty());
  CHECK(model.shape.experts.leading_dense == 1);
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions[0] ==
        "model: newest is no family that is known; its keys were taken for 4 heads over 2 of keys "
        "and values, 16 experts, a gated MLP, rotary positions and no biases");
  CHECK(complaint_about(R"({"model_type": "newest", "hidden_act": "gelu", "hidden_size": 64,
          "num_attention_heads": 4, "num_hidden_layers": 8, "vocab_size": 1000})") ==
        "config.json#/hidden_act: found \"gelu\"; allowed: silu, which stands for a gated MLP; of "
        "others the code of a family that is not known decides");
  CHECK(complaint_about(R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
          "num_attention_heads": 4, "num_hidden_layers": 8, "vocab_size": 1000,
          "ssm_state_size": 16})") ==
        "config.json#/ssm_state_size: found 16; allowed: a decoder without this key, which says "
        "that its layers are not those of its model_type");
}

namespace {

struct PublishedFamily {
  std::string_view name, config;
  double total, active;  ///< as published, in billions; active 0: dense
  double within;         ///< half of the last digit that is published, or norms that are left out
};

// The files' keys that matter; counts by model cards on https://huggingface.co.
constexpr std::array kPublishedFamilies{
    PublishedFamily{"gemma-3-1b", R"({"model_type": "gemma3_text", "head_dim": 256,
        "hidden_size": 1152, "intermediate_size": 6912, "num_attention_heads": 4,
        "num_hidden_layers": 26, "num_key_value_heads": 1, "sliding_window": 512,
        "sliding_window_pattern": 6, "vocab_size": 262144})",
                    0.999886, 0, 0.001},
    PublishedFamily{"gemma-3-4b, whose file leaves out heads and words",
                    R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024}, "vision_config": {"model_type": "siglip_vision_model",
        "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
        "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
        "vision_use_head": false}})",
                    3.88, 0, 0.003},
    PublishedFamily{"starcoder2-15b", R"({"model_type": "starcoder2", "hidden_size": 6144,
        "intermediate_size": 24576, "num_attention_heads": 48, "num_hidden_layers": 40,
        "num_key_value_heads": 4, "sliding_window": 4096, "tie_word_embeddings": false,
        "use_bias": true, "vocab_size": 49152})",
                    15.958, 0, 0.001},
    PublishedFamily{"ERNIE-4.5-300B-A47B", R"({"model_type": "ernie4_5_moe", "hidden_act": "silu",
        "hidden_size": 8192, "intermediate_size": 28672, "moe_intermediate_size": 3584, "moe_k": 8,
        "moe_layer_interval": 1, "moe_layer_start_index": 3, "moe_num_experts": 64,
        "moe_num_shared_experts": 0, "num_attention_heads": 64, "num_hidden_layers": 54,
        "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 103424})",
                    300, 47, 0.005},
    PublishedFamily{"Hunyuan-A13B", R"({"model_type": "hunyuan_v1_moe", "head_dim": 128,
        "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 3072,
        "moe_intermediate_size": [3072, 3072], "moe_topk": [8, 8], "num_attention_heads": 32,
        "num_experts": 64, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "num_shared_expert": [1, 1], "tie_word_embeddings": true, "use_cla": false,
        "vocab_size": 128167})",
                    80, 13, 0.01},
};

/// Granite 4.0 H Small: Mamba-2 in 36 of 40 layers, experts in all; or without experts.
std::string granite(std::string_view experts) {
  std::string types;
  for (int i = 0; i < 40; ++i) {
    types += std::string(i > 0 ? ", " : "") + (i % 10 == 5 ? "\"attention\"" : "\"mamba\"");
  }
  return R"({"model_type": "granitemoehybrid", "hidden_size": 4096, "intermediate_size": 768,
      "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_expand": 2,
      "mamba_n_groups": 1, "mamba_n_heads": 128, "num_attention_heads": 32,
      "num_hidden_layers": 40, "num_key_value_heads": 8, "shared_intermediate_size": 1536,
      "tie_word_embeddings": true, "vocab_size": 100352, "layer_types": [)" +
         types + "], " + std::string(experts) + "}";
}

}  // namespace

TEST_CASE("read_hugging_face: families of the last years have the counts of their cards") {
  for (const PublishedFamily& one : kPublishedFamilies) {
    CAPTURE(one.name);
    const ParameterCounts counts = parameter_counts(read_config(one.config).shape);
    CHECK(counts.total / 1e9 == doctest::Approx(one.total).epsilon(one.within));
    if (one.active > 0) {
      CHECK(counts.active / 1e9 == doctest::Approx(one.active).epsilon(0.02));
    }
  }
}

TEST_CASE("read_hugging_face: of Gemma 3 and EXAONE 4 the pattern says which layers have windows") {
  const TransformerShape gemma = read_config(kPublishedFamilies[1].config).shape;
  CHECK(shape_of(gemma, gemma.kind(4)).window == 1024);
  CHECK(shape_of(gemma, gemma.kind(5)).window == 0);
  const std::string exaone = R"({"model_type": "exaone4", "head_dim": 128, "hidden_size": 5120,
      "intermediate_size": 27392, "num_attention_heads": 40, "num_hidden_layers": 64,
      "num_key_value_heads": 8, "sliding_window": 4096, "tie_word_embeddings": false,
      "vocab_size": 102400, "sliding_window_pattern": )";
  const TransformerShape shape = read_config(exaone + R"("LLLG"})").shape;
  CHECK(shape_of(shape, shape.kind(62)).window == 4096);
  CHECK(shape_of(shape, shape.kind(63)).window == 0);
  CHECK(total_parameters(shape) == doctest::Approx(32.0e9).epsilon(0.002));
  CHECK(complaint_about(exaone + R"("LLX"})") ==
        "config.json#/sliding_window_pattern: found \"LLX\"; allowed: letters L (a window) and G "
        "(all tokens), or a number");
}

TEST_CASE("read_hugging_face: of Granite 4 most layers are Mamba-2 before experts, or an MLP") {
  const TransformerShape shape =
      read_config(granite(R"("num_experts_per_tok": 10, "num_local_experts": 72)")).shape;
  CHECK(shape.kind(4).mixer == Mixer::mamba);
  CHECK(shape.kind(5).mixer == Mixer::attention);
  CHECK(shape.kind(4).experts);
  const ParameterCounts counts = parameter_counts(shape);
  CHECK(counts.total == doctest::Approx(32.2e9).epsilon(0.003));
  CHECK(counts.active == doctest::Approx(9e9).epsilon(0.06));  // 9 B by its name
  const TransformerShape dense = read_config(granite(R"("num_local_experts": 0)")).shape;
  CHECK_FALSE(dense.kind(4).experts);
  CHECK(dense.ffn == 1536);
  std::string odd = granite(R"("num_local_experts": 0)");
  odd.replace(odd.find("\"mamba_n_heads\": 128"), 20, "\"mamba_n_heads\": 100");
  CHECK(complaint_about(odd) ==
        "config.json#/mamba_n_heads: found 100; allowed: a multiple of mamba_n_groups that with "
        "mamba_d_head makes 8192 columns");
}

TEST_CASE("read_hugging_face: linear attention and shared keys under a plain name are refused") {
  const std::string plain = R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
      "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
      "vocab_size": 1000, )";
  for (const std::string more : {R"("attn_type_list": [0, 1]})", R"("use_cla": true})"}) {
    CHECK(complaint_about(plain + more).find("its layers are not those of its model_type") !=
          std::string::npos);
  }
  CHECK(complaint_about(plain + R"("moe_intermediate_size": [32, 64], "num_experts": 4,
      "num_experts_per_tok": 2})") ==
        "config.json#/moe_intermediate_size/1: found 64; allowed: 32, as in all layers");
}

TEST_CASE("read_hugging_face: a list has an element for each layer") {
  CHECK(complaint_about(glm(R"(, "indexer_types": ["full"])")) ==
        "config.json#/indexer_types: found an array; allowed: an array of 78 (num_hidden_layers)");
}

namespace {

struct CountedConfig {
  std::string_view file;
  double total, active;  ///< billions, both embeddings counted
  double vision = 0;
};
// Counted from each file by hand, beside the code of its family; without prediction modules.
constexpr std::array kCounted{
    CountedConfig{"simai--qwen3-next-80B-A3B", 79.67, 3.87},
    CountedConfig{"Qwen--Qwen3.5-397B-A17B", 396.35, 17.35, 0.456},
    CountedConfig{"nvidia--Qwen3.5-122B-A10B-NVFP4", 122.11, 9.77, 0.451},
    CountedConfig{"Qwen--Qwen3.5-35B-A3B", 34.66, 3.455, 0.447},
    CountedConfig{"Qwen--Qwen3.5-27B", 26.90, 26.90, 0.461},
    CountedConfig{"Qwen--Qwen3-VL-30B-A3B-Instruct", 30.53, 3.35, 0.539},
    CountedConfig{"Qwen--Qwen3-VL-32B-Instruct", 32.76, 32.76, 0.595},
    CountedConfig{"Qwen--Qwen3-VL-4B-Instruct", 4.022, 4.022, 0.415},
    CountedConfig{"deepseek-ai--DeepSeek-V3.2", 671.88, 38.4},
    CountedConfig{"deepseek-ai--DeepSeek-V3", 671.03, 37.55},
    CountedConfig{"simai--deepseek_v3", 671.03, 37.55},
    CountedConfig{"zai-org--GLM-5", 743.91, 41.78},
    CountedConfig{"nvidia--GLM-5.1-NVFP4", 743.91, 41.78},
    CountedConfig{"zai-org--GLM-5.2", 743.38, 41.25},
    CountedConfig{"zai-org--GLM-5.2-FP8", 743.38, 41.25},
    CountedConfig{"deepseek-ai--DeepSeek-V4-Flash", 284.33, 13.8},
    CountedConfig{"sgl-project--DeepSeek-V4-Flash-FP8", 284.33, 13.8},
    CountedConfig{"nvidia--DeepSeek-V4-Pro-NVFP4", 1573.0, 49.78},
    CountedConfig{"moonshotai--Kimi-K2-Instruct", 1026.41, 32.86},
    CountedConfig{"moonshotai--Kimi-K2.5", 1026.41, 32.86, 0.466},
    CountedConfig{"nvidia--Kimi-K2.6-NVFP4", 1026.41, 32.86, 0.466},
    CountedConfig{"moonshotai--Kimi-K3", 2779, 105.36, 0.45},
    CountedConfig{"MiniMaxAI--MiniMax-M2.5", 228.69, 11.03},
    CountedConfig{"nvidia--MiniMax-M2.7-NVFP4", 228.69, 11.03},
    CountedConfig{"MiniMaxAI--MiniMax-M3", 426.17, 25.96},
    CountedConfig{"XiaomiMiMo--MiMo-V2-Flash", 308.78, 15.44},
    CountedConfig{"XiaomiMiMo--MiMo-7B-Base", 7.62, 7.62},
    CountedConfig{"stepfun-ai--Step-3.7-Flash", 195.83, 10.86},
    CountedConfig{"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120.67, 12.77},
    CountedConfig{"nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 549.31, 56.06},
    CountedConfig{"nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", 31.58, 3.58},
    CountedConfig{"nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31.58, 3.58},
    CountedConfig{"google--gemma-4-26B-A4B", 25.23, 3.82, 0.573},
    CountedConfig{"nvidia--Llama-3_3-Nemotron-Super-49B-v1", 49.87, 49.87},
    CountedConfig{"openai--gpt-oss-120b", 116.79, 5.7},
    CountedConfig{"Qwen--Qwen3-0.6B", 0.596, 0.596},
    CountedConfig{"Qwen--Qwen3-8B", 8.191, 8.191},
    CountedConfig{"Qwen--Qwen3-235B-A22B-FP8", 235.09, 22.19},
    CountedConfig{"meta-llama--Meta-Llama-3.1-405B", 405.85, 405.85},
    CountedConfig{"meta-llama--Llama-4-Maverick-17B-128E-Instruct", 400.71, 17.19},
    CountedConfig{"mistralai--Mixtral-8x7B-v0.1", 46.70, 12.88},
};
constexpr double kCountTolerance = 0.003;

}  // namespace

TEST_CASE("read_hugging_face: files of published models give the counts of their weights" *
          doctest::skip(!test::has_real_files())) {
  for (const CountedConfig& row : kCounted) {
    CAPTURE(row.file);
    const std::string file = test::real_file("huggingface/" + std::string(row.file) + ".json");
    const std::string text = quote_non_finite(read_text_file(file));
    ParameterCounts counts;
    CHECK_NOTHROW(
        counts = parameter_counts(read_hugging_face(JsonCursor::parse(file, text), "model").shape));
    CHECK(counts.total / 1e9 == doctest::Approx(row.total).epsilon(kCountTolerance));
    CHECK(counts.active / 1e9 == doctest::Approx(row.active).epsilon(kCountTolerance));
    CHECK(counts.vision / 1e9 == doctest::Approx(row.vision).epsilon(0.01));
  }
}

}  // namespace lockstep
