// Vision towers, projectors and encoders of sound from config.json.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/parameter_counts.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_seeing(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}

/// The keys that matter of a published file, and the weights of its checkpoint (safetensors index
/// on https://huggingface.co).
struct PublishedTower {
  std::string_view name, text;
  double parameters;
  double left_out;  ///< biases of queries, keys and values that Qwen2's decoders have
};
constexpr std::array kTowers{
    PublishedTower{
        "Llama-4-Scout-17B-16E",
        R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size":
        5120, "intermediate_size": 8192, "num_hidden_layers": 48, "num_attention_heads": 40,
        "num_key_value_heads": 8, "vocab_size": 202048, "hidden_act": "silu",
        "intermediate_size_mlp": 16384, "num_local_experts": 16, "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 1, "head_dim": 128, "attention_chunk_size": 8192,
        "no_rope_layers": []}, "vision_config": {"model_type": "llama4_vision_model",
        "hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34,
        "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "pixel_shuffle_ratio":
        0.5, "projector_input_dim": 4096, "projector_output_dim": 4096, "vision_output_dim":
        4096, "num_channels": 3}})",
        108'641'793'536.0, 0.0},
    PublishedTower{
        "Mistral-Small-3.1-24B-Base-2503",
        R"({"model_type": "mistral3", "text_config": {"model_type": "mistral", "hidden_size":
        5120, "intermediate_size": 32768, "num_hidden_layers": 40, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 131072, "hidden_act": "silu", "head_dim": 128,
        "sliding_window": null}, "vision_config": {"model_type": "pixtral", "hidden_size":
        1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "patch_size": 14, "image_size": 1540, "head_dim": 64, "num_channels": 3, "hidden_act":
        "silu"}, "spatial_merge_size": 2, "multimodal_projector_bias": false,
        "projector_hidden_act": "gelu", "vision_feature_layer": -1})",
        24'011'361'280.0, 0.0},
    PublishedTower{
        "paligemma-3b-pt-224",
        R"({"model_type": "paligemma", "text_config": {"model_type": "gemma", "hidden_size":
        2048, "intermediate_size": 16384, "num_attention_heads": 8, "num_hidden_layers": 18,
        "num_key_value_heads": 1, "vocab_size": 257216, "num_image_tokens": 256},
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152,
        "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
        "patch_size": 14, "image_size": 224, "vision_use_head": false, "projection_dim":
        2048}, "projection_dim": 2048, "hidden_size": 2048})",
        2'923'466'480.0, 0.0},
    PublishedTower{
        "llava-1.5-7b-hf",
        R"({"model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 32, "vocab_size": 32064, "hidden_act": "silu"},
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024,
        "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "patch_size": 14, "image_size": 336, "projection_dim": 768, "vocab_size": 32000},
        "vision_feature_layer": -2, "projector_hidden_act": "gelu"})",
        7'063'427'072.0, 0.0},
    PublishedTower{
        "SmolVLM-Instruct",
        R"({"model_type": "idefics3", "text_config": {"model_type": "llama", "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 32, "vocab_size": 49155, "hidden_act": "silu", "head_dim": 64,
        "tie_word_embeddings": false}, "vision_config": {"model_type": "idefics3",
        "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "num_attention_heads": 16, "image_size": 384, "patch_size": 14}, "scale_factor": 3})",
        2'246'272'880.0, 0.0},
    PublishedTower{"Qwen2.5-VL-7B-Instruct",
                   R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 152064, "hidden_act": "silu", "use_sliding_window": false,
        "sliding_window": 32768, "max_window_layers": 28, "vision_config": {"depth": 32,
        "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584, "num_heads":
        16, "in_chans": 3, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size":
        14, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23,
        31], "hidden_act": "silu", "tokens_per_second": 2, "model_type": "qwen2_5_vl"}})",
                   8'292'166'656.0, 129'024.0},
    PublishedTower{"Qwen2-VL-7B-Instruct",
                   R"({"model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 152064, "hidden_act": "silu", "use_sliding_window": false,
        "sliding_window": 32768, "max_window_layers": 28, "vision_config": {"depth": 32,
        "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size":
        3584, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14,
        "temporal_patch_size": 2}})",
                   8'291'375'616.0, 129'024.0},
    PublishedTower{
        "InternVL3-8B",
        R"({"model_type": "internvl_chat", "llm_config": {"model_type": "qwen2", "hidden_size":
        3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "vocab_size": 151674, "hidden_act": "silu",
        "use_sliding_window": false, "sliding_window": null}, "vision_config": {"model_type":
        "intern_vit_6b", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers":
        24, "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "qkv_bias": true,
        "qk_normalization": false, "use_flash_attn": true, "norm_type": "layer_norm"},
        "downsample_ratio": 0.5, "select_layer": -1})",
        7'944'373'760.0, 129'024.0},
    PublishedTower{
        "llava-1.5-7b-hf, whose file leaves out what its code has",
        R"({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064,
        "max_position_embeddings": 4096}, "vision_config": {"model_type": "clip_vision_model",
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "patch_size": 14, "image_size": 336, "projection_dim": 768,
        "vocab_size": 32000}, "vision_feature_layer": -2})",
        7'063'427'072.0, 0.0},
    PublishedTower{"Llama-3.2-11B-Vision",
                   R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model",
        "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "hidden_act": "silu", "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]},
        "vision_config": {"model_type": "mllama_vision_model", "hidden_size": 1280,
        "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8,
        "attention_heads": 16, "image_size": 560, "patch_size": 14, "max_num_tiles": 4,
        "vision_output_dim": 7680, "intermediate_layers_indices": [3, 7, 15, 23, 30],
        "max_aspect_ratio_id": 8, "supported_aspect_ratios": []}})",
                   10'670'220'835.0, 0.0},
};

