#include "models/spec/hugging_face.hpp"

#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/spec/transformer.hpp"

namespace lockstep {
namespace {

/// The keys of a published config.json that matter, and the weights of that model's checkpoint
/// (safetensors index on Hugging Face).
struct PublishedConfig {
  std::string_view name;
  std::string_view text;
  double parameters;
};
constexpr std::array kConfigs{
    PublishedConfig{"Llama-3.1-8B",
                    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false,
        "max_position_embeddings": 131072})",
                    8'030'261'248.0},
    PublishedConfig{"Mistral-7B-v0.1",
                    R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "sliding_window": 4096, "vocab_size": 32000})",
                    7'241'732'096.0},
    PublishedConfig{"gpt-neox-20b",
                    R"({"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
        "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432,
        "tie_word_embeddings": false})",
                    20'554'567'680.0},
    PublishedConfig{"gemma-7b",
                    R"({"model_type": "gemma", "head_dim": 256, "hidden_size": 3072,
        "intermediate_size": 24576, "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 16, "vocab_size": 256000})",
                    8'537'680'896.0},
    PublishedConfig{"gpt2",
                    R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
        "n_inner": null, "n_positions": 1024, "vocab_size": 50257})",
                    124'439'808.0},
    PublishedConfig{"opt-125m",
                    R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072,
        "num_attention_heads": 12, "num_hidden_layers": 12, "max_position_embeddings": 2048,
        "vocab_size": 50272})",
                    125'239'296.0},
    PublishedConfig{"opt-350m",
                    R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096,
        "num_attention_heads": 16, "num_hidden_layers": 24, "max_position_embeddings": 2048,
        "word_embed_proj_dim": 512, "do_layer_norm_before": false, "vocab_size": 50272})",
                    331'196'416.0},
    PublishedConfig{"Mixtral-8x7B-v0.1",
                    R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
        "num_experts_per_tok": 2, "num_local_experts": 8, "sliding_window": null,
        "tie_word_embeddings": false, "vocab_size": 32000})",
                    46'702'792'704.0},
    PublishedConfig{"DeepSeek-V2",
                    R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1,
        "hidden_size": 5120, "intermediate_size": 12288, "kv_lora_rank": 512,
        "moe_intermediate_size": 1536, "moe_layer_freq": 1, "n_routed_experts": 160,
        "n_shared_experts": 2, "num_attention_heads": 128, "num_experts_per_tok": 6,
        "num_hidden_layers": 60, "num_key_value_heads": 128, "q_lora_rank": 1536,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 102400})",
                    235'741'434'880.0},
    PublishedConfig{"DeepSeek-V2-Lite",
                    R"({"model_type": "deepseek_v2", "first_k_dense_replace": 1,
        "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
        "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_attention_heads": 16, "num_experts_per_tok": 6,
        "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 102400})",
                    15'706'484'224.0},
};

// The reader's own keys of a small mixture of experts; the layers that have them come last.
constexpr std::string_view kSmallQwen =
    R"({"model_type": "qwen3_moe", "hidden_size": 64, "intermediate_size": 256,
        "moe_intermediate_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 8, "num_experts": 16, "num_experts_per_tok": 2, "vocab_size": 1000)";
// A windowed model but for what says which layers are.
constexpr std::string_view kSmallQwen2 =
    R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 256,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 8,
        "vocab_size": 1000, "use_sliding_window": true, "sliding_window": 512)";

HuggingFaceModel read(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}

}  // namespace

TEST_CASE("read_hugging_face: published configs give the published number of weights") {
  for (const PublishedConfig& row : kConfigs) {
    CAPTURE(row.name);
    CHECK(total_parameters(read(row.text).shape) == row.parameters);
  }
}

