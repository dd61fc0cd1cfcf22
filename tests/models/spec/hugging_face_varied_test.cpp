// Families that say what their layers are with keys of their own, held against published counts and
// against what their code has.
#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_varied_config(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}
std::string varied_complaint(std::string_view text) {
  try {
    (void)read_varied_config(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

struct VariedFamily {
  std::string_view name, config;
  double total;   ///< as published, in billions
  double within;  ///< half of the last digit that is published, as a share
};

// The files' keys that matter; counts by names, model cards and reports: Black et al. 2021
// (https://huggingface.co/EleutherAI/gpt-neo-2.7B), Mehta et al. 2024 (arXiv:2404.14619, table 9),
// Botev et al. 2024 (arXiv:2404.07839, table 1), Falcon LLM Team 2025 (arXiv:2507.22448, table 1),
// Ren et al. 2025 (arXiv:2507.06607: 3.8 billion; worked out by hand from the code of its layers),
// Beck et al. 2025 (https://huggingface.co/NX-AI/xLSTM-7b),
// Peng et al. 2024 (arXiv:2404.05892, tables 1 and 2) and 2025 (arXiv:2503.14456, table 1).
constexpr std::array kVariedFamilies{
    VariedFamily{"GPT-Neo 2.7B, to the last parameter", R"({"model_type": "gpt_neo",
        "activation_function": "gelu_new", "hidden_size": 2560, "intermediate_size": null,
        "num_layers": 32, "num_heads": 20, "vocab_size": 50257, "max_position_embeddings": 2048,
        "window_size": 256, "attention_types": [[["global", "local"], 16]]})",
                 2.651307520, 1e-12},
    VariedFamily{"OpenELM 270M, but for norms of queries and keys",
                 R"({"model_type": "openelm", "model_dim": 1280, "head_dim": 64,
        "num_transformer_layers": 16, "ffn_with_glu": true, "ffn_dim_divisor": 256,
        "num_query_heads": [12, 12, 12, 12, 12, 16, 16, 16, 16, 16, 16, 16, 20, 20, 20, 20],
        "num_kv_heads": [3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5],
        "ffn_multipliers": [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07,
          3.3, 3.53, 3.77, 4.0], "vocab_size": 32000, "share_input_output_layers": true})",
                 0.271527168, 1e-5},
    VariedFamily{"OpenELM 3B, the same",
                 R"({"model_type": "openelm", "model_dim": 3072, "head_dim": 128,
        "num_transformer_layers": 36, "ffn_with_glu": true, "ffn_dim_divisor": 256,
        "num_query_heads": [12, 12, 12, 12, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
          16, 16, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 24, 24, 24, 24, 24, 24],
        "num_kv_heads": [3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5,
          5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6],
        "ffn_multipliers": [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8,
          1.9, 2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5,
          3.6, 3.7, 3.8, 3.9, 4.0], "vocab_size": 32000, "share_input_output_layers": true})",
                 3.036647424, 1e-5},
    VariedFamily{"RecurrentGemma 2B", R"({"model_type": "recurrent_gemma", "hidden_size": 2560,
        "intermediate_size": 15360, "num_hidden_layers": 26, "num_attention_heads": 10,
        "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000, "lru_width": 2560,
        "attention_window_size": 2048, "conv1d_width": 4,
        "block_types": ["recurrent", "recurrent", "attention"]})",
                 2.68, 0.002},
    VariedFamily{"Falcon-H1 34B", R"({"model_type": "falcon_h1", "hidden_size": 5120,
        "intermediate_size": 21504, "num_hidden_layers": 72, "num_attention_heads": 20,
        "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 261120, "mamba_d_conv": 4,
        "mamba_d_head": 128, "mamba_d_ssm": 4096, "mamba_d_state": 256, "mamba_n_groups": 2,
        "mamba_n_heads": 32, "mamba_chunk_size": 128, "tie_word_embeddings": false})",
                 33.6, 0.002},
    VariedFamily{"four layers of OLMo-Hybrid-7B, by hand from their code",
                 R"({"model_type": "olmo_hybrid", "hidden_act": "silu", "hidden_size": 3840,
        "intermediate_size": 11008, "num_hidden_layers": 4, "num_attention_heads": 30,
        "num_key_value_heads": 30, "vocab_size": 100352, "tie_word_embeddings": false,
        "linear_num_key_heads": 30, "linear_num_value_heads": 30, "linear_key_head_dim": 96,
        "linear_value_head_dim": 192, "linear_conv_kernel_dim": 4, "linear_allow_neg_eigval": true,
        "layer_types": ["linear_attention", "linear_attention", "linear_attention",
          "full_attention"]})",
                 1.603, 0.001},
    VariedFamily{"Phi-4-mini-flash", R"({"model_type": "phi4flash", "hidden_act": "silu",
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
        "num_attention_heads": 40, "num_key_value_heads": 20, "vocab_size": 200064,
        "sliding_window": 512, "mb_per_layer": 2, "mamba_d_state": 16, "mamba_d_conv": 4,
        "mamba_expand": 2, "mamba_dt_rank": "auto", "tie_word_embeddings": true})",
                 3.85, 0.002},
    VariedFamily{"xLSTM 7B", R"({"model_type": "xlstm", "embedding_dim": 4096, "num_blocks": 32,
        "num_heads": 8, "qk_dim_factor": 0.5, "v_dim_factor": 1.0, "ffn_proj_factor": 2.667,
        "ffn_round_up_to_multiple_of": 64, "mlstm_round_up_to_multiple_of": 64,
        "vocab_size": 50304, "tie_word_embeddings": false, "chunk_size": 64})",
                 6.87, 0.001},
    VariedFamily{"RWKV-4 14B", R"({"model_type": "rwkv", "hidden_size": 5120,
        "attention_hidden_size": 5120, "intermediate_size": 20480, "num_hidden_layers": 40,
        "vocab_size": 50277, "context_length": 1024, "tie_word_embeddings": false})",
                 14.15, 0.001},
    VariedFamily{"Eagle 7B (RWKV-5)", R"({"model_type": "rwkv5", "hidden_size": 4096,
        "attention_hidden_size": 4096, "head_size": 64, "intermediate_size": null,
        "num_attention_heads": 64, "num_hidden_layers": 32, "vocab_size": 65536})",
                 7.52, 0.001},
    VariedFamily{"Finch 7B (RWKV-6)", R"({"model_type": "rwkv6", "hidden_size": 4096,
        "attention_hidden_size": 4096, "head_size": 64, "intermediate_size": null,
        "num_attention_heads": 64, "num_hidden_layers": 32, "vocab_size": 65536})",
                 7.64, 0.001},
    VariedFamily{"Goose 2.9B (RWKV-7)", R"({"model_type": "rwkv7", "hidden_size": 2560,
        "head_dim": 64, "num_heads": 40, "intermediate_size": 10240, "num_hidden_layers": 32,
        "vocab_size": 65536, "decay_low_rank_dim": 96, "gate_low_rank_dim": 320,
        "a_low_rank_dim": 96, "v_low_rank_dim": 64, "attn": null})",
                 2.95, 0.002},
};

