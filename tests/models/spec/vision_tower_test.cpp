// A vision tower's layers in front of a decoder's.
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <utility>

#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/layer.hpp"
#include "models/spec/parameter_counts.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {
namespace {

const PresetStore& tower_presets() {
  static const PresetStore store;
  return store;
}

TrainingJob tower_job(TransformerShape model) {
  TrainingJob job;
  job.model = std::move(model);
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 8192};
  return job;
}

}  // namespace

TEST_CASE("with_images: a model has as many weights with images as without") {
  for (const char* name : {"qwen3_5_27b", "qwen3_5_35b_a3b", "gemma4_26b_a4b"}) {
    CAPTURE(name);
    const TransformerShape plain = tower_presets().model(name);
    const TransformerShape seeing = with_images(plain, 3);
    CHECK(seeing.layers == plain.layers + 27);
    CHECK(total_parameters(seeing) == doctest::Approx(total_parameters(plain)).epsilon(1e-12));
    const ParameterCounts without = parameter_counts(plain), with = parameter_counts(seeing);
    CHECK(with.vision == doctest::Approx(without.vision).epsilon(1e-12));
    CHECK(with.active == doctest::Approx(without.active).epsilon(1e-12));
    CHECK(seeing.vision_parameters > 0);
    CHECK(running_tower_parameters(plain) == 0);
  }
}

TEST_CASE("with_images: each image is the work of its patches, which see only each other") {
  for (const char* name : {"qwen3_5_27b", "qwen3_5_35b_a3b", "gemma4_26b_a4b"}) {
    CAPTURE(name);
    const TransformerShape plain = tower_presets().model(name);
    const VisionTower& tower = plain.tower;
    const double h = tower.hidden, patches = tower.patches;
    const double matrices = 4 * h * h + (tower.gated ? 3 : 2) * h * tower.ffn;
    const double image = tower.layers * patches * (6 * matrices + 12 * h * patches);
    const StepFlops before = step_flops(tower_job(plain));
    for (const int images : {1, 4}) {
      const StepFlops after = step_flops(tower_job(with_images(plain, images)));
      CHECK((after.causal - before.causal).base_units() ==
            doctest::Approx(2 * images * image).epsilon(1e-9));
      CHECK((after.full - before.full).base_units() ==
            doctest::Approx(2 * images * image).epsilon(1e-9));
    }
  }
}

TEST_CASE("with_images: layers that had no kinds are as they were") {
  for (const char* name : {"llama3_8b", "gemma_7b", "mixtral_8x7b", "gpt_oss_20b", "bloom_176b",
                           "deepseek_v3", "jamba_52b"}) {
    CAPTURE(name);
    TransformerShape plain = tower_presets().model(name);
    if (plain.predicted_tokens > 0) plain.predicted_tokens = 0;
    plain.tower = {.layers = 2, .hidden = 64, .heads = 4, .ffn = 128, .patches = 16};
    plain.vision_parameters = 1e6;
    const TransformerShape seeing = with_images(plain, 1);
    TrainingJob one = tower_job(plain), other = tower_job(seeing);
    const StackSpec stack = tower_presets().stack("neutral").spec;
    for (int i = 0; i < plain.layers; ++i) {
      const LayerKind was = plain.kind(i), is = seeing.kind(i + 2);
      REQUIRE(layer_parameters(seeing, is) == layer_parameters(plain, was));
      REQUIRE(layer_matrix_parameters(seeing, is) == layer_matrix_parameters(plain, was));
      REQUIRE(is.blocks() == was.blocks());
      REQUIRE(is.experts == was.experts);
      REQUIRE(saved_per_layer(other, stack, is) == saved_per_layer(one, stack, was));
    }
  }
}

TEST_CASE("read_hugging_face: a file's vision tower has layers, and runs where there are images") {
  constexpr std::string_view kFile =
      R"({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text",
          "hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36,
          "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
          "vocab_size": 151936, "tie_word_embeddings": true},
        "vision_config": {"model_type": "qwen3_vl", "depth": 24, "hidden_size": 1024,
          "intermediate_size": 4096, "num_heads": 16, "num_position_embeddings": 2304,
          "out_hidden_size": 2560, "patch_size": 16, "spatial_merge_size": 2,
          "temporal_patch_size": 2}})";
  const HuggingFaceModel model =
      read_hugging_face(JsonCursor::parse("config.json", kFile), "model");
  CHECK(model.shape.tower ==
        VisionTower{.layers = 24, .hidden = 1024, .heads = 16, .ffn = 4096, .patches = 2304});
  REQUIRE_FALSE(model.assumptions.empty());
  CHECK(model.assumptions.back() ==
        "model: the weights of its vision tower are stored and trained, and compute where "
        "batch.images says how many images a sequence has");
}

}  // namespace lockstep
