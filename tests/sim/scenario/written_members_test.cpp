// What a declaration writes, it reads back as the same.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/hugging_face.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

template <class Of, class Declare>
Json written_of(Of of, const Declare& declare) {
  Json out;
  declare(DeclaredMembers::writing(out), of);
  return out;
}

/// Reads it as a whole, all keys known, and writes that again.
template <class Of, class Declare>
Json read_again(const Json& members, const Declare& declare) {
  const JsonCursor root = JsonCursor::parse("written.json", write_json(members));
  Of of{};
  declare(DeclaredMembers(root, Extent::whole), of);
  root.finish();
  return written_of(of, declare);
}

}  // namespace

TEST_CASE("declared members: every preset of a model or a stack, written, reads back as the same") {
  const PresetStore& presets = test::presets();
  for (const std::string& name : presets.names("models")) {
    CAPTURE(name);
    const Json written = written_of(presets.model(name), declare_model);
    CHECK(written.contains("layers"));
    CHECK(read_again<TransformerShape>(written, declare_model) == written);
  }
  for (const std::string& name : presets.names("stacks")) {
    CAPTURE(name);
    const Json written = written_of(presets.stack(name).spec, declare_stack);
    CHECK(written.contains("attention"));
    CHECK(read_again<StackSpec>(written, declare_stack) == written);
  }
}

// Without a last norm, with a table narrower than positions, with cross attention as the mixer.
TEST_CASE("declared members: models of a config.json, written, read back as the same") {
  constexpr std::array<std::string_view, 3> kFiles{
      R"({"model_type": "marian", "d_model": 512, "encoder_layers": 6, "decoder_layers": 6,
          "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048,
          "decoder_ffn_dim": 2048, "vocab_size": 58101, "max_position_embeddings": 512})",
      R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_attention_heads": 16,
          "num_hidden_layers": 24, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
          "do_layer_norm_before": false, "vocab_size": 50272})",
      R"({"model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336,
          "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
          "vocab_size": 128256, "hidden_act": "silu", "cross_attention_layers": [3]})"};
  for (const std::string_view file : kFiles) {
    CAPTURE(file);
    const TransformerShape model =
        read_hugging_face(JsonCursor::parse("config.json", file), "model").shape;
    CHECK(model.other_parameters >= 0);
    const Json written = written_of(model, declare_model);
    CHECK(read_again<TransformerShape>(written, declare_model) == written);
  }
}

TEST_CASE("declared members: a job, written, reads back as the same") {
  const std::string job = R"({
    "parallelism": {"tensor": 4, "pipeline": 2, "schedule": "interleaved", "virtual_stages": 2,
      "layers_per_stage": [9, 8, 8, 7], "sharding": "zero1", "sequence": true},
    "batch": {"sequences": 64, "micro": 2, "tokens": 4096, "sample_tokens": 512},
    "precision": "fp8",
    "recompute": {"modules": ["layer_norm", "activation"], "products": 0.25},
    "lora": {"rank": 16, "modules": ["qkv"]},
    "offload": {"optimiser": 0.5},
    "frozen": {"embedding": true}
  })";
  const JsonCursor root = JsonCursor::parse("job.json", job);
  ScenarioDraft draft;
  declare_job(DeclaredMembers(root, Extent::whole), draft);
  const Json written = written_of(draft, declare_job);
  for (const auto& [key, value] : root.json().items()) {
    if (!value.is_object()) continue;
    for (const auto& [member, of] : value.items()) {
      CAPTURE(member);
      CHECK(written.at(key).at(member) == of);
    }
  }
  CHECK(written.at("precision") == "fp8");
}

TEST_CASE("declared members: compressed queries stand alone, output groups with their rank only") {
  const auto with = [](std::string_view low_rank) {
    return Json::parse(R"({"layers": 2, "hidden": 64, "heads": 4, "ffn": 256, "vocabulary": 1000,
                          "low_rank": )" +
                       std::string(low_rank) + "}");
  };
  const Json alone = read_again<TransformerShape>(with(R"({"query_rank": 32})"), declare_model);
  CHECK(alone["low_rank"] == Json{{"query_rank", 32}});
  for (const char* half :
       {R"({"query_rank": 32, "output_groups": 2})", R"({"query_rank": 32, "output_rank": 8})"}) {
    CAPTURE(half);
    CHECK_THROWS_AS((void)read_again<TransformerShape>(with(half), declare_model), InputError);
  }
}

}  // namespace lockstep
