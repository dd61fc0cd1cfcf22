// Further families of config.json, held against closed forms of what their code makes.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

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

constexpr std::string_view kDeberta3 = R"({"model_type": "deberta-v2", "hidden_act": "gelu",
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 512, "type_vocab_size": 0,
    "vocab_size": 128100, "pos_att_type": "p2c|c2p", "position_biased_input": false,
    "position_buckets": 256, "relative_attention": true, "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm", "share_att_key": true})";
constexpr std::string_view kDeberta2 = R"({"model_type": "deberta-v2", "hidden_act": "gelu",
    "hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 48,
    "num_attention_heads": 24, "max_position_embeddings": 512, "type_vocab_size": 0,
    "vocab_size": 128100, "pos_att_type": ["p2c", "c2p"], "position_biased_input": false,
    "position_buckets": 256, "relative_attention": true, "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm", "share_att_key": true, "conv_kernel_size": 3})";
constexpr std::string_view kDeberta1 = R"({"model_type": "deberta", "hidden_act": "gelu",
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 512, "type_vocab_size": 0,
    "vocab_size": 50265, "pos_att_type": ["c2p", "p2c"], "position_biased_input": false,
    "relative_attention": true, "max_relative_positions": -1})";
constexpr std::string_view kZamba2 = R"({"model_type": "zamba2", "hidden_act": "gelu",
    "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 38,
    "num_attention_heads": 32, "num_key_value_heads": 32, "attention_hidden_size": 4096,
    "attention_head_dim": 128, "vocab_size": 32000, "mamba_d_state": 128, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_ngroups": 1, "n_mamba_heads": 64, "num_mem_blocks": 1,
    "use_shared_attention_adapter": true, "adapter_rank": 128, "use_mem_rope": true,
    "hybrid_layer_ids": [5, 11, 17, 23, 29, 35], "chunk_size": 256, "add_bias_linear": false})";
constexpr std::string_view kZamba2Wide = R"({"model_type": "zamba2", "hidden_act": "gelu",
    "hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 81,
    "num_attention_heads": 32, "num_key_value_heads": 32, "attention_hidden_size": 7168,
    "attention_head_dim": 224, "vocab_size": 32000, "mamba_d_state": 64, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_ngroups": 2, "n_mamba_heads": 112, "num_mem_blocks": 2,
    "use_shared_attention_adapter": false, "adapter_rank": 128, "use_mem_rope": true,
    "hybrid_layer_ids": [6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77]})";
constexpr std::string_view kZamba = R"({"model_type": "zamba", "hidden_act": "gelu",
    "hidden_size": 3712, "intermediate_size": 14848, "num_hidden_layers": 76,
    "num_attention_heads": 16, "num_key_value_heads": 16, "attention_head_dim": 464,
    "attention_hidden_size": 7424, "vocab_size": 32000, "mamba_d_state": 16, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_dt_rank": 232, "n_mamba_heads": 2, "attn_layer_period": 6,
    "attn_layer_offset": 4})";
constexpr std::string_view kPlamo = R"({"model_type": "plamo2", "hidden_size": 4096,
    "hidden_size_per_head": 128, "intermediate_size": 16384, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 100000,
    "mamba_num_heads": 64, "mamba_d_state": 64, "mamba_d_conv": 4, "mamba_step": 2,
    "mamba_chunk_size": 256, "mamba_enabled": true, "attention_window_size": 2048,
    "full_attention_idx": [31]})";
constexpr std::string_view kLongformer = R"({"model_type": "longformer", "hidden_act": "gelu",
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 4098, "vocab_size": 50265,
    "type_vocab_size": 1, "attention_window": [512, 512, 512, 512, 512, 512, 512, 512, 512, 512,
      512, 512]})";
