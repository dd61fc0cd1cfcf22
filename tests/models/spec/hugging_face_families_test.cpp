// Families of config.json with names of their own, and keys that refuse a file.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_family(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}
std::string family_complaint(std::string_view text) {
  try {
    (void)read_family(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// The keys that matter of a published file, and the weights of its checkpoint (safetensors index
/// on https://huggingface.co).
struct CheckpointOf {
  std::string_view name, text;
  double parameters, left_out;
};
constexpr std::array kCheckpoints{
    CheckpointOf{"Phi-3-mini-4k-instruct",
                 R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 32064, "hidden_act": "silu", "sliding_window": 2047})",
                 3'821'079'552.0, 0.0},
    CheckpointOf{"Phi-4-mini-instruct",
                 R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
        "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8,
        "vocab_size": 200064, "hidden_act": "silu", "sliding_window": 262144,
        "tie_word_embeddings": true})",
                 3'836'021'760.0, 0.0},
    CheckpointOf{"Phi-3.5-MoE-instruct",
                 R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 32064, "hidden_act": "silu", "num_local_experts": 16,
        "num_experts_per_tok": 2, "sliding_window": 131072, "attention_bias": true,
        "lm_head_bias": true})",
                 41'873'153'344.0, 593'920.0},  // biases of attention and of norms
    CheckpointOf{"EXAONE-3.5-7.8B-Instruct",
                 R"({"model_type": "exaone", "activation_function": "silu", "hidden_size": 4096,
        "intermediate_size": 14336, "num_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 102400, "head_dim": 128,
        "tie_word_embeddings": false})",
                 7'818'448'896.0, 0.0},
    CheckpointOf{
        "chatglm3-6b",
        R"({"model_type": "chatglm", "num_layers": 28, "padded_vocab_size": 65024, "hidden_size":
        4096, "ffn_hidden_size": 13696, "num_attention_heads": 32, "multi_query_attention":
        true, "multi_query_group_num": 2, "kv_channels": 128, "add_qkv_bias": true,
        "seq_length": 8192})",
        6'243'584'000.0, 129'024.0},  // biases of queries, keys and values
    CheckpointOf{"Qwen-7B",
                 R"({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016,
        "num_hidden_layers": 32, "num_attention_heads": 32, "kv_channels": 128, "vocab_size":
        151936, "no_bias": true, "tie_word_embeddings": false, "seq_length": 8192})",
                 7'721'324'544.0, 393'216.0},  // the same
    CheckpointOf{"Apertus-8B-2509",
                 R"({"model_type": "apertus", "hidden_size": 4096, "intermediate_size": 21504,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 131072, "hidden_act": "xielu", "post_norm": false, "qk_norm": true,
        "tie_word_embeddings": false})",
                 8'053'338'176.0, 8'256.0},  // norms of heads, and two numbers of each activation
    CheckpointOf{"bitnet-b1.58-2B-4T",
                 R"({"model_type": "bitnet", "hidden_size": 2560, "intermediate_size": 6912,
        "num_hidden_layers": 30, "num_attention_heads": 20, "num_key_value_heads": 5,
        "vocab_size": 128256, "hidden_act": "relu2", "tie_word_embeddings": true})",
                 2'412'820'480.0, 284'160.0},  // norms inside blocks
    CheckpointOf{"starcoder",
                 R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_inner": 24576,
        "n_layer": 40, "n_positions": 8192, "vocab_size": 49152, "multi_query": true})",
                 15'517'456'384.0, 0.0},
    CheckpointOf{"bloom-7b1",
                 R"({"model_type": "bloom", "hidden_size": 4096, "n_layer": 30, "n_head": 32,
        "vocab_size": 250880})",
                 7'069'016'064.0, 0.0},
    CheckpointOf{"mpt-7b",
                 R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
        "expansion_ratio": 4, "vocab_size": 50432, "no_bias": true, "max_seq_len": 2048,
        "attn_config": {"alibi": true, "attn_type": "multihead_attention"}})",
                 6'649'286'656.0, 0.0},
    CheckpointOf{
        "dbrx-base",
        R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len":
        32768, "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        "tie_word_embeddings": false})",
        131'596'523'520.0, 0.0},
    CheckpointOf{"mamba-2.8b-hf",
                 R"({"model_type": "mamba", "hidden_size": 2560, "intermediate_size": 5120,
        "num_hidden_layers": 64, "state_size": 16, "time_step_rank": 160, "conv_kernel": 4,
        "expand": 2, "vocab_size": 50280, "hidden_act": "silu", "use_bias": false,
        "use_conv_bias": true})",
                 2'768'345'600.0, 0.0},
    CheckpointOf{"falcon-mamba-7b",
                 R"({"model_type": "falcon_mamba", "hidden_size": 4096, "intermediate_size": 8192,
        "num_hidden_layers": 64, "state_size": 16, "time_step_rank": 256, "conv_kernel": 4,
        "expand": 16, "vocab_size": 65024, "hidden_act": "silu", "use_bias": false,
        "use_conv_bias": true, "tie_word_embeddings": false})",
                 7'272'665'088.0, 0.0},
    CheckpointOf{
        "Mamba-Codestral-7B-v0.1",
        R"({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "state_size":
        128, "num_heads": 128, "head_dim": 64, "n_groups": 8, "expand": 2, "conv_kernel": 4,
        "chunk_size": 256, "vocab_size": 32768, "hidden_act": "silu", "tie_word_embeddings":
        false})",
        7'285'403'648.0, 0.0},
};

