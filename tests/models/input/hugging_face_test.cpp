#include "models/input/hugging_face.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/transformer.hpp"

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
};

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

TEST_CASE("read_hugging_face: Qwen2 7B lacks only its QKV biases") {
  const HuggingFaceModel model =
      read(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
               "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
               "sliding_window": 131072, "use_sliding_window": false, "vocab_size": 152064})");
  CHECK(total_parameters(model.shape) == 7'615'616'512.0 - 28 * (3584 + 2 * 512));
  CHECK(model.assumptions.empty());
}

TEST_CASE("read_hugging_face: a sliding window that is left out is said") {
  const HuggingFaceModel model = read(kConfigs[1].text);
  REQUIRE(model.assumptions.size() == 1);
  CHECK(
      model.assumptions[0] ==
      "attention: over all earlier tokens; the model's sliding window of 4096 tokens is left out");
}

TEST_CASE("read_hugging_face: other families and experts are refused by name") {
  CHECK_THROWS_WITH_AS(read(R"({"model_type": "lama"})"),
                       "config.json#/model_type: found \"lama\"; allowed: llama, mistral, qwen2, "
                       "qwen3, gpt_neox, gemma, gemma2, gpt2, opt. Did you mean \"llama\"?",
                       InputError);
  CHECK_THROWS_WITH_AS(read(R"({"model_type": "mistral", "num_local_experts": 8})"),
                       "config.json#/num_local_experts: found 8; allowed: a dense model, without "
                       "this key",
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
}

}  // namespace lockstep