constexpr std::string_view kBigBird = R"({"model_type": "big_bird", "hidden_act": "gelu_new",
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "max_position_embeddings": 4096, "vocab_size": 50358,
    "type_vocab_size": 2, "attention_type": "block_sparse", "block_size": 64,
    "num_random_blocks": 3})";
constexpr std::string_view kLed = R"({"model_type": "led", "d_model": 768, "encoder_layers": 6,
    "decoder_layers": 6, "encoder_attention_heads": 12, "decoder_attention_heads": 12,
    "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "attention_window": [1024, 1024, 1024, 1024,
      1024, 1024], "max_encoder_position_embeddings": 16384,
    "max_decoder_position_embeddings": 1024, "vocab_size": 50265, "is_encoder_decoder": true})";
constexpr std::string_view kLongT5 = R"({"model_type": "longt5", "d_model": 768, "d_kv": 64,
    "d_ff": 2048, "num_heads": 12, "num_layers": 12, "num_decoder_layers": 12,
    "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false,
    "relative_attention_num_buckets": 32, "encoder_attention_type": "transient-global",
    "local_radius": 127, "global_block_size": 16, "is_encoder_decoder": true})";

/// A file of Swin without classes.
std::string swin_file(std::string_view type, std::string_view depths, std::string_view heads,
                      int columns, int window, int image) {
  return R"({"model_type": ")" + std::string(type) + R"(", "depths": )" + std::string(depths) +
         R"(, "num_heads": )" + std::string(heads) + R"(, "embed_dim": )" +
         std::to_string(columns) + R"(, "window_size": )" + std::to_string(window) +
         R"(, "image_size": )" + std::to_string(image) +
         R"(, "patch_size": 4, "mlp_ratio": 4.0, "qkv_bias": true, "num_channels": 3})";
}
constexpr std::string_view kTinyDepths = "[2, 2, 6, 2]", kTinyHeads = "[3, 6, 12, 24]";

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
    // Vh + 2h + l (4hh + 4h + 2hf + f + h + 4h), 512 distances and their norm, and what predicts
    // masked words: hh + h + 2h + V
    FurtherCount{"DeBERTa v3 base", kDeberta3, 184'551'780.0, 184'551'780.0},
    // The same, and a convolution: 3hh + h + 2h
    FurtherCount{"DeBERTa v2 XXL", kDeberta2, 1'567'041'636.0, 1'567'041'636.0},
    // 1,024 distances without a norm, 2hh + h of each layer for them, no biases of keys
    FurtherCount{"DeBERTa base", kDeberta1, 139'244'121.0, 139'244'121.0},
    FurtherCount{"Zamba2 1.2B", kZamba2, 1'215'064'704.0, 1'215'064'704.0},
    FurtherCount{"Zamba2 7B", kZamba2Wide, 7'356'749'648.0, 7'356'749'648.0},
    FurtherCount{"Zamba 7B", kZamba, 7'232'490'496.0, 7'232'490'496.0},
    FurtherCount{"PLaMo 2 8B", kPlamo, 9'118'372'864.0, 9'118'372'864.0},
    FurtherCount{"Longformer base", kLongformer, 148'711'257.0, 148'711'257.0},
    FurtherCount{"BigBird base", kBigBird, 128'112'824.0, 128'112'824.0},
    FurtherCount{"LED base", kLed, 161'844'480.0, 161'844'480.0},
    FurtherCount{"LongT5 base with sums", kLongT5, 247'587'456.0, 247'587'456.0},
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