TEST_CASE("read_hugging_face: a table of words of another width is OPT's, and refused of others") {
  const HuggingFaceModel opt =
      read(R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "vocab_size": 50272,
               "num_attention_heads": 16, "num_hidden_layers": 24, "word_embed_proj_dim": 512,
               "max_position_embeddings": 2048, "enable_bias": false})");
  CHECK_FALSE(opt.shape.biases);
  CHECK(opt.assumptions.empty());
  CHECK(table_parameters(opt.shape) == 50272.0 * 512);
  // Positions are as wide as the layers, and a product stands at either end.
  CHECK(embedding_parameters(opt.shape) == 50272.0 * 512 + 2050.0 * 1024 + 2.0 * 512 * 1024);
  CHECK(output_parameters(opt.shape) == 1024);
  const HuggingFaceModel bare =
      read(R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "vocab_size": 50272,
               "num_attention_heads": 12, "num_hidden_layers": 12,
               "max_position_embeddings": 2048, "_remove_final_layer_norm": true})");
  CHECK(output_parameters(bare.shape) == 0);
  CHECK_THROWS_WITH_AS(
      (void)read(R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "vocab_size": 50272,
                     "num_attention_heads": 12, "num_hidden_layers": 12,
                     "max_position_embeddings": 2048, "word_embed_proj_dim": 1024})"),
      doctest::Contains("/word_embed_proj_dim: found 1024; allowed: at most 768"), InputError);
  const auto llama = [](const std::string& more) {
    return R"({"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096,
               "num_attention_heads": 16, "num_hidden_layers": 24, "vocab_size": 32000, )" +
           more + "}";
  };
  CHECK_NOTHROW((void)read(llama(R"("embedding_size": 1024)")));
  CHECK_THROWS_WITH_AS((void)read(llama(R"("embedding_size": 512)")),
                       doctest::Contains("/embedding_size: found 512; allowed: 1024"), InputError);
  CHECK_THROWS_WITH_AS((void)read(llama(R"("moe_num_experts": 8)")),
                       doctest::Contains("/moe_num_experts"), InputError);
}

TEST_CASE("read_hugging_face: Qwen2 7B lacks only its QKV biases") {
  const HuggingFaceModel model =
      read(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
               "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
               "sliding_window": 131072, "use_sliding_window": false, "vocab_size": 152064})");
  CHECK(total_parameters(model.shape) == 7'615'616'512.0 - 28 * (3584 + 2 * 512));
  CHECK(model.assumptions.empty());
}

TEST_CASE("read_hugging_face: Qwen1.5-MoE lacks its QKV biases and the gate of its shared expert") {
  const TransformerShape shape =
      read(R"({"model_type": "qwen2_moe", "decoder_sparse_step": 1, "hidden_size": 2048,
               "intermediate_size": 5632, "max_window_layers": 21, "moe_intermediate_size": 1408,
               "num_attention_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
               "num_hidden_layers": 24, "num_key_value_heads": 16,
               "shared_expert_intermediate_size": 5632, "sliding_window": 32768,
               "use_sliding_window": false, "vocab_size": 151936})")
          .shape;
  CHECK(total_parameters(shape) == 14'315'784'192.0 - 24 * (3 * 2048 + 2048));
  CHECK(shape.window == 0);
}

TEST_CASE("read_hugging_face: DeepSeek-V3 predicts a second token, behind three dense layers") {
  const HuggingFaceModel model =
      read(R"({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "hidden_size": 7168,
               "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048,
               "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1,
               "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
               "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536,
               "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
               "vocab_size": 129280})");
  // README_WEIGHTS.md of the model: 671 B and 11.5 B, rounded to the last digit.
  CHECK(std::abs(total_parameters(model.shape) - 682.5e9) < 0.55e9);
  CHECK(model.shape.predicted_tokens == 1);
  CHECK_FALSE(model.shape.kind(2).experts);
  CHECK(model.shape.kind(3).experts);
  CHECK(model.assumptions.empty());
}

TEST_CASE("read_hugging_face: Nemotron 3 Nano is a string of blocks") {
  constexpr std::string_view kNano =
      R"({"model_type": "nemotron_h", "hidden_size": 2688, "intermediate_size": 1856,
          "num_hidden_layers": 52, "num_attention_heads": 32, "num_key_value_heads": 2,
          "head_dim": 128, "n_routed_experts": 128, "num_experts_per_tok": 6,
          "moe_intermediate_size": 1856, "n_shared_experts": 1,
          "moe_shared_expert_intermediate_size": 3712, "vocab_size": 131072,
          "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
          "conv_kernel": 4, "hybrid_override_pattern":
          "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"})";
  const TransformerShape shape = read(kNano).shape;
  CHECK(shape.kind(0).mixer == Mixer::mamba);
  CHECK(shape.kind(1).experts);
  CHECK(shape.kind(5).mixer == Mixer::attention);
  CHECK_FALSE(shape.kind(5).feed_forward);
  CHECK(total_parameters(shape) == doctest::Approx(31.6e9).epsilon(0.01));
  std::string short_one{kNano};
  short_one.replace(short_one.find("MEMEM*"), 6, "MEMEM");
  CHECK_THROWS_AS((void)read(short_one), InputError);
}

