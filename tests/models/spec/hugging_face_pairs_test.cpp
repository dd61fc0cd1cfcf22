// Encoders with a decoder behind them, from config.json: translation, Switch, T5Gemma.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/hugging_face.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_pair_file(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}
std::string pair_complaint(std::string_view text) {
  try {
    (void)read_pair_file(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// The keys that matter of a published file, and the trained weights that the family's code makes
/// of them: sine waves that it keeps as a table are none.
struct CountedPair {
  std::string_view name, text;
  double parameters;
};
// Sources: num_parameters() of MBartForConditionalGeneration, M2M100ForConditionalGeneration,
// MarianMTModel, PegasusForConditionalGeneration, BlenderbotForConditionalGeneration,
// NllbMoeForConditionalGeneration (published as 54.5 B), SwitchTransformersForConditionalGeneration
// (619 M) and T5GemmaForConditionalGeneration (5.6 B) in
// https://github.com/huggingface/transformers.
constexpr std::array kPairFiles{
    CountedPair{"mbart-large-50",
                R"({"model_type": "mbart", "d_model": 1024, "encoder_layers": 12,
        "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_layers": 12,
        "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 250054,
        "max_position_embeddings": 1024, "is_encoder_decoder": true})",
                610'879'488.0},
    CountedPair{"m2m100_418M",
                R"({"model_type": "m2m_100", "d_model": 1024, "encoder_layers": 12,
        "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_layers": 12,
        "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 128112,
        "max_position_embeddings": 1024, "is_encoder_decoder": true})",
                483'905'536.0},
    CountedPair{"nllb-200-3.3B",
                R"({"model_type": "m2m_100", "d_model": 2048, "encoder_layers": 24,
        "encoder_attention_heads": 16, "encoder_ffn_dim": 8192, "decoder_layers": 24,
        "decoder_attention_heads": 16, "decoder_ffn_dim": 8192, "vocab_size": 256206,
        "max_position_embeddings": 1024, "is_encoder_decoder": true})",
                3'344'863'232.0},
    CountedPair{"opus-mt-en-de",
                R"({"model_type": "marian", "d_model": 512, "encoder_layers": 6,
        "encoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_layers": 6,
        "decoder_attention_heads": 8, "decoder_ffn_dim": 2048, "vocab_size": 58101,
        "max_position_embeddings": 512, "static_position_embeddings": true,
        "is_encoder_decoder": true})",
                73'886'208.0},
    CountedPair{"pegasus-large",
                R"({"model_type": "pegasus", "d_model": 1024, "encoder_layers": 16,
        "encoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_layers": 16,
        "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "vocab_size": 96103,
        "max_position_embeddings": 1024, "is_encoder_decoder": true})",
                568'699'904.0},
    CountedPair{"blenderbot-400M-distill",
                R"({"model_type": "blenderbot", "d_model": 1280, "encoder_layers": 2,
        "encoder_attention_heads": 32, "encoder_ffn_dim": 5120, "decoder_layers": 12,
        "decoder_attention_heads": 32, "decoder_ffn_dim": 5120, "vocab_size": 8008,
        "max_position_embeddings": 128, "is_encoder_decoder": true})",
                364'802'560.0},
    CountedPair{"nllb-moe-54b",
                R"({"model_type": "nllb-moe", "d_model": 2048, "encoder_layers": 24,
        "encoder_attention_heads": 16, "encoder_ffn_dim": 8192, "decoder_layers": 24,
        "decoder_attention_heads": 16, "decoder_ffn_dim": 8192, "vocab_size": 256206,
        "max_position_embeddings": 1024, "num_experts": 128, "encoder_sparse_step": 4,
        "decoder_sparse_step": 4, "router_bias": false, "is_encoder_decoder": true})",
                54'500'569'088.0},
    CountedPair{"switch-base-8",
                R"({"model_type": "switch_transformers", "d_ff": 3072, "d_kv": 64, "d_model": 768,
        "feed_forward_proj": "relu", "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12,
        "num_experts": 8, "num_sparse_encoder_layers": 6, "num_sparse_decoder_layers": 6,
        "relative_attention_num_buckets": 32, "vocab_size": 32128, "is_encoder_decoder": true})",
                619'339'008.0},
    CountedPair{"t5gemma-2b-2b",
                R"({"model_type": "t5gemma", "is_encoder_decoder": true,
        "encoder": {"model_type": "t5_gemma_module", "hidden_size": 2304,
          "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
          "vocab_size": 256000},
        "decoder": {"model_type": "t5_gemma_module", "hidden_size": 2304,
          "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
          "vocab_size": 256000, "cross_attention_hidden_size": 2304}})",
                5'596'853'760.0},
    CountedPair{"t5gemma-9b-2b",
                R"({"model_type": "t5gemma", "is_encoder_decoder": true,
        "encoder": {"model_type": "t5_gemma_module", "hidden_size": 3584,
          "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16,
          "num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096,
          "vocab_size": 256000},
        "decoder": {"model_type": "t5_gemma_module", "hidden_size": 2304,
          "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096,
          "vocab_size": 256000, "cross_attention_hidden_size": 3584}})",
                12'292'375'296.0},
};
const CountedPair& pair_file(std::string_view name) {
  for (const CountedPair& one : kPairFiles) {
    if (one.name == name) return one;
  }
  FAIL("no such file");
  return kPairFiles.front();
}

}  // namespace

