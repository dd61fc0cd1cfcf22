// Families whose files have keys of their own, held against counts that were worked out from the
// code of each by hand.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_recent(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}
std::string recent_complaint(std::string_view text) {
  try {
    (void)read_recent(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// Keys of a published file, and its weights but for norms of heads.
struct HandCount {
  std::string_view name, text;
  double total, active;
};
constexpr std::array kHandCounts{
    // One expert, which is an MLP, whatever is said to be shared.
    HandCount{"Hunyuan-7B-Instruct", R"({"model_type": "hunyuan_v1_dense", "hidden_act": "silu",
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "vocab_size": 128167, "num_experts": 1, "num_shared_expert": 1, "moe_topk": 1,
        "use_mixed_mlp_moe": false, "use_cla": false, "tie_word_embeddings": true})",
              7'504'560'128.0, 7'504'560'128.0},
    HandCount{"Arctic, whose MLP beside the experts is as wide as its stream",
              R"({"model_type": "arctic", "hidden_act": "silu", "hidden_size": 7168,
        "intermediate_size": 4864, "num_hidden_layers": 35, "num_attention_heads": 56,
        "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 128,
        "num_experts_per_tok": 2, "parallel_attn_mlp_res": true, "moe_layer_frequency": 1,
        "use_residual": true, "tie_word_embeddings": false})",
              478'584'357'888.0, 17'318'396'928.0},
    // 8 of 12 choices compute.
    HandCount{"LongCat-Flash", R"({"model_type": "longcat_flash", "hidden_size": 6144,
        "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048, "num_layers": 28,
        "num_attention_heads": 64, "vocab_size": 131072, "kv_lora_rank": 512, "q_lora_rank": 1536,
        "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "n_routed_experts": 512, "moe_topk": 12, "zero_expert_num": 256,
        "zero_expert_type": "identity", "tie_word_embeddings": false})",
              560'664'958'976.0, 27'954'796'544.0},
    HandCount{"VaultGemma-1B, whose code ties its tables", R"({"model_type": "vaultgemma",
        "hidden_size": 1152, "intermediate_size": 6912, "num_hidden_layers": 26,
        "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000,
        "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 512,
        "sliding_window_pattern": 2})",
              1'038'741'120.0, 1'038'741'120.0},
    HandCount{"Persimmon-8B", R"({"model_type": "persimmon", "hidden_size": 4096,
        "intermediate_size": 16384, "num_hidden_layers": 36, "num_attention_heads": 64,
        "vocab_size": 262144, "hidden_act": "relu2", "tie_word_embeddings": false})",
              9'397'166'080.0, 9'397'166'080.0},
    HandCount{"CodeGen-16B, with biases of attention that it lacks",
              R"({"model_type": "codegen", "n_embd": 6144, "n_head": 24, "n_layer": 34,
        "n_positions": 2048, "vocab_size": 51200, "activation_function": "gelu_new",
        "n_inner": null, "tie_word_embeddings": false})",
              16'032'991'232.0, 16'032'991'232.0},
};

/// K-EXAONE: a list says which layers have experts.
std::string k_exaone() {
  std::string flags, types;
  for (int i = 0; i < 48; ++i) {
    flags += i == 0 ? "false" : ", true";
    types += std::string(i > 0 ? ", " : "") +
             (i % 4 == 3 ? "\"full_attention\"" : "\"sliding_attention\"");
  }
  return R"({"model_type": "exaone_moe", "hidden_act": "silu", "hidden_size": 6144,
      "intermediate_size": 18432, "num_hidden_layers": 48, "num_attention_heads": 64,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 153600, "sliding_window": 128,
      "moe_intermediate_size": 2048, "num_experts": 128, "num_experts_per_tok": 8,
      "num_shared_experts": 1, "tie_word_embeddings": false, "layer_types": [)" +
         types + R"(], "is_moe_layer": [)" + flags + "]}";
}

}  // namespace