TEST_CASE(
    "read_hugging_face: a layer of Jamba is a mixer, Mamba-1 or attention, and experts or not") {
  const TransformerShape shape =
      read(R"({"model_type": "jamba", "hidden_size": 4096, "intermediate_size": 14336,
               "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
               "attn_layer_offset": 4, "attn_layer_period": 8, "expert_layer_offset": 1,
               "expert_layer_period": 2, "num_experts": 16, "num_experts_per_tok": 2,
               "mamba_dt_rank": 256, "mamba_d_state": 16, "vocab_size": 65536})")
          .shape;
  CHECK(shape.layers == 64);
  CHECK(shape.pattern.substr(0, 16) == "M-MEM-ME*-MEM-ME");
  CHECK(shape.mamba.step_rank == 256);
  // 52 billion weights (arXiv:2403.19887).
  CHECK(total_parameters(shape) == doctest::Approx(51.6e9).epsilon(0.005));
}

TEST_CASE("read_hugging_face: gpt-oss has a window in every second layer, the first included") {
  const TransformerShape shape =
      read(R"({"model_type": "gpt_oss", "attention_bias": true, "head_dim": 64,
               "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
               "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
               "num_local_experts": 32, "sliding_window": 128, "vocab_size": 201088})")
          .shape;
  CHECK(shape.window == 128);
  CHECK(shape.window_interval == 2);
  // The shape has biases of norms, and one of an MLP, but none of experts and router, no sinks.
  const double more = 24 * (2 * 2880 + 2880) + 2880;
  const double less = 24 * (32 * 3 * 2880 + 32 + 64);
  CHECK(total_parameters(shape) == 20'914'757'184.0 + more - less);
}

TEST_CASE("read_hugging_face: of Llama 4 the language model, three of four layers in chunks") {
  const HuggingFaceModel model =
      read(R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text",
               "attention_chunk_size": 8192, "head_dim": 128, "hidden_size": 5120,
               "interleave_moe_layer_step": 2, "intermediate_size": 8192,
               "intermediate_size_mlp": 16384, "num_attention_heads": 40,
               "num_experts_per_tok": 1, "num_hidden_layers": 48, "num_key_value_heads": 8,
               "num_local_experts": 128, "vocab_size": 202048}, "vision_config": {}})");
  CHECK_FALSE(model.shape.kind(0).experts);
  CHECK(model.shape.kind(1).experts);
  // Published: 400 B in all, of which the vision encoder is 0.9 B.
  CHECK(total_parameters(model.shape) == doctest::Approx(400e9).epsilon(0.005));
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions[0] == "model: its language part; what it sees with is left out");
  CHECK(model.shape.window == 8192);
  CHECK(shape_of(model.shape, model.shape.kind(2)).chunked);
  CHECK(shape_of(model.shape, model.shape.kind(3)).window == 0);
}

namespace {

// A small Llama 4 but for what says which layers are in chunks.
constexpr std::string_view kSmallLlama4 =
    R"({"model_type": "llama4_text", "head_dim": 16, "hidden_size": 64, "intermediate_size": 128,
        "intermediate_size_mlp": 256, "num_attention_heads": 4, "num_experts_per_tok": 1,
        "num_hidden_layers": 4, "num_key_value_heads": 2, "num_local_experts": 8,
        "vocab_size": 1000)";

}  // namespace

TEST_CASE("read_hugging_face: which layers of Llama 4 are in chunks, four ways to say it") {
  const auto llama = [](std::string_view keys) {
    return read(std::string(kSmallLlama4) + std::string(keys) + "}");
  };
  CHECK(llama("").shape.window == 8192);
  CHECK(llama("").shape.window_layers == 3);
  CHECK(llama(R"(, "no_rope_layer_interval": 2)").shape.window_interval == 2);
  CHECK(llama(R"(, "no_rope_layers": [1, 0, 1, 0])").shape.window_layers == 1);
  const HuggingFaceModel named = llama(R"(, "attention_chunk_size": 64,
      "layer_types": ["chunked_attention", "full_attention", "chunked_attention",
                      "full_attention"])");
  CHECK(named.shape.chunked);
  CHECK(named.shape.window == 64);
  CHECK(llama(R"(, "attention_chunk_size": null)").shape.window == 0);
  const HuggingFaceModel odd = llama(R"(, "no_rope_layers": [0, 1, 1, 0])");
  CHECK_FALSE(odd.shape.chunked);
  REQUIRE(odd.assumptions.size() == 1);
  CHECK(odd.assumptions[0] ==
        "attention: over all earlier tokens; the model's chunk of 8192 tokens is left out");
  CHECK_THROWS_WITH_AS(llama(R"(, "no_rope_layers": [1])"),
                       "config.json#/no_rope_layers: found an array; allowed: an array of 4 "
                       "(num_hidden_layers)",
                       InputError);
}