/// The same by its model card, which rounds.
struct RoundedCount {
  std::string_view name, text;
  double billions, within;  ///< half of the last digit
};
constexpr std::array kRoundedCounts{
    RoundedCount{"Nemotron-4-340B, arXiv:2406.11704",
                 R"({"model_type": "nemotron", "hidden_size": 18432, "intermediate_size": 73728,
        "num_hidden_layers": 96, "num_attention_heads": 96, "num_key_value_heads": 8,
        "vocab_size": 256000, "hidden_act": "relu2", "partial_rotary_factor": 0.5, "norm_eps":
        1e-05})",
                 341, 0.5},
    RoundedCount{"AFM-4.5B",
                 R"({"model_type": "arcee", "hidden_size": 2560, "intermediate_size": 18432,
        "num_hidden_layers": 36, "num_attention_heads": 20, "num_key_value_heads": 4,
        "vocab_size": 128004, "hidden_act": "relu2", "head_dim": 128, "tie_word_embeddings":
        false})",
                 4.62, 0.005},
    RoundedCount{"Bamba-9B",
                 R"({"model_type": "bamba", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256, "hidden_act": "silu", "attn_layer_indices": [9, 18, 27],
        "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1,
        "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, "tie_word_embeddings":
        false})",
                 9.78, 0.005},
    RoundedCount{"Trinity-Mini",
                 R"({"model_type": "afmoe", "hidden_size": 2048, "intermediate_size": 6144,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 4,
        "vocab_size": 200192, "hidden_act": "silu", "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024,
        "num_dense_layers": 2, "sliding_window": 2048, "layer_types": ["sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention"],
        "global_attn_every_n_layers": 4})",
                 26, 0.5},
    RoundedCount{"LFM2-8B-A1B",
                 R"({"model_type": "lfm2_moe", "hidden_size": 2048, "intermediate_size": 7168,
        "moe_intermediate_size": 1792, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 65536, "num_experts": 32,
        "num_experts_per_tok": 4, "num_dense_layers": 2, "conv_L_cache": 3,
        "tie_word_embeddings": true, "layer_types": ["conv", "conv", "full_attention", "conv",
        "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv",
        "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv",
        "conv", "full_attention", "conv", "conv"]})",
                 8.34, 0.005},
    RoundedCount{"NVIDIA-Nemotron-Nano-12B-v2",
                 R"({"model_type": "nemotron_h", "hidden_size": 5120, "intermediate_size": 20480,
        "num_hidden_layers": 62, "num_attention_heads": 40, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 131072, "hybrid_override_pattern":
        "M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-", "mamba_num_heads":
        128, "mamba_head_dim": 80, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4,
        "chunk_size": 128, "tie_word_embeddings": false})",
                 12.31, 0.005},
    RoundedCount{"deepseek-moe-16b-base",
                 R"({"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16,
        "vocab_size": 102400, "hidden_act": "silu", "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1, "moe_layer_freq": 1})",
                 16.4, 0.05},
    RoundedCount{"embeddinggemma-300m",
                 R"({"model_type": "gemma3_text", "architectures": ["Gemma3TextModel"],
        "use_bidirectional_attention": true, "hidden_size": 768, "intermediate_size": 1152,
        "num_hidden_layers": 24, "num_attention_heads": 3, "num_key_value_heads": 1,
        "head_dim": 256, "vocab_size": 262144, "sliding_window": 512, "layer_types":
        ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
        "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
        "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
        "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]})",
                 0.303, 0.0005},
    RoundedCount{"Kimi-Linear-48B-A3B, safetensors index",
                 R"({"model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 27, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 163840, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim":
        128, "qk_rope_head_dim": 64, "v_head_dim": 128, "mla_use_nope": true, "num_experts":
        256, "num_experts_per_token": 8, "num_shared_experts": 1, "moe_intermediate_size":
        1024, "first_k_dense_replace": 1, "moe_layer_freq": 1, "hidden_act": "silu",
        "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim":
        128, "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23,
        25, 26], "num_heads": 32, "short_conv_kernel_size": 4}, "tie_word_embeddings": false})",
                 49.1, 0.05},
    RoundedCount{
        "grok-2, 270 B by its safetensors index",
        R"({"model_type": "git", "architectures": ["Grok1ForCausalLM"], "embedding_size": 8192,
        "hidden_size": 8192, "intermediate_size": 32768, "moe_intermediate_size": 16384,
        "num_local_experts": 8, "num_experts_per_tok": 2, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 64, "vocab_size":
        131072, "residual_moe": true, "sliding_window_size": -1})",
        269.5, 0.05},
    RoundedCount{
        "Step-3 without what it sees with, arXiv:2507.19427",
        R"({"model_type": "step3_vl", "text_config": {"model_type": "step3_text", "hidden_size":
        7168, "intermediate_size": 18432, "num_hidden_layers": 61, "num_attention_heads": 64,
        "num_attention_groups": 1, "share_q_dim": 2048, "head_dim": 256, "moe_num_experts":
        48, "moe_top_k": 3, "moe_intermediate_size": 5120, "share_expert_dim": 5120,
        "moe_layers_enum":
        "4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,)"
        R"(24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,)"
        R"(44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59",
        "vocab_size": 128815}, "vision_config": {"hidden_size": 1792}})",
        316, 0.5},
};