/// The same by its model card, which rounds.
struct RoundedTower {
  std::string_view name, text;
  double billions, within;  ///< half of the last digit
};
constexpr std::array kRounded{
    RoundedTower{"GLM-4.5V",
                 R"({"model_type": "glm4v_moe", "text_config": {"model_type": "glm4v_moe_text",
        "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
        "num_attention_heads": 96, "num_key_value_heads": 8, "vocab_size": 151552,
        "hidden_act": "silu", "head_dim": 128, "attention_bias": true, "n_routed_experts":
        128, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1, "norm_topk_prob": true, "use_qk_norm": false},
        "vision_config": {"model_type": "glm4v_moe", "depth": 24, "hidden_size": 1536,
        "out_hidden_size": 4096, "intermediate_size": 10944, "num_heads": 12, "patch_size":
        14, "image_size": 336, "in_channels": 3, "spatial_merge_size": 2,
        "temporal_patch_size": 2, "attention_bias": false, "hidden_act": "silu"}})",
                 107.7, 0.05},
    RoundedTower{
        "Kimi-VL-A3B",
        R"({"model_type": "kimi_vl", "text_config": {"model_type": "deepseek_v3", "hidden_size":
        2048, "intermediate_size": 11264, "num_hidden_layers": 27, "num_attention_heads": 16,
        "num_key_value_heads": 16, "vocab_size": 163840, "hidden_act": "silu", "q_lora_rank":
        null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
        "moe_layer_freq": 1}, "vision_config": {"model_type": "moonvit", "hidden_size": 1152,
        "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
        "init_pos_emb_height": 64, "init_pos_emb_width": 64, "merge_kernel_size": [2, 2],
        "patch_size": 14}})",
        16.4, 0.05},
    RoundedTower{
        "gemma-3-4b-pt, whose norms of heads are left out",
        R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size":
        2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}, "vision_config":
        {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
        "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, "image_size":
        896, "vision_use_head": false}, "mm_tokens_per_image": 256})",
        4.3, 0.005},
    RoundedTower{
        "aya-vision-8b",
        R"({"model_type": "aya_vision", "text_config": {"model_type": "cohere2", "hidden_size":
        4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 256000, "hidden_act": "silu",
        "sliding_window": 4096, "layer_switch": 4, "head_dim": 128}, "vision_config":
        {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
        "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14, "image_size":
        364, "vision_use_head": false}, "downsample_factor": 2, "alignment_intermediate_size":
        28672})",
        8.63, 0.005},
    RoundedTower{"MiniCPM-V-2_6",
                 R"({"model_type": "minicpmv", "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 151666, "hidden_act": "silu", "sliding_window": 131072,
        "use_sliding_window": false, "max_window_layers": 28, "vision_config": {"model_type":
        "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
        "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 980, "patch_size":
        14}, "query_num": 64})",
                 8.1, 0.005},
    RoundedTower{"Voxtral-Mini-3B-2507, sound included",
                 R"({"model_type": "voxtral", "audio_config": {"model_type": "voxtral_encoder",
        "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32,
        "num_attention_heads": 20, "num_mel_bins": 128, "max_source_positions": 1500,
        "head_dim": 64}, "text_config": {"model_type": "llama", "hidden_size": 3072,
        "intermediate_size": 8192, "num_hidden_layers": 30, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 131072, "hidden_act": "silu", "head_dim":
        128}, "hidden_size": 3072, "audio_token_id": 24, "projector_hidden_act": "gelu"})",
                 4.68, 0.005},
    RoundedTower{
        "Qwen2-Audio-7B, sound included",
        R"({"model_type": "qwen2_audio", "audio_config": {"model_type": "qwen2_audio_encoder",
        "d_model": 1280, "encoder_ffn_dim": 5120, "encoder_layers": 32,
        "encoder_attention_heads": 20, "num_mel_bins": 128, "max_source_positions": 1500},
        "text_config": {"model_type": "qwen2", "hidden_size": 4096, "intermediate_size":
        11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "vocab_size": 156032, "hidden_act": "silu"}})",
        8.4, 0.005},
    RoundedTower{
        "Pixtral-12B, whose file leaves out most of its tower",
        R"({"model_type": "llava", "text_config": {"model_type": "mistral", "head_dim": 128,
        "hidden_size": 5120, "intermediate_size": 14336, "num_hidden_layers": 40,
        "num_key_value_heads": 8, "rope_theta": 1000000000.0, "sliding_window": null,
        "vocab_size": 131072}, "vision_config": {"model_type": "pixtral", "head_dim": 64,
        "hidden_act": "silu", "image_size": 1024, "is_composition": true, "patch_size": 16,
        "rope_theta": 10000.0}})",
        12.7, 0.05},
    RoundedTower{
        "InternVL2_5-78B",
        R"({"model_type": "internvl_chat", "llm_config": {"model_type": "qwen2", "hidden_size":
        8192, "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64,
        "num_key_value_heads": 8, "vocab_size": 151674, "hidden_act": "silu",
        "use_sliding_window": false}, "vision_config": {"model_type": "intern_vit_6b",
        "hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45,
        "num_attention_heads": 25, "image_size": 448, "patch_size": 14, "qkv_bias": false,
        "qk_normalization": true, "use_flash_attn": true, "norm_type": "rms_norm"}})",
        78.4, 0.05},
    RoundedTower{"llava-onevision-qwen2-7b-ov",
                 R"({"model_type": "llava_onevision", "text_config": {"model_type": "qwen2",
        "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152000,
        "hidden_act": "silu", "use_sliding_window": false}, "vision_config": {"model_type":
        "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
        "num_hidden_layers": 26, "num_attention_heads": 16, "patch_size": 14, "image_size":
        384, "vision_use_head": false}})",
                 8.03, 0.005},
};

}  // namespace