namespace {

/// A family whose attention and MLP are beside each other.
struct ParallelConfig {
  std::string_view name, text;
  double parameters;  ///< of the family's code
  double more;        ///< that the shape has and the code has not, or the other way round
  bool separate_norms;
};
// The counts are those of the published checkpoints: 6.05 B, 20.55 B, 6.92 B, 41.30 B, 2.78 B,
// 34.98 B, 8.03 B.
constexpr std::array kParallel{
    // Attention has no biases.
    ParallelConfig{"GPT-J 6B",
                   R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": null,
                       "n_layer": 28, "n_positions": 2048, "vocab_size": 50400})",
                   6'050'882'784.0, 28.0 * 4 * 4096, false},
    ParallelConfig{"GPT-NeoX 20B",
                   R"({"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
                       "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432})",
                   20'554'567'680.0, 0, true},
    // Norms have biases.
    ParallelConfig{"Falcon 7B",
                   R"({"model_type": "falcon", "alibi": false, "bias": false, "hidden_size": 4544,
                       "multi_query": true, "new_decoder_architecture": false,
                       "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": true,
                       "vocab_size": 65024})",
                   6'921'720'704.0, -33.0 * 4544, false},
    ParallelConfig{"Falcon 40B",
                   R"({"model_type": "falcon", "alibi": false, "bias": false, "hidden_size": 8192,
                       "new_decoder_architecture": true, "num_attention_heads": 128,
                       "num_hidden_layers": 60, "num_kv_heads": 8, "vocab_size": 65024})",
                   41'303'293'952.0, -121.0 * 8192, true},
    ParallelConfig{"phi-2",
                   R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
                       "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 51200})",
                   2'779'683'840.0, 0, false},
    ParallelConfig{"Command R",
                   R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
                       "num_attention_heads": 64, "num_hidden_layers": 40,
                       "num_key_value_heads": 64, "vocab_size": 256000})",
                   34'980'831'232.0, 0, false},
    ParallelConfig{"Command R7B",
                   R"({"model_type": "cohere2", "head_dim": 128, "hidden_size": 4096,
                       "intermediate_size": 14336, "num_attention_heads": 32,
                       "num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": 4096,
                       "sliding_window_pattern": 4, "vocab_size": 256000})",
                   8'028'033'024.0, 0, false},
};

}  // namespace

TEST_CASE("read_hugging_face: attention and MLP beside each other, where the family has them so") {
  for (const ParallelConfig& row : kParallel) {
    CAPTURE(row.name);
    const HuggingFaceModel model = read(row.text);
    CHECK(model.shape.parallel);
    CHECK(model.shape.kind(0).parallel);
    CHECK(model.shape.separate_norms == row.separate_norms);
    CHECK(model.assumptions.empty());
    CHECK(total_parameters(model.shape) == row.parameters + row.more);
  }
  const TransformerShape command = read(kParallel.back().text).shape;
  CHECK(command.window == 4096);
  CHECK(command.window_interval == 4);
  CHECK(command.window_layers == 3);
  CHECK(command.kind(0).windowed);
  const TransformerShape one_by_one =
      read(R"({"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 256,
               "num_attention_heads": 4, "num_hidden_layers": 4, "vocab_size": 1000,
               "use_parallel_residual": false})")
          .shape;
  CHECK_FALSE(one_by_one.parallel);
  CHECK_FALSE(one_by_one.separate_norms);
}