std::string_view mixer_of(const TransformerShape& m, int layer) {
  return info(m.kind(layer).mixer).name;
}

}  // namespace

TEST_CASE("read_hugging_face: layers that differ have the weights that were published") {
  for (const VariedFamily& one : kVariedFamilies) {
    CAPTURE(one.name);
    const HuggingFaceModel model = read_varied_config(one.config);
    CHECK(parameter_counts(model.shape).total / 1e9 ==
          doctest::Approx(one.total).epsilon(one.within));
    CHECK(std::ssize(model.shape.pattern) == model.shape.layers);
  }
}

TEST_CASE("read_hugging_face: where no layer attends, heads of states are what ranks share out") {
  const auto find = [](std::string_view name) {
    const auto* one = std::ranges::find(kVariedFamilies, name, &VariedFamily::name);
    REQUIRE(one != kVariedFamilies.end());
    return read_varied_config(one->config).shape;
  };
  CHECK(find("xLSTM 7B").heads == 8);
  CHECK(find("Eagle 7B (RWKV-5)").heads == 64);
  CHECK(find("RWKV-4 14B").heads == 64);  // blocks of 5,120 columns
  CHECK_FALSE(uneven_parts(find("xLSTM 7B"), 8));
  REQUIRE(uneven_parts(find("xLSTM 7B"), 16));
  CHECK(uneven_parts(find("xLSTM 7B"), 16)->parts == 8);
  CHECK_FALSE(uneven_parts(find("RWKV-4 14B"), 8));
  const TransformerShape codestral =
      read_varied_config(R"({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 2,
          "state_size": 128, "num_heads": 128, "head_dim": 64, "n_groups": 8, "expand": 2,
          "vocab_size": 32768, "hidden_act": "silu"})")
          .shape;
  CHECK(codestral.heads == 128);
  CHECK(codestral.heads * codestral.head_dim == codestral.mamba.inner());
  REQUIRE(uneven_parts(codestral, 16));
  CHECK(uneven_parts(codestral, 16)->what == "Mamba groups");
}