TEST_CASE("read_hugging_face: DeBERTa's scores of distances are work beside those of keys") {
  TrainingJob job;
  job.model = read_further(kDeberta3).shape;
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 512};
  const double h = 768, f = 3072, s = 512, words = 128'100;
  // Scores of 512 entries both ways are as much as attention over 512 keys.
  const double closed =
      2 * s * (6 * (12 * (4 * h * h + 2 * h * f) + words * h) + 12 * 12 * h * (s + 512));
  CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
  const std::string text{kDeberta3};
  std::string one = text;
  one.replace(one.find("p2c|c2p"), 7, "c2p");
  job.model = read_further(one).shape;
  CHECK(step_flops(job).full.base_units() ==
        doctest::Approx(closed - 2 * s * 12 * 12 * h * 256).epsilon(1e-12));
  one.replace(one.find("\"c2p\""), 5, "\"p2p\"");
  CHECK(further_complaint(one) ==
        "config.json#/pos_att_type: found \"p2p\"; allowed: c2p, p2c, or both with | between them");
}

TEST_CASE("read_hugging_face: a fraction is no whole number, wherever one is read") {
  for (const FurtherCount& one : kFurtherCounts) {
    const auto file = nlohmann::ordered_json::parse(one.text);
    for (const auto& [key, value] : file.items()) {
      if (!value.is_number_integer() || key == "mlp_ratio") continue;
      CAPTURE(one.name);
      CAPTURE(key);
      const auto with = [&, name = key](const nlohmann::ordered_json& other) {
        auto changed = file;
        changed[name] = other;
        return further_complaint(changed.dump());
      };
      if (with("no number").empty()) continue;  // nothing reads it
      const double fraction = value.get<double>() + 0.7;
      CHECK(with(fraction).starts_with("config.json#/" + key + ": found "));
    }
  }
  std::string text{kDeberta3};
  text.replace(text.find("256"), 3, "2.7");
  CHECK(further_complaint(text) ==
        "config.json#/position_buckets: found 2.7; allowed: a whole number from -1 to 16777216");
}

TEST_CASE("read_hugging_face: Zamba2's layers share blocks, each use with products of its own") {
  const TransformerShape m = read_further(kZamba2).shape;
  CHECK(m.layers == 38 + 6);
  CHECK(m.pattern.substr(0, 8) == "mmmmmAnm");
  CHECK(layers_together(m, m.kind(5)) == 6);
  // A token meets the shared block six times.
  double met = 0;
  for (int i = 0; i < m.layers; ++i) met += layer_matrix_parameters(m, m.kind(i));
  const double h = 2048, f = 8192, inner = 4096, heads = 64, state = 128, rank = 128;
  const double mamba = h * (2 * inner + 2 * state + heads) + inner * h;
  const double block = 2 * h * 3 * 4096 + 4096 * h + 3 * h * f;
  const double use = h * h + rank * (h + 2 * f) + rank * (3 * 2 * h + 3 * 4096);
  CHECK(met == doctest::Approx(38 * mamba + 6 * (block + use)).epsilon(1e-12));
  // Of two blocks that take turns over thirteen layers one comes once more.
  const TransformerShape wide = read_further(kZamba2Wide).shape;
  CHECK(std::ranges::count(wide.pattern, 'A') == 7);
  CHECK(std::ranges::count(wide.pattern, 'B') == 6);
  const TransformerShape first = read_further(kZamba).shape;
  CHECK(first.pattern.substr(0, 11) == "mmAnmmmmAnm");
  CHECK(is_decoder(first));
}

TEST_CASE(
    "read_hugging_face: PLaMo 2 selects for heads of several columns, in turns with windows") {
  const TransformerShape m = read_further(kPlamo).shape;
  CHECK(m.mamba.selects());
  CHECK_FALSE(m.mamba.first_generation());
  CHECK(m.mamba.step_rank == 256);
  CHECK(m.kind(0).mixer == Mixer::mamba);
  CHECK(shape_of(m, m.kind(1)).window == 2048);
  CHECK(shape_of(m, m.kind(31)).window == 0);
  const double h = 4096, inner = 8192, selected = 256 + 128, f = 16384;
  CHECK(layer_matrix_parameters(m, m.kind(0)) ==
        h * 2 * inner + inner * selected + 256 * 64 + inner * h + 3 * h * f);
}