TEST_CASE("read_hugging_face: layers with experts, where the shape can say which") {
  const auto layout = [](std::string_view keys) {
    return read(std::string(kSmallQwen) + std::string(keys) + "}").shape.experts;
  };
  CHECK(layout("").interval == 1);
  CHECK(layout(R"(, "decoder_sparse_step": 2)").interval == 2);
  CHECK(layout(R"(, "decoder_sparse_step": 2)").leading_dense == 0);
  CHECK(layout(R"(, "mlp_only_layers": [0, 1])").leading_dense == 2);
  CHECK(layout(R"(, "mlp_only_layers": [0, 1])").interval == 1);
  CHECK(layout(R"(, "mlp_only_layers": [1], "decoder_sparse_step": 2)").leading_dense == 2);
  CHECK(layout(R"(, "mlp_only_layers": [0, 1, 2, 3, 4, 5, 6])").leading_dense == 7);
  const std::string refused =
      "config.json: found an object; allowed: a model with experts in every n-th layer behind "
      "layers without";
  CHECK_THROWS_WITH_AS(layout(R"(, "mlp_only_layers": [3])"), refused.c_str(), InputError);
  CHECK_THROWS_WITH_AS(layout(R"(, "mlp_only_layers": [7])"), refused.c_str(), InputError);
  CHECK_THROWS_WITH_AS(layout(R"(, "decoder_sparse_step": 9)"), refused.c_str(), InputError);
}

TEST_CASE("read_hugging_face: windows, where the shape can say which layers have one") {
  CHECK(read(kConfigs[1].text).shape.window == 4096);
  CHECK(read(kConfigs[1].text).shape.window_interval == 1);
  const auto qwen = [](std::string_view keys) {
    return read(std::string(kSmallQwen2) + std::string(keys) + "}");
  };
  CHECK(qwen(R"(, "max_window_layers": 0)").shape.window == 512);
  CHECK(qwen(R"(, "max_window_layers": 8)").shape.window == 0);
  CHECK(qwen(R"(, "max_window_layers": 8)").assumptions.empty());
  const HuggingFaceModel mixed = qwen(R"(, "max_window_layers": 7)");
  CHECK(mixed.shape.window == 0);
  REQUIRE(mixed.assumptions.size() == 1);
  CHECK(mixed.assumptions[0] ==
        "attention: over all earlier tokens; the model's sliding window of 512 tokens is left out");
  const std::string named = R"(, "layer_types": ["sliding_attention", "full_attention",
      "full_attention", "full_attention", "sliding_attention", "full_attention",
      "full_attention", "full_attention"])";
  CHECK(qwen(named).shape.window_interval == 4);
  // As Gemma 3, three of four here.
  const std::string most = R"(, "layer_types": ["sliding_attention", "sliding_attention",
      "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
      "sliding_attention", "full_attention"])";
  CHECK(qwen(most).shape.window == 512);
  CHECK(qwen(most).shape.window_interval == 4);
  CHECK(qwen(most).shape.window_layers == 3);
  CHECK_THROWS_WITH_AS(qwen(R"(, "layer_types": ["full_attention"])"),
                       "config.json#/layer_types: found an array; allowed: an array of 8 "
                       "(num_hidden_layers)",
                       InputError);
}

TEST_CASE("read_hugging_face: other families and misfits are refused by name") {
  std::string complaint;
  try {
    (void)read(R"({"model_type": "lama"})");
  } catch (const InputError& error) {
    complaint = error.what();
  }
  CHECK(complaint.starts_with(
      "config.json#/model_type: found \"lama\"; allowed: llama, mistral, mixtral, qwen2, "));
  CHECK(complaint.ends_with(" more. Did you mean \"llama\"?"));
  CHECK_THROWS_WITH_AS(read(R"({"model_type": "mistral", "num_local_experts": 8})"),
                       "config.json#/num_local_experts: found 8; allowed: a dense model, without "
                       "this key",
                       InputError);
  CHECK_THROWS_WITH_AS(
      read(R"({"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2,
               "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
               "vocab_size": 1000, "num_local_experts": 4, "num_experts_per_tok": 8})"),
      "config.json#/num_experts_per_tok: found 8; allowed: at most 4 (num_local_experts)",
      InputError);
  CHECK_THROWS_WITH_AS(read(R"({"architectures": ["LlamaForCausalLM"]})"),
                       "config.json: found an object without \"model_type\"; allowed: an object "
                       "with it",
                       InputError);
  CHECK_THROWS_WITH_AS(
      read(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
               "num_attention_heads": 6, "num_key_value_heads": 4})"),
      "config.json#/num_key_value_heads: found 4; allowed: heads that are a multiple of the "
      "key-value heads; here 6 and 4",
      InputError);
  CHECK_THROWS_WITH_AS(
      read(R"({"model_type": "llama", "hidden_size": 5120, "num_hidden_layers": 2,
               "num_attention_heads": 41})"),
      "config.json#/num_attention_heads: found 41; allowed: a divisor of the width 5120 "
      "(hidden_size), where \"head_dim\" is left out",
      InputError);
}

}  // namespace lockstep