TEST_CASE("read_hugging_face: RWKV-7's MLP is a share of its width, its values as wide as it is") {
  const std::string written =
      R"({"model_type": "rwkv7", "hidden_size": 1000, "head_dim": 50, "num_hidden_layers": 2,
          "vocab_size": 100, "decay_low_rank_dim": 8, "gate_low_rank_dim": 8, "a_low_rank_dim": 8,
          "v_low_rank_dim": 8, )";
  CHECK(read_varied_config(written + R"("value_dim": [1000, 1000]})").shape.ffn == 4000);
  CHECK(read_varied_config(written + R"("hidden_ratio": 3.5})").shape.ffn == 3520);
  CHECK(varied_complaint(written + R"("value_dim": [1000, 2000]})") ==
        "config.json#/value_dim/1: found 2000; allowed: 1000 (hidden_size)");
}

TEST_CASE("read_hugging_face: layers that differ are of the kinds that their files say") {
  const TransformerShape neo = read_varied_config(kVariedFamilies[0].config).shape;
  CHECK(shape_of(neo, neo.kind(0)).window == 0);
  CHECK(shape_of(neo, neo.kind(1)).window == 256);
  CHECK(neo.learned_positions);
  const TransformerShape elm = read_varied_config(kVariedFamilies[1].config).shape;
  CHECK(shape_of(elm, elm.kind(0)).heads == 12);
  CHECK(shape_of(elm, elm.kind(0)).ffn == 768);
  CHECK(shape_of(elm, elm.kind(15)).kv_heads == 5);
  CHECK(shape_of(elm, elm.kind(15)).ffn == 5120);
  const TransformerShape griffin = read_varied_config(kVariedFamilies[3].config).shape;
  CHECK(mixer_of(griffin, 0) == "gated_recurrence");
  CHECK(mixer_of(griffin, 2) == "attention");
  CHECK(shape_of(griffin, griffin.kind(2)).window == 2048);
  CHECK(mixer_of(griffin, 25) == "gated_recurrence");
  const TransformerShape falcon = read_varied_config(kVariedFamilies[4].config).shape;
  CHECK(mixer_of(falcon, 71) == "attention_and_mamba");
  CHECK(falcon.mamba.inner() == 4096);
  const TransformerShape flash = read_varied_config(kVariedFamilies[6].config).shape;
  CHECK(mixer_of(flash, 16) == "mamba");
  CHECK(mixer_of(flash, 18) == "gated_memory");
  CHECK(shape_of(flash, flash.kind(15)).window == 512);
  CHECK(shape_of(flash, flash.kind(17)).window == 0);
  CHECK_FALSE(shape_of(flash, flash.kind(17)).shared_keys);
  CHECK(shape_of(flash, flash.kind(19)).shared_keys);
}

TEST_CASE("read_hugging_face: what a family with keys of its own cannot have is said by its key") {
  CHECK(varied_complaint(R"({"model_type": "gpt_neo", "hidden_size": 64, "num_layers": 3,
          "num_heads": 4, "vocab_size": 100, "attention_layers": ["global", "local"]})") ==
        "config.json#/attention_layers: found an array; allowed: 3 layers (num_layers)");
  CHECK(varied_complaint(R"({"model_type": "rwkv6", "hidden_size": 2048, "num_hidden_layers": 24,
          "vocab_size": 32000, "expand_k": 0.5})")
            .find("config.json#/expand_k: found 0.5; allowed: a model without this key") == 0);
  CHECK(varied_complaint(R"({"model_type": "falcon_h1", "hidden_size": 1024,
          "intermediate_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 8,
          "head_dim": 64, "vocab_size": 100, "mamba_n_heads": 24, "mamba_d_head": 64,
          "mamba_d_ssm": 1024})")
            .find("config.json#/mamba_n_heads: found 24; allowed: a multiple of") == 0);
  CHECK(varied_complaint(R"({"model_type": "openelm", "model_dim": 64, "vocab_size": 100,
          "num_transformer_layers": 2, "num_query_heads": [4], "num_kv_heads": [2, 2],
          "ffn_multipliers": [1, 2]})") ==
        "config.json#/num_query_heads: found an array; allowed: an array of 2 "
        "(num_transformer_layers)");
}