TEST_CASE("read_hugging_face: towers and projectors have the weights of their checkpoints") {
  for (const PublishedTower& row : kTowers) {
    CAPTURE(row.name);
    const HuggingFaceModel model = read_seeing(row.text);
    CHECK(total_parameters(model.shape) == row.parameters - row.left_out);
    CHECK(parameter_counts(model.shape).vision > 0.3e9);
  }
}

TEST_CASE("read_hugging_face: towers and what hears are within the rounding of model cards") {
  for (const RoundedTower& row : kRounded) {
    CAPTURE(row.name);
    const double billions = total_parameters(read_seeing(row.text).shape) / 1e9;
    CHECK(billions > row.billions - row.within);
    CHECK(billions < row.billions + row.within);
  }
}

TEST_CASE("read_hugging_face: a tower has as many patches as its file's images") {
  const TransformerShape scout = read_seeing(kTowers[0].text).shape;
  CHECK(scout.tower.layers == 34);
  CHECK(scout.tower.patches == 24 * 24);
  CHECK_FALSE(scout.tower.gated);
  const TransformerShape mistral = read_seeing(kTowers[1].text).shape;
  CHECK(mistral.tower.patches == 110 * 110);
  CHECK(mistral.tower.gated);
  // Qwen2.5-VL's file says no size: nobody knows what an image costs.
  const HuggingFaceModel qwen = read_seeing(kTowers[5].text);
  CHECK(qwen.shape.tower.layers == 0);
  REQUIRE(qwen.assumptions.size() == 2);
  CHECK(qwen.assumptions[1] ==
        "model: no images; the weights of its vision tower are stored and trained, and compute "
        "nothing");
}

TEST_CASE("read_hugging_face: every fifth layer of Llama 3.2 Vision attends to an image alone") {
  TrainingJob job;
  const HuggingFaceModel model = read_seeing(kTowers.back().text);
  job.model = model.shape;
  const TransformerShape& m = job.model;
  CHECK(m.kind(2).mixer == Mixer::attention);
  CHECK_FALSE(m.kind(2).cross);
  CHECK(m.kind(3).mixer == Mixer::none);
  CHECK(m.kind(3).cross);
  REQUIRE(model.assumptions.size() == 1);
  CHECK(model.assumptions[0] ==
        "model: layers attend to an image of 6404 patches beside each sequence; the tower that "
        "makes them is stored and trained, and computes nothing");
  // Four tiles of 40 x 40 patches and a token each. Of 8 layers, keys and values are the image's.
  const double h = 4096, f = 14336, keys = 2 * 8 * 128, s = 8192, patches = 4 * 1601;
  job.batch = {.sequences = 1, .micro_sequences = 1, .tokens = 8192};
  const double products =
      s * (40 * (2 * h * h + 3 * h * f) + 32 * h * keys + 128256 * h) + patches * 8 * h * keys;
  const double cores = 2 * h * s * (32 * s + 8 * patches);
  CHECK(step_flops(job).full.base_units() ==
        doctest::Approx(6 * products + 6 * cores).epsilon(1e-12));
}