/// A decoder whose keys would do but for those of `more`.
std::string plain_but(std::string_view more) {
  return R"({"model_type": "newest", "hidden_act": "silu", "hidden_size": 64,
      "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
      "vocab_size": 1000, )" +
         std::string(more) + "}";
}

}  // namespace

TEST_CASE("read_hugging_face: families with names of their own have their checkpoints' weights") {
  for (const CheckpointOf& row : kCheckpoints) {
    CAPTURE(row.name);
    double weights = 0;
    CHECK_NOTHROW(weights = total_parameters(read_family(row.text).shape));
    CHECK(weights == row.parameters - row.left_out);
  }
}

TEST_CASE("read_hugging_face: families with activations of their own are as large as their cards") {
  for (const RoundedCount& row : kRoundedCounts) {
    CAPTURE(row.name);
    double billions = 0;
    CHECK_NOTHROW(billions = total_parameters(read_family(row.text).shape) / 1e9);
    CHECK(billions > row.billions - row.within);
    CHECK(billions < row.billions + row.within);
  }
}

TEST_CASE("read_hugging_face: a model of Mamba blocks alone has no attention") {
  const TransformerShape first = read_family(kCheckpoints[12].text).shape;
  REQUIRE(first.layers == 64);
  for (int i = 0; i < first.layers; ++i) CHECK(first.kind(i).mixer == Mixer::mamba);
  CHECK_FALSE(first.kind(0).feed_forward);
  CHECK(first.mamba.first_generation());
  CHECK_FALSE(read_family(kCheckpoints[14].text).shape.mamba.first_generation());
  CHECK(family_complaint(R"({"model_type": "mamba2", "hidden_size": 64, "num_hidden_layers": 2,
      "vocab_size": 1000, "num_heads": 6, "head_dim": 16, "n_groups": 2})") ==
        "config.json#/num_heads: found 6; allowed: a multiple of n_groups that with head_dim makes "
        "128 columns");
}

TEST_CASE("read_hugging_face: Bamba attends in the layers of a list, and Phi-3 in windows") {
  const TransformerShape bamba = read_family(kRoundedCounts[2].text).shape;
  CHECK(bamba.kind(9).mixer == Mixer::attention);
  CHECK(bamba.kind(10).mixer == Mixer::mamba);
  CHECK(bamba.kind(10).feed_forward);
  CHECK(read_family(kCheckpoints[0].text).shape.window == 2047);
  CHECK(read_family(kRoundedCounts[0].text).assumptions.empty());
}