namespace {

/// Layers of Gemma 4, of which the last of every few attends to all.
std::string gemma_4(int layers, int every, std::string_view keys) {
  std::string types;
  for (int i = 0; i < layers; ++i) {
    types += std::string(i > 0 ? ", " : "") +
             ((i + 1) % every == 0 ? "\"full_attention\"" : "\"sliding_attention\"");
  }
  return R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text",
      "hidden_activation": "gelu_pytorch_tanh", "num_attention_heads": 8, "head_dim": 256,
      "global_head_dim": 512, "num_global_key_value_heads": null, "attention_k_eq_v": false,
      "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "sliding_window": 512,
      "hidden_size_per_layer_input": 256, "enable_moe_block": false, "num_experts": null,
      "tie_word_embeddings": true, )" +
         std::string(keys) + R"(, "num_hidden_layers": )" + std::to_string(layers) +
         R"(, "layer_types": [)" + types + "]}}";
}

}  // namespace

// 5.1 and 8 billion with all embeddings, 2.3 and 4.5 without, by
// https://huggingface.co/google/gemma-4-E2B; of these some 0.47 see and hear.
TEST_CASE(
    "read_hugging_face: Gemma 4's layers take keys from others and have inputs of their own") {
  constexpr double kTowers = 0.47;
  const TransformerShape small =
      read_varied_config(gemma_4(35, 5, R"("hidden_size": 1536, "intermediate_size": 6144,
          "num_key_value_heads": 1, "num_kv_shared_layers": 20, "use_double_wide_mlp": true)"))
          .shape;
  const TransformerShape large =
      read_varied_config(gemma_4(42, 6, R"("hidden_size": 2560, "intermediate_size": 10240,
          "num_key_value_heads": 2, "num_kv_shared_layers": 18, "use_double_wide_mlp": false)"))
          .shape;
  const auto billions = [](const TransformerShape& m) { return parameter_counts(m).total / 1e9; };
  const auto words = [](const TransformerShape& m) { return embedding_parameters(m) / 1e9; };
  CHECK(std::abs(billions(small) + kTowers - 5.1) < 0.05);
  CHECK(std::abs(billions(large) + kTowers - 8) < 0.5);
  CHECK(std::abs(billions(small) - words(small) + kTowers - 2.3) < 0.055);
  CHECK(std::abs(billions(large) - words(large) + kTowers - 4.5) < 0.06);
  const KindShape own = shape_of(small, small.kind(14)), shared = shape_of(small, small.kind(15));
  CHECK_FALSE(own.shared_keys);
  CHECK(shared.shared_keys);
  CHECK(shared.ffn == 2 * own.ffn);
  CHECK(own.head_dim == 512);
  CHECK(shared.window == 512);
  CHECK(varied_complaint(R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
          "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100,
          "hidden_size_per_layer_input": 16})") ==
        "config.json#/hidden_size_per_layer_input: found 16; allowed: 0: how others add it is not "
        "known");
}

namespace {

std::string gemma_3n(int layers, int ffn, int shared) {
  std::string types, widths;
  for (int i = 0; i < layers; ++i) {
    types += std::string(i > 0 ? ", " : "") +
             (i % 5 == 4 ? "\"full_attention\"" : "\"sliding_attention\"");
    widths += (i > 0 ? ", " : "") + std::to_string(ffn);
  }
  return R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text",
      "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2048, "num_attention_heads": 8,
      "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 262400, "sliding_window": 512,
      "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
      "altup_num_inputs": 4, "laurel_rank": 64, "num_kv_shared_layers": )" +
         std::to_string(shared) + R"(, "num_hidden_layers": )" + std::to_string(layers) +
         R"(, "intermediate_size": [)" + widths + R"(], "layer_types": [)" + types + "]}}";
}

}  // namespace

// 1.91 billion of E2B beside the embeddings, and 4 of E4B
// (https://developers.googleblog.com/en/introducing-gemma-3n-developer-guide).
TEST_CASE("read_hugging_face: Gemma 3n's layers alternate between streams") {
  const auto beside = [](const HuggingFaceModel& model) {
    const TransformerShape& m = model.shape;
    const double tables = 262'400.0 * m.hidden + 262'144.0 * 256 * m.layers;
    return (parameter_counts(m).total - tables) / 1e9;
  };
  const HuggingFaceModel small = read_varied_config(gemma_3n(30, 8192, 10));
  CHECK(beside(small) == doctest::Approx(1.91).epsilon(0.003));
  CHECK(beside(read_varied_config(gemma_3n(35, 16384, 15))) ==
        doctest::Approx(4.0).epsilon(0.0125));
  const TransformerShape& m = small.shape;
  CHECK(m.alternating);
  CHECK(m.residual_streams == 4);
  CHECK(shape_of(m, m.kind(19)).side_rank == 64);
  CHECK_FALSE(shape_of(m, m.kind(19)).shared_keys);
  CHECK(shape_of(m, m.kind(20)).shared_keys);
  CHECK(std::ranges::any_of(small.assumptions, [](const std::string& words) {
    return words.find("products between its streams") != std::string::npos;
  }));
}