TEST_CASE(
    "read_hugging_face: what a part of a file leaves out is said, and a whole file says all") {
  const HuggingFaceModel llava = read_seeing(kTowers[8].text);
  CHECK(llava.shape.layers == 32);
  CHECK(llava.shape.tower.layers == 24);
  REQUIRE(llava.assumptions.size() == 2);
  CHECK(llava.assumptions[0] ==
        "model: num_hidden_layers, hidden_size, num_attention_heads, intermediate_size as the code "
        "of llama has them, where the file leaves them out");
  CHECK_THROWS_WITH_AS(read_seeing(R"({"model_type": "llama", "vocab_size": 32000})"),
                       "config.json: found an object without \"num_hidden_layers\"; allowed: an "
                       "object with it",
                       InputError);
}

TEST_CASE("read_hugging_face: a tower or a projector that is not known is said") {
  const std::string decoder = R"("text_config": {"model_type": "llama", "hidden_size": 64,
      "intermediate_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
      "vocab_size": 1000}, )";
  const HuggingFaceModel tower = read_seeing(R"({"model_type": "newest_vl", )" + decoder +
                                             R"("vision_config": {"model_type": "fast_vit"}})");
  REQUIRE(tower.assumptions.size() == 1);
  CHECK(tower.assumptions[0] ==
        "model: its language part; what it sees with is left out, as no tower is known that "
        "vision_config/model_type calls fast_vit");
  const HuggingFaceModel projector =
      read_seeing(R"({"model_type": "newest_vl", )" + decoder +
                  R"("vision_config": {"model_type": "siglip_vision_model", "hidden_size": 32,
                     "image_size": 28, "intermediate_size": 64, "num_attention_heads": 2,
                     "num_hidden_layers": 3, "patch_size": 14, "vision_use_head": false}})");
  REQUIRE(projector.assumptions.size() == 2);
  CHECK(projector.assumptions[1] ==
        "model: what brings its vision tower's patches to the decoder is left out, as its "
        "model_type is not known");
  // Four products with biases, an MLP of two, two norms; a product from patches, four places, a
  // norm.
  const double layer = 4 * (32 * 32 + 32) + 2 * 32 * 64 + 64 + 32 + 4 * 32;
  CHECK(projector.shape.vision_parameters == 3 * layer + 3 * 14 * 14 * 32 + 32 + 4 * 32 + 2 * 32);
}

TEST_CASE("read_hugging_face: a tower that a file names and does not describe is said") {
  const std::string flat = R"({"model_type": "llava_llama", "hidden_act": "silu",
      "hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 4,
      "num_hidden_layers": 2, "vocab_size": 1000, "mm_vision_tower": )";
  const HuggingFaceModel seeing = read_seeing(flat + R"("openai/clip-vit-large-patch14"})");
  CHECK(seeing.assumptions.back() ==
        "model: its language part; what it sees or hears with (mm_vision_tower) is left out");
  CHECK(read_seeing(flat + "null}").assumptions.size() + 1 == seeing.assumptions.size());
}

TEST_CASE("read_hugging_face: of a model that speaks, the part that thinks is read") {
  const HuggingFaceModel model = read_seeing(R"({"model_type": "qwen3_omni_moe",
      "thinker_config": {"model_type": "qwen3_omni_moe_thinker",
        "text_config": {"model_type": "qwen3_omni_moe_text", "hidden_act": "silu",
          "head_dim": 128, "hidden_size": 2048, "intermediate_size": 768,
          "moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts": 128,
          "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
          "vocab_size": 152064},
        "audio_config": {"model_type": "qwen3_omni_moe_audio_encoder"}}})");
  // The decoder is that of Qwen3-30B-A3B, 30.5 B by its card.
  CHECK(total_parameters(model.shape) == doctest::Approx(30.5e9).epsilon(0.002));
  REQUIRE(model.assumptions.size() == 4);
  CHECK(model.assumptions[0] == "model: norms of queries and keys are left out");
  CHECK(model.assumptions[2] == "model: what it hears with (audio_config) is left out");
  CHECK(model.assumptions[3] ==
        "model: the part that thinks (thinker_config); those that speak are left out");
}

}  // namespace lockstep
