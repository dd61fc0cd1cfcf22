// Further families of config.json, held against closed forms of what their code makes.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_further(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}
std::string further_complaint(std::string_view text) {
  try {
    (void)read_further(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

constexpr std::string_view kJais = R"({"model_type": "jais", "n_embd": 5120, "n_head": 40,
    "n_inner": 13653, "n_layer": 40, "n_positions": 2048, "vocab_size": 84992,
    "activation_function": "swiglu", "position_embedding_type": "alibi"})";
constexpr std::string_view kJais2 = R"({"model_type": "jais2", "hidden_act": "relu2",
    "hidden_size": 3328, "intermediate_size": 26624, "num_hidden_layers": 32,
    "num_attention_heads": 26, "num_key_value_heads": 26, "head_dim": 128, "vocab_size": 150272,
    "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": false})";
constexpr std::string_view kLlada = R"({"model_type": "llada", "activation_type": "silu",
    "block_type": "llama", "d_model": 4096, "n_heads": 32, "n_kv_heads": 32, "n_layers": 32,
    "mlp_hidden_size": 12288, "mlp_ratio": 4, "vocab_size": 126464, "embedding_size": 126464,
    "weight_tying": false, "rope": true, "include_bias": false, "layer_norm_with_affine": true,
    "multi_query_attention": null, "max_sequence_length": 4096})";
constexpr std::string_view kOlmo = R"({"model_type": "hf_olmo", "activation_type": "swiglu",
    "block_type": "sequential", "d_model": 4096, "n_heads": 32, "n_layers": 32,
    "mlp_hidden_size": 22016, "mlp_ratio": 4, "vocab_size": 50280, "embedding_size": 50304,
    "weight_tying": false, "rope": true, "alibi": false, "include_bias": false,
    "layer_norm_with_affine": false, "multi_query_attention": false})";
constexpr std::string_view kNomic = R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12,
    "n_inner": 3072, "n_layer": 12, "n_positions": 8192, "vocab_size": 30528,
    "activation_function": "swiglu", "type_vocab_size": 2, "qkv_proj_bias": false,
    "mlp_fc1_bias": false, "mlp_fc2_bias": false, "rotary_emb_fraction": 1.0})";
constexpr std::string_view kPlainDeepSeek = R"({"model_type": "deepseek_v2", "hidden_size": 1280,
    "intermediate_size": 6848, "moe_intermediate_size": 896, "n_routed_experts": 64,
    "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
    "num_hidden_layers": 12, "num_attention_heads": 10, "num_key_value_heads": 10,
    "kv_lora_rank": null, "q_lora_rank": null, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0,
    "v_head_dim": 0, "use_mla": false, "vocab_size": 129280})";
constexpr std::string_view kGroupedAlbert = R"({"model_type": "albert", "embedding_size": 128,
    "hidden_act": "gelu", "hidden_size": 768, "inner_group_num": 2, "intermediate_size": 3072,
    "num_attention_heads": 12, "num_hidden_groups": 3, "num_hidden_layers": 12,
    "type_vocab_size": 2, "vocab_size": 30000})";

struct FurtherCount {
  std::string_view name, text;
  double total, active;
};
// h width, f MLP, V words, l layers.
constexpr std::array kFurtherCounts{
    // Vh + l (4hh + 4h + 3hf + 2f + h + 4h) + 2h
    FurtherCount{"Jais 13B", kJais, 13'020'811'920.0, 13'020'811'920.0},
    // 2Vh + l (4hh + 4h + 2hf + f + h + 4h) + 2h
    FurtherCount{"Jais 2 8B", kJais2, 8'090'401'280.0, 8'090'401'280.0},
    // 2Vh + l (4hh + 3hf + 2h) + h
    FurtherCount{"LLaDA 8B", kLlada, 8'015'581'184.0, 8'015'581'184.0},
    // The same without norms, the MLP half as wide as the file says
    FurtherCount{"OLMo 7B, its own file", kOlmo, 6'888'095'744.0, 6'888'095'744.0},
    // Vh + 2h + 2h + l (4hh + 3hf + 4h), and hh + 2h + V that predicts masked words
    FurtherCount{"nomic-embed-text-v1.5", kNomic, 137'353'536.0, 137'353'536.0},
    FurtherCount{"the language part of DeepSeek-VL2 tiny, whose heads are plain", kPlainDeepSeek,
                 2'934'734'080.0, 739'605'760.0},
    // Six sets of a layer's weights
    FurtherCount{"ALBERT with three groups of two", kGroupedAlbert, 47'253'170.0, 47'253'170.0},
};

}  // namespace

TEST_CASE("read_hugging_face: further families have the weights of their code") {
  for (const FurtherCount& one : kFurtherCounts) {
    CAPTURE(one.name);
    const ParameterCounts counts = parameter_counts(read_further(one.text).shape);
    CHECK(counts.total == doctest::Approx(one.total).epsilon(1e-12));
    CHECK(counts.active == doctest::Approx(one.active).epsilon(1e-12));
  }
}

TEST_CASE("read_hugging_face: models that fill words in see both ways") {
  CHECK(read_further(kLlada).shape.bidirectional);
  CHECK_FALSE(read_further(kOlmo).shape.bidirectional);
  const std::string dream = R"({"model_type": "Dream", "hidden_act": "silu", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "vocab_size": 100, "tie_word_embeddings": false})";
  const TransformerShape m = read_further(dream).shape;
  CHECK(shape_of(m, m.kind(1)).bidirectional);
  CHECK_FALSE(is_decoder(m));
}

TEST_CASE("read_hugging_face: of ALBERT's groups each layer in a row does its work") {
  const TransformerShape m = read_further(kGroupedAlbert).shape;
  CHECK(m.layers == 24);
  CHECK(layers_together(m, m.kind(0)) == 4);
}

TEST_CASE("read_hugging_face: StableLM 2 12B has attention and MLP beside each other") {
  const std::string file = R"({"model_type": "stablelm", "hidden_act": "silu", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "vocab_size": 100, "tie_word_embeddings": false, "use_parallel_residual": )";
  const TransformerShape beside = read_further(file + "true}").shape;
  const TransformerShape after = read_further(file + "false}").shape;
  CHECK(beside.kind(0).parallel);
  CHECK_FALSE(after.kind(0).parallel);
  CHECK(total_parameters(after) - total_parameters(beside) == 2 * 64);  // a norm each
}

TEST_CASE("read_hugging_face: a decoder with a second one behind it is not what its keys say") {
  const std::string plain = R"({"model_type": "csm", "hidden_act": "silu", "hidden_size": 64,
      "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
      "vocab_size": 100, )";
  CHECK(further_complaint(plain + R"("depth_decoder_config": {"hidden_size": 32}})") ==
        "config.json#/depth_decoder_config: found an object; allowed: a decoder without this key, "
        "which says that its layers are not those of its model_type");
  CHECK(further_complaint(plain + R"("num_codebooks": 32})").find("num_codebooks") !=
        std::string::npos);
}

}  // namespace lockstep