// 561 million (https://github.com/karpathy/nanochat/discussions/1), without learnt norms.
TEST_CASE("read_hugging_face: nanochat's MLP has no gate") {
  const TransformerShape m = read_varied_config(R"({"model_type": "nanochat",
      "hidden_act": "relu2", "hidden_size": 1280, "intermediate_size": 5120,
      "num_hidden_layers": 20, "num_attention_heads": 10, "num_key_value_heads": 10,
      "vocab_size": 65536, "tie_word_embeddings": false})")
                                 .shape;
  CHECK(parameter_counts(m).total / 1e6 == doctest::Approx(561).epsilon(0.001));
}

// 389 billion, 52 at work (Sun et al. 2024, arXiv:2411.02265, abstract).
TEST_CASE(
    "read_hugging_face: every other layer of Hunyuan Large takes the keys of the one before") {
  const TransformerShape m = read_varied_config(R"({"model_type": "hunyuan", "hidden_act": "silu",
      "hidden_size": 6400, "intermediate_size": 18304, "num_hidden_layers": 64,
      "num_attention_heads": 80, "num_key_value_heads": 8, "vocab_size": 129024,
      "use_mla": false, "kv_lora_rank": 512,
      "num_experts": 16, "moe_topk": 1, "num_shared_expert": 1, "use_mixed_mlp_moe": true,
      "use_cla": true, "cla_share_factor": 2, "use_qk_norm": true,
      "tie_word_embeddings": true})")
                                 .shape;
  const ParameterCounts counts = parameter_counts(m);
  CHECK(std::abs(counts.total / 1e9 - 389) < 0.5);
  CHECK(std::abs(counts.active / 1e9 - 52) < 0.8);
  CHECK_FALSE(shape_of(m, m.kind(0)).shared_keys);
  CHECK(shape_of(m, m.kind(1)).shared_keys);
  CHECK(shape_of(m, m.kind(1)).experts);
}

// DeciLM-7B has 67 heads of keys and values in its 32 layers, here in another order, and 7.04
// billion weights (https://huggingface.co/Deci/DeciLM-7B).
TEST_CASE("read_hugging_face: DeciLM says how many heads of keys each layer has") {
  const std::string start = R"({"model_type": "deci", "hidden_act": "silu", "hidden_size": 4096,
      "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "vocab_size": 32000, "tie_word_embeddings": false, "num_key_value_heads_per_layer": )";
  const TransformerShape m = read_varied_config(start + R"([1, 1, 2, 4, 4, 4, 4, 2, 4, 2, 2, 2, 2,
      2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 2, 1, 1, 1, 2]})")
                                 .shape;
  int groups = 0;
  for (int i = 0; i < m.layers; ++i) groups += shape_of(m, m.kind(i)).kv_heads;
  CHECK(groups == 67);
  CHECK(parameter_counts(m).total / 1e9 == doctest::Approx(7.04).epsilon(0.001));
  CHECK(varied_complaint(start + R"([1, 1]})").find("num_key_value_heads_per_layer") !=
        std::string::npos);
}

TEST_CASE(
    "read_hugging_face: weights that several layers or passes share are not taken for a layer's "
    "own") {
  for (const std::string_view key : {"experts_shared_frequency", "loop_num", "layer_sharing"}) {
    CAPTURE(key);
    const std::string at = "config.json#/" + std::string(key) + ": found 3; allowed: a decoder ";
    CHECK(varied_complaint(R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
            "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, ")" +
                           std::string(key) + "\": 3}")
              .find(at) == 0);
  }
}

TEST_CASE("read_hugging_face: MiniCPM3's values are as wide as the stream over its heads") {
  const HuggingFaceModel model = read_varied_config(R"({"model_type": "minicpm3",
      "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 6400,
      "num_hidden_layers": 62, "num_attention_heads": 40, "num_key_value_heads": 40,
      "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
      "vocab_size": 73448, "scale_depth": 1.4})");
  CHECK(model.shape.latent.value_dim == 64);
  CHECK(parameter_counts(model.shape).total / 1e9 == doctest::Approx(4.07).epsilon(0.002));
}

}  // namespace lockstep