TEST_CASE("read_hugging_face: keys that say what a layer is are not passed over") {
  const std::string_view what =
      "allowed: a decoder without this key, which says that its layers are not those of its "
      "model_type";
  // Ring-linear, Snowflake Arctic, Grok 2's and Step-3's keys elsewhere, LongCat-Flash, Gemma 3n,
  // DeBERTa, Idefics, Ouro.
  for (const auto& [key, value] :
       {std::pair{"layer_group_size", "5"}, std::pair{"parallel_attn_mlp_res", "true"},
        std::pair{"residual_moe", "true"}, std::pair{"zero_expert_num", "256"},
        std::pair{"share_q_dim", "2048"}, std::pair{"altup_num_inputs", "4"},
        std::pair{"relative_attention", "true"}, std::pair{"cross_layer_interval", "4"},
        std::pair{"total_ut_steps", "4"}}) {
    CHECK(family_complaint(plain_but('"' + std::string(key) + "\": " + value)) ==
          "config.json#/" + std::string(key) + ": found " + value + "; " + std::string(what));
  }
  // MiniMax-01 in transformers' spelling.
  CHECK(family_complaint(plain_but(R"("layer_types": ["linear_attention", "full_attention"])")) ==
        "config.json#/layer_types/0: found \"linear_attention\"; allowed: full_attention, "
        "sliding_attention. Did you mean \"sliding_attention\"?");
  CHECK(family_complaint(plain_but(R"("layer_types": ["full_attention", "full_attention"])")) ==
        "");
}

TEST_CASE("read_hugging_face: encoders that were made of decoders see both ways") {
  // By a key, windows too.
  const TransformerShape gemma = read_family(kRoundedCounts[7].text).shape;
  const KindShape near = shape_of(gemma, gemma.kind(0)), whole = shape_of(gemma, gemma.kind(5));
  CHECK(near.bidirectional);
  CHECK(near.window == 512);
  CHECK(whole.bidirectional);
  CHECK(whole.window == 0);
  // By the name of the class.
  const HuggingFaceModel euro =
      read_family(plain_but(R"("architectures": ["EuroBertForMaskedLM"])"));
  CHECK(euro.shape.bidirectional);
  REQUIRE(euro.assumptions.size() == 2);
  CHECK(euro.assumptions[0] ==
        "model: an encoder, as the name of its class (architectures) says; of what it has behind "
        "its last norm the product over all words is counted, with a table of its own "
        "(tie_word_embeddings), and nothing else");
  const HuggingFaceModel one_table = read_family(
      plain_but(R"("architectures": ["EuroBertForMaskedLM"], "tie_word_embeddings": true)"));
  CHECK(one_table.assumptions[0].find("is counted, with the table of words, and nothing else") !=
        std::string::npos);
  CHECK(total_parameters(euro.shape) - total_parameters(one_table.shape) == 1000 * 64);
  CHECK_FALSE(
      read_family(plain_but(R"("architectures": ["NewestForCausalLM"])")).shape.bidirectional);
}

TEST_CASE("read_hugging_face: Grok 2 has an MLP beside its experts, Step-3 queries of one vector") {
  // By its class, as its model_type names another family; 115 B active by its release.
  const TransformerShape grok = read_family(kRoundedCounts[9].text).shape;
  CHECK(grok.experts.shared_ffn == 32768);
  CHECK(parameter_counts(grok).active / 1e9 == doctest::Approx(115).epsilon(0.005));
  const std::string_view step = kRoundedCounts[10].text;
  const TransformerShape shape = read_family(step).shape;
  CHECK(shape.low_rank.query_rank == 2048);
  CHECK_FALSE(shape.kind(3).experts);
  CHECK(shape.kind(4).experts);
  CHECK(shape.kind(59).experts);
  CHECK_FALSE(shape.kind(60).experts);
  CHECK(parameter_counts(shape).active / 1e9 == doctest::Approx(38).epsilon(0.03));
  std::string odd{step};
  odd.replace(odd.find("4,5,6"), 5, "x,5,6");
  CHECK(family_complaint(odd).ends_with("allowed: numbers of layers below 61, with commas"));
  CHECK(family_complaint(R"({"model_type": "git"})")
            .starts_with("config.json#/model_type: found \"git\"; allowed: "));
}

}  // namespace lockstep