TEST_CASE("read_hugging_face: encoders with decoders have the weights that their code makes") {
  for (const CountedPair& one : kPairFiles) {
    CAPTURE(one.name);
    CHECK(total_parameters(read_pair_file(one.text).shape) == one.parameters);
  }
}

TEST_CASE("read_hugging_face: of NLLB-MoE every fourth layer has experts, two of them for a word") {
  TrainingJob job;
  job.model = read_pair_file(pair_file("nllb-moe-54b").text).shape;
  const TransformerShape& m = job.model;
  REQUIRE(m.layers == 48);
  CHECK_FALSE(m.kind(2).experts);
  CHECK(m.kind(3).experts);
  CHECK_FALSE(m.kind(3).cross);
  CHECK(m.kind(47).experts);
  CHECK(m.kind(47).cross);
  const double h = 2048, f = 8192, s = 512, t = 128, experts = 6;
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 128, .source_tokens = 512};
  const double mlps = 24 * 2 * h * f + experts * (2 * h * f + 128 * h);
  const double encoder = s * (6 * (24 * 4 * h * h + mlps) + 12 * 24 * h * s);
  const double decoder = t * (6 * (24 * 6 * h * h + mlps + 256206 * h) + 12 * 24 * h * (t + s)) +
                         s * 6 * 24 * 2 * h * h;
  CHECK(step_flops(job).full.base_units() ==
        doctest::Approx(2 * (encoder + decoder)).epsilon(1e-12));
}

TEST_CASE("read_hugging_face: a stack of Switch whose layers all have experts has no other kind") {
  std::string text{pair_file("switch-base-8").text};
  const std::string_view some = "\"num_sparse_encoder_layers\": 6";
  text.replace(text.find(some), some.size(), "\"num_sparse_encoder_layers\": 12");
  const TransformerShape m = read_pair_file(text).shape;
  CHECK(m.pattern == std::string(12, 'E') + "dDdDdDdDdDdD");
  CHECK(m.kinds.size() == 3);
}

TEST_CASE("read_hugging_face: T5Gemma's decoder attends to an encoder of another width") {
  TrainingJob job;
  job.model = read_pair_file(pair_file("t5gemma-9b-2b").text).shape;
  const TransformerShape& m = job.model;
  REQUIRE(m.layers == 68);
  const KindShape near = shape_of(m, m.kind(0)), all = shape_of(m, m.kind(43));
  CHECK(near.hidden == 3584);
  CHECK(near.window == 4096);
  CHECK(near.bidirectional);
  CHECK(all.hidden == 2304);
  CHECK(all.window == 0);
  CHECK(all.cross);
  CHECK(all.source_width == 3584);
  // Texts that are shorter than the windows.
  const double e = 3584, d = 2304, s = 1024, t = 256;
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 256, .source_tokens = 1024};
  const double reads = 42 * (2 * e * 16 * 256 + 2 * e * 8 * 256 + 3 * e * 14336);
  const double writes = 26 * (4 * d * 8 * 256 + 2 * d * 4 * 256 + 3 * d * 9216) + 256000 * d;
  const double source = 26 * 2 * e * 4 * 256;
  const double cores = 42 * s * s * 16 * 256 + 26 * t * (t + s) * 8 * 256;
  CHECK(step_flops(job).full.base_units() ==
        doctest::Approx(6 * (s * (reads + source) + t * writes) + 12 * cores).epsilon(1e-12));
}

TEST_CASE("read_hugging_face: encoders with decoders that do not fit are refused in one line") {
  std::string marian{pair_file("opus-mt-en-de").text};
  marian.insert(1, R"("share_encoder_decoder_embeddings": false, )");
  CHECK(pair_complaint(marian) ==
        "config.json#/share_encoder_decoder_embeddings: found false; allowed: true: a table of "
        "words for each stack is not known");
  std::string narrow{pair_file("nllb-moe-54b").text};
  const std::string_view wide = "\"decoder_ffn_dim\": 8192";
  narrow.replace(narrow.find(wide), wide.size(), "\"decoder_ffn_dim\": 4096");
  CHECK(pair_complaint(narrow) ==
        "config.json#/decoder_ffn_dim: found 4096; allowed: 8192 (encoder_ffn_dim)");
  std::string layers{pair_file("t5gemma-2b-2b").text};
  const std::string_view last = "\"cross_attention_hidden_size\"";
  layers.replace(layers.find(last), last.size(),
                 R"("layer_types": ["full_attention"], "cross_attention_hidden_size")");
  CHECK(pair_complaint(layers) ==
        "config.json#/decoder/layer_types: found an array; allowed: 26 names");
}

}  // namespace lockstep