TEST_CASE("read_hugging_face: families with keys of their own have the weights of their code") {
  for (const HandCount& one : kHandCounts) {
    CAPTURE(one.name);
    const ParameterCounts counts = parameter_counts(read_recent(one.text).shape);
    CHECK(counts.total == one.total);
    CHECK(counts.active == one.active);
  }
  const ParameterCounts exaone = parameter_counts(read_recent(k_exaone()).shape);
  CHECK(exaone.total == 236'571'138'048.0);
  CHECK(exaone.active == 23'668'267'008.0);
}

TEST_CASE(
    "read_hugging_face: experts that do nothing are said, and only those that compute count") {
  const HuggingFaceModel model = read_recent(kHandCounts[2].text);
  CHECK(model.shape.layers == 56);
  CHECK_FALSE(model.shape.kind(0).experts);
  CHECK(model.shape.kind(1).experts);
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions[0] ==
        "model: of the 12 experts of a token (moe_topk) 8 compute in the mean, as 256 of 768 do "
        "nothing (zero_expert_num)");
}

TEST_CASE("read_hugging_face: a flag that there are no experts outweighs their keys") {
  const std::string doge = R"({"model_type": "doge", "hidden_act": "silu", "hidden_size": 1024,
      "intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 8,
      "num_key_value_heads": 4, "vocab_size": 1000, "num_experts": 16384,
      "num_experts_per_tok": 64, "tie_word_embeddings": true, "is_moe": )";
  CHECK(read_recent(doge + "false}").shape.experts.count == 0);
  // Its experts are rows of two tables; taken for MLPs they were 412 for 0.2 B parameters.
  CHECK(recent_complaint(doge + "true}").find("is_moe") != std::string::npos);
}

TEST_CASE("read_hugging_face: of JetMoE attention has experts too, and the line says so") {
  CHECK(recent_complaint(R"({"model_type": "jetmoe"})") ==
        "config.json#/model_type: found \"jetmoe\"; allowed: a decoder, or an encoder of text or "
        "images; jetmoe is a decoder whose attention has experts too");
}

TEST_CASE("read_hugging_face: families that are not known are refused at the key that decides") {
  struct Refused {
    std::string_view type, key;
  };
  // Each has every key of a plain decoder, and was or would be read as one.
  for (const auto& [type, key] :
       {Refused{"jetmoe", "num_local_experts"}, Refused{"hymba", "num_memory_tokens"},
        Refused{"wav2vec2", "conv_dim"}, Refused{"hubert", "conv_dim"},
        Refused{"wavlm", "conv_dim"}}) {
    const std::string plain = R"({"hidden_act": "silu", "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "vocab_size": 100, "tie_word_embeddings": false, "model_type": ")" +
                              std::string(type) + "\"";
    const std::string name{key};
    CHECK(recent_complaint(plain + ", \"" + name + "\": 8}").find("config.json#/" + name + ":") !=
          std::string::npos);
    // Without it the family is enough.
    CHECK(recent_complaint(plain + "}").find("config.json#/model_type:") != std::string::npos);
  }
}

TEST_CASE("read_hugging_face: of MiniMax-01 and Ring most layers have linear attention") {
  std::string list, types;
  for (int i = 0; i < 80; ++i) {
    list += std::string(i > 0 ? ", " : "") + (i % 8 == 7 ? "1" : "0");
    types += std::string(i > 0 ? ", " : "") +
             (i % 8 == 7 ? "\"full_attention\"" : "\"linear_attention\"");
  }
  const std::string widths = R"("hidden_act": "silu", "hidden_size": 6144,
      "intermediate_size": 9216, "num_hidden_layers": 80, "num_attention_heads": 64,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 200064, "num_local_experts": 32,
      "num_experts_per_tok": 2, "shared_intermediate_size": 0, "tie_word_embeddings": false, )";
  for (const std::string& file :
       {R"({"model_type": "minimax_text_01", )" + widths + R"("attn_type_list": [)" + list + "]}",
        R"({"model_type": "minimax", )" + widths + R"("layer_types": [)" + types + "]}"}) {
    const ParameterCounts counts = parameter_counts(read_recent(file).shape);
    CHECK(counts.total == 456'089'655'296.0);
    CHECK(counts.active == 48'403'306'496.0);
  }
  const TransformerShape ring = read_recent(R"({"model_type": "bailing_moe_linear",
      "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5120,
      "num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4,
      "head_dim": 128, "vocab_size": 157184, "moe_intermediate_size": 512, "num_experts": 256,
      "num_experts_per_tok": 8, "num_shared_experts": 1, "first_k_dense_replace": 1,
      "layer_group_size": 5, "tie_word_embeddings": false})")
                                    .shape;
  CHECK(ring.kind(4).mixer == Mixer::attention);
  CHECK_FALSE(ring.kind(5).mixer == Mixer::attention);
  CHECK(parameter_counts(ring).total == 16'423'438'336.0);
  CHECK(parameter_counts(ring).active == 1'600'768'000.0);
}

}  // namespace lockstep