TEST_CASE("read_hugging_face: encoders of long texts see windows, and some of them sums") {
  const TransformerShape m = read_further(kLongformer).shape;
  CHECK(shape_of(m, m.kind(3)).window == 512);
  CHECK(shape_of(m, m.kind(3)).bidirectional);
  const TransformerShape birds = read_further(kBigBird).shape;
  CHECK(shape_of(birds, birds.kind(0)).window == 640);
  std::string whole{kBigBird};
  whole.replace(whole.find("block_sparse"), 12, "original_full");
  CHECK(read_further(whole).shape.kinds.empty());
  const TransformerShape led = read_further(kLed).shape;
  CHECK(shape_of(led, led.kind(0)).window == 1024);
  CHECK(shape_of(led, led.kind(6)).window == 0);
  // Of the encoder's words each sees 384 beside it and a sum of each 16.
  TrainingJob job;
  job.model = read_further(kLongT5).shape;
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 128, .source_tokens = 4096};
  const double with_sums = step_flops(job).full.base_units();
  std::string local{kLongT5};
  local.replace(local.find("transient-global"), 16, "local");
  job.model = read_further(local).shape;
  const double h = 768, words = 4096;
  CHECK(with_sums - step_flops(job).full.base_units() ==
        doctest::Approx(12 * 12 * h * words * (words / 16)).epsilon(1e-9));
  std::string other{kLed};
  other.replace(other.find("[1024,"), 6, "[512,");
  CHECK(further_complaint(other).find("config.json#/attention_window") == 0);
}

TEST_CASE("read_hugging_face: Swin's stages have the weights of their checkpoints, less classes") {
  const auto total = [](const std::string& file) {
    return parameter_counts(read_further(file).shape).total;
  };
  // With 1,000 classes 28,288,354, 28,347,154 and 87,768,224 (github:microsoft/Swin-Transformer).
  CHECK(total(swin_file("swin", kTinyDepths, kTinyHeads, 96, 7, 224)) == 28'288'354 - 769'000);
  CHECK(total(swin_file("swinv2", kTinyDepths, kTinyHeads, 96, 8, 256)) == 28'347'154 - 769'000);
  CHECK(total(swin_file("swin", "[2, 2, 18, 2]", "[4, 8, 16, 32]", 128, 7, 224)) ==
        87'768'224 - 1'025'000);
}

TEST_CASE("read_hugging_face: each of Swin's stages works at its resolution, in windows") {
  TrainingJob job;
  job.model = read_further(swin_file("swin", kTinyDepths, kTinyHeads, 96, 7, 224)).shape;
  const double patches = 3136, window = 49;
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 3136};
  double work = 0, rows = patches, h = 96;
  for (const int layers : {2, 2, 6, 2}) {
    work += layers * rows * (6 * 12 * h * h + 12 * h * window);
    if (h < 768) work += rows / 4 * 6 * 8 * h * h;
    rows /= 4;
    h *= 2;
  }
  work += 6 * patches * 96;  // the row in place of words
  CHECK(step_flops(job).full.base_units() == doctest::Approx(work).epsilon(1e-12));
  CHECK(further_complaint(swin_file("swin", kTinyDepths, kTinyHeads, 96, 7, 220))
            .find("config.json#/image_size: found 220; allowed: an image whose patches can be "
                  "halved 3 times") == 0);
  CHECK(further_complaint(swin_file("swin", kTinyDepths, "[3, 6, 12]", 96, 7, 224))
            .find("config.json#/num_heads: found an array; allowed: as many numbers as depths") ==
        0);
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
  std::string blocks = dream;
  blocks.replace(blocks.find("Dream"), 5, "sdar");
  const HuggingFaceModel by_blocks = read_further(blocks);
  CHECK(is_decoder(by_blocks.shape));
  CHECK(by_blocks.assumptions.front() ==
        "model: it fills words in, block by block; its tokens were taken to see those before them "
        "alone, each once");
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
