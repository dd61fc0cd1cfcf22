// Encoders and encoder-decoders from config.json.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/layer/flops.hpp"
#include "models/spec/hugging_face.hpp"
#include "tests/support/real_files.hpp"

namespace lockstep {
namespace {

HuggingFaceModel read_encoder_file(std::string_view text) {
  return read_hugging_face(JsonCursor::parse("config.json", text), "model");
}

/// The keys that matter, and how many weights the family's code makes of them.
struct CountedEncoder {
  std::string_view name, text;
  double parameters;
};
// Sources: num_parameters() of BertForPreTraining, RobertaForMaskedLM, DistilBertForMaskedLM,
// ViTModel without pooler, CLIPModel, T5ForConditionalGeneration, BartForConditionalGeneration,
// XLMRobertaForMaskedLM, ModernBertForMaskedLM, SiglipModel, Dinov2Model,
// WhisperForConditionalGeneration, MPNetForMaskedLM, CamembertForMaskedLM, EsmForMaskedLM,
// ElectraForPreTraining, ElectraForMaskedLM, AlbertForPreTraining, CLIPVisionModel, CLIPTextModel,
// CLIPTextModelWithProjection, SiglipVisionModel, DeiTModel, BeitModel, Dinov2WithRegistersModel
// and DINOv3ViTModel (published as 300 M and 6,716 M) in
// https://github.com/huggingface/transformers.
constexpr std::array kEncoders{
    CountedEncoder{"bert-base-uncased",
                   R"({"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072,
                       "max_position_embeddings": 512, "num_attention_heads": 12,
                       "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522})",
                   110'106'428.0},
    CountedEncoder{"roberta-base",
                   R"({"model_type": "roberta", "hidden_size": 768, "intermediate_size": 3072,
                       "max_position_embeddings": 514, "num_attention_heads": 12,
                       "num_hidden_layers": 12, "type_vocab_size": 1, "vocab_size": 50265})",
                   124'697'433.0},
    CountedEncoder{"distilbert-base-uncased",
                   R"({"model_type": "distilbert", "dim": 768, "hidden_dim": 3072, "n_heads": 12,
                       "n_layers": 6, "max_position_embeddings": 512, "vocab_size": 30522})",
                   66'985'530.0},
    CountedEncoder{"vit-base-patch16-224",
                   R"({"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072,
                       "num_attention_heads": 12, "num_hidden_layers": 12, "patch_size": 16,
                       "image_size": 224})",
                   85'798'656.0},
    CountedEncoder{"clip-vit-large-patch14",
                   R"({"model_type": "clip", "projection_dim": 768,
                       "text_config": {"hidden_size": 768, "intermediate_size": 3072,
                         "max_position_embeddings": 77, "num_attention_heads": 12,
                         "num_hidden_layers": 12, "vocab_size": 49408},
                       "vision_config": {"hidden_size": 1024, "intermediate_size": 4096,
                         "image_size": 224, "num_attention_heads": 16, "num_hidden_layers": 24,
                         "patch_size": 14}})",
                   427'616'513.0},
    CountedEncoder{"t5-v1_1-xxl",
                   R"({"model_type": "t5", "d_ff": 10240, "d_kv": 64, "d_model": 4096,
                       "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true,
                       "num_decoder_layers": 24, "num_heads": 64, "num_layers": 24,
                       "relative_attention_num_buckets": 32, "tie_word_embeddings": false,
                       "vocab_size": 32128})",
                   11'135'332'352.0},
    CountedEncoder{"bart-large",
                   R"({"model_type": "bart", "d_model": 1024, "decoder_attention_heads": 16,
                       "decoder_ffn_dim": 4096, "decoder_layers": 12,
                       "encoder_attention_heads": 16, "encoder_ffn_dim": 4096,
                       "encoder_layers": 12, "is_encoder_decoder": true,
                       "max_position_embeddings": 1024, "vocab_size": 50265})",
                   406'291'456.0},
    CountedEncoder{"xlm-roberta-base",
                   R"({"model_type": "xlm-roberta", "hidden_size": 768, "intermediate_size": 3072,
        "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 250002,
        "max_position_embeddings": 514, "type_vocab_size": 1})",
                   278'295'186.0},
    CountedEncoder{"ModernBERT-base",
                   R"({"model_type": "modernbert", "hidden_size": 768, "intermediate_size": 1152,
        "num_hidden_layers": 22, "num_attention_heads": 12, "vocab_size": 50368,
        "global_attn_every_n_layers": 3, "local_attention": 128, "hidden_activation": "gelu",
        "attention_bias": false, "mlp_bias": false, "norm_bias": false, "decoder_bias": true})",
                   149'655'232.0},
    CountedEncoder{"ModernBERT-large",
                   R"({"model_type": "modernbert", "hidden_size": 1024, "intermediate_size": 2624,
        "num_hidden_layers": 28, "num_attention_heads": 16, "vocab_size": 50368,
        "global_attn_every_n_layers": 3, "local_attention": 128, "hidden_activation": "gelu",
        "attention_bias": false, "mlp_bias": false, "norm_bias": false, "decoder_bias": true})",
                   395'881'664.0},
    CountedEncoder{"siglip-so400m-patch14-384",
                   R"({"model_type": "siglip", "text_config": {"model_type": "siglip_text_model",
        "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "num_attention_heads": 16, "vocab_size": 32000, "max_position_embeddings": 64},
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152,
        "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
        "image_size": 384, "patch_size": 14}})",
                   877'960'498.0},
    CountedEncoder{
        "dinov2-large",
        R"({"model_type": "dinov2", "hidden_size": 1024, "mlp_ratio": 4, "num_hidden_layers": 24,
        "num_attention_heads": 16, "image_size": 518, "patch_size": 14, "layerscale_value":
        1.0, "use_swiglu_ffn": false, "qkv_bias": true})",
        304'368'640.0},
    CountedEncoder{"whisper-small",
                   R"({"model_type": "whisper", "d_model": 768, "encoder_layers": 12,
        "encoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_layers": 12,
        "decoder_attention_heads": 12, "decoder_ffn_dim": 3072, "num_mel_bins": 80,
        "max_source_positions": 1500, "max_target_positions": 448, "vocab_size": 51865,
        "is_encoder_decoder": true})",
                   241'734'912.0},
    CountedEncoder{"whisper-large-v3",
                   R"({"model_type": "whisper", "d_model": 1280, "encoder_layers": 32,
        "encoder_attention_heads": 20, "encoder_ffn_dim": 5120, "decoder_layers": 32,
        "decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "num_mel_bins": 128,
        "max_source_positions": 1500, "max_target_positions": 448, "vocab_size": 51866,
        "is_encoder_decoder": true})",
                   1'543'490'560.0},
    CountedEncoder{"mpnet-base",
                   R"({"model_type": "mpnet", "hidden_size": 768, "intermediate_size": 3072,
        "max_position_embeddings": 514, "num_attention_heads": 12, "num_hidden_layers": 12,
        "relative_attention_num_buckets": 32, "vocab_size": 30527})",
                   109'518'527.0},
    CountedEncoder{"camembert-base",
                   R"({"model_type": "camembert", "hidden_size": 768, "intermediate_size": 3072,
        "max_position_embeddings": 514, "num_attention_heads": 12, "num_hidden_layers": 12,
        "type_vocab_size": 1, "vocab_size": 32005})",
                   110'655'493.0},
    CountedEncoder{"xlm-roberta-xl",
                   R"({"model_type": "xlm-roberta-xl", "hidden_size": 2560, "intermediate_size":
        10240, "max_position_embeddings": 514, "num_attention_heads": 32, "num_hidden_layers": 36,
        "type_vocab_size": 1, "vocab_size": 250880})",
                   3'482'741'760.0},
    CountedEncoder{"esm2_t33_650M_UR50D",
                   R"({"model_type": "esm", "hidden_size": 1280, "intermediate_size": 5120,
        "emb_layer_norm_before": false, "is_folding_model": false, "max_position_embeddings": 1026,
        "num_attention_heads": 20, "num_hidden_layers": 33, "position_embedding_type": "rotary",
        "token_dropout": true, "vocab_size": 33})",
                   651'043'254.0},
    CountedEncoder{"electra-small-discriminator",
                   R"({"model_type": "electra", "architectures": ["ElectraForPreTraining"],
        "embedding_size": 128, "hidden_size": 256, "intermediate_size": 1024,
        "max_position_embeddings": 512, "num_attention_heads": 4, "num_hidden_layers": 12,
        "type_vocab_size": 2, "vocab_size": 30522})",
                   13'549'057.0},
    CountedEncoder{"electra-large-discriminator",
                   R"({"model_type": "electra", "architectures": ["ElectraForPreTraining"],
        "embedding_size": 1024, "hidden_size": 1024, "intermediate_size": 4096,
        "max_position_embeddings": 512, "num_attention_heads": 16, "num_hidden_layers": 24,
        "type_vocab_size": 2, "vocab_size": 30522})",
                   335'142'913.0},
    CountedEncoder{"electra-small-generator",
                   R"({"model_type": "electra", "architectures": ["ElectraForMaskedLM"],
        "embedding_size": 128, "hidden_size": 256, "intermediate_size": 1024,
        "max_position_embeddings": 512, "num_attention_heads": 4, "num_hidden_layers": 12,
        "type_vocab_size": 2, "vocab_size": 30522})",
                   13'546'682.0},
    CountedEncoder{"albert-base-v2",
                   R"({"model_type": "albert", "embedding_size": 128, "hidden_size": 768,
        "inner_group_num": 1, "intermediate_size": 3072, "max_position_embeddings": 512,
        "num_attention_heads": 12, "num_hidden_groups": 1, "num_hidden_layers": 12,
        "type_vocab_size": 2, "vocab_size": 30000})",
                   11'813'810.0},
    CountedEncoder{"albert-xxlarge-v2",
                   R"({"model_type": "albert", "embedding_size": 128, "hidden_size": 4096,
        "inner_group_num": 1, "intermediate_size": 16384, "max_position_embeddings": 512,
        "num_attention_heads": 64, "num_hidden_groups": 1, "num_hidden_layers": 12,
        "type_vocab_size": 2, "vocab_size": 30000})",
                   223'158'450.0},
    CountedEncoder{"clip-vit-large-patch14, its image encoder",
                   R"({"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 224,
        "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24,
        "patch_size": 14, "projection_dim": 768})",
                   303'179'776.0},
    CountedEncoder{"clip-vit-large-patch14, its text encoder",
                   R"({"model_type": "clip_text_model", "hidden_size": 768, "intermediate_size":
        3072, "max_position_embeddings": 77, "num_attention_heads": 12, "num_hidden_layers": 12,
        "projection_dim": 768, "vocab_size": 49408})",
                   123'060'480.0},
    CountedEncoder{"stable-diffusion-xl-base-1.0, its second text encoder",
                   R"({"model_type": "clip_text_model", "hidden_size": 1280,
        "architectures": ["CLIPTextModelWithProjection"], "intermediate_size": 5120,
        "max_position_embeddings": 77, "num_attention_heads": 20, "num_hidden_layers": 32,
        "projection_dim": 1280, "vocab_size": 49408})",
                   694'659'840.0},
    CountedEncoder{"siglip-so400m-patch14-384, its image encoder",
                   R"({"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 384,
        "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
        "patch_size": 14})",
                   428'225'600.0},
    CountedEncoder{"deit-base-distilled-patch16-224",
                   R"({"model_type": "deit", "hidden_size": 768, "intermediate_size": 3072,
        "architectures": ["DeiTForImageClassificationWithTeacher"], "image_size": 224,
        "num_attention_heads": 12, "num_hidden_layers": 12, "patch_size": 16})",
                   85'800'192.0},
    CountedEncoder{"beit-base-patch16-224, without classes",
                   R"({"model_type": "beit", "hidden_size": 768, "intermediate_size": 3072,
        "image_size": 224, "layer_scale_init_value": 0.1, "num_attention_heads": 12,
        "num_hidden_layers": 12, "patch_size": 16, "use_absolute_position_embeddings": false,
        "use_mask_token": false, "use_mean_pooling": true, "use_relative_position_bias": true,
        "use_shared_relative_position_bias": false})",
                   85'761'984.0},
    CountedEncoder{"dinov2-with-registers-large",
                   R"({"model_type": "dinov2_with_registers", "hidden_size": 1024, "mlp_ratio": 4,
        "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 518, "patch_size": 14,
        "num_register_tokens": 4, "use_swiglu_ffn": false, "qkv_bias": true})",
                   304'372'736.0},
    CountedEncoder{"dinov3-vitl16-pretrain-lvd1689m",
                   R"({"model_type": "dinov3_vit", "hidden_size": 1024, "intermediate_size": 4096,
        "image_size": 224, "key_bias": false, "mlp_bias": true, "num_attention_heads": 16,
        "num_hidden_layers": 24, "num_register_tokens": 4, "patch_size": 16, "proj_bias": true,
        "query_bias": true, "use_gated_mlp": false, "value_bias": true})",
                   303'129'600.0},
    CountedEncoder{"dinov3-vit7b16-pretrain-lvd1689m",
                   R"({"model_type": "dinov3_vit", "hidden_size": 4096, "intermediate_size": 8192,
        "image_size": 224, "key_bias": false, "mlp_bias": true, "num_attention_heads": 32,
        "num_hidden_layers": 40, "num_register_tokens": 4, "patch_size": 16, "proj_bias": true,
        "query_bias": false, "use_gated_mlp": true, "value_bias": false})",
                   6'716'035'072.0},
};
std::string_view encoder_text(std::string_view name) {
  for (const CountedEncoder& one : kEncoders) {
    if (one.name == name) return one.text;
  }
  FAIL("no such file");
  return {};
}

}  // namespace

TEST_CASE("read_hugging_face: encoders have the weights that their code makes") {
  for (const CountedEncoder& one : kEncoders) {
    CAPTURE(one.name);
    // Parts of a layer that all have together add up but for rounding.
    CHECK(total_parameters(read_encoder_file(one.text).shape) ==
          doctest::Approx(one.parameters).epsilon(1e-12));
  }
}

TEST_CASE("read_hugging_face: an encoder sees both ways, and a decoder behind one sees it too") {
  const TransformerShape bert = read_encoder_file(kEncoders[0].text).shape;
  CHECK(shape_of(bert, bert.kind(0)).bidirectional);
  const HuggingFaceModel t5 = read_encoder_file(kEncoders[5].text);
  const TransformerShape& m = t5.shape;
  CHECK(m.layers == 48);
  CHECK(shape_of(m, m.kind(23)).bidirectional);
  CHECK_FALSE(m.kind(23).cross);
  CHECK_FALSE(shape_of(m, m.kind(24)).bidirectional);
  CHECK(m.kind(24).cross);
  CHECK(m.kind(24).blocks() == 3);
  REQUIRE(t5.assumptions.size() == 1);
  CHECK(t5.assumptions[0] ==
        "model: an encoder and a decoder; batch.tokens are the decoder's, batch.source_tokens the "
        "encoder's");
}

TEST_CASE("read_hugging_face: CLIP is its image encoder, and its text encoder beside it") {
  const HuggingFaceModel clip = read_encoder_file(kEncoders[4].text);
  const TransformerShape& m = clip.shape;
  CHECK(m.hidden == 1024);
  CHECK(m.max_positions == 257);
  REQUIRE(clip.assumptions.size() == 2);
  CHECK(clip.assumptions[0] ==
        "model: an encoder of images; batch.tokens are the patches of one and a token beside them, "
        "of the file's images 257");
  CHECK(clip.assumptions[1] == "model: its text encoder reads 77 words beside each image");
  REQUIRE(m.layers == 36);
  const KindShape image = shape_of(m, m.kind(0)), word = shape_of(m, m.kind(24));
  CHECK(image.bidirectional);
  CHECK(image.tokens == 0);
  CHECK_FALSE(word.bidirectional);
  CHECK(word.tokens == 77);
  CHECK(word.hidden == 768);
}

TEST_CASE("step_flops: CLIP's towers each do the work of their own tokens and width") {
  TrainingJob job;
  job.model = read_encoder_file(kEncoders[4].text).shape;
  job.batch = {.sequences = 4, .micro_sequences = 1, .tokens = 257};
  const double h = 1024, w = 768, patches = 257, words = 77;
  // Words see those before them. A row stands in place of a table of patches.
  const double image = patches * (6 * (24 * 12 * h * h + h) + 12 * 24 * h * patches);
  const double text = words * (6 * 12 * 12 * w * w + 12 * 12 * w * words / 2);
  CHECK(step_flops(job).causal.base_units() == doctest::Approx(4 * (image + text)).epsilon(1e-12));
}

TEST_CASE("step_flops: an encoder-decoder does each of its texts' work") {
  TrainingJob job;
  job.model = read_encoder_file(kEncoders[5].text).shape;
  const double h = 4096, f = 10240, s = 1024, t = 256;
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 256, .source_tokens = 1024};
  const double mlp = 3 * h * f, layers = 24;
  const double encoder = s * (6 * layers * (4 * h * h + mlp) + 12 * layers * h * s);
  // Keys and values of cross attention come from each word of the source, queries from the text.
  const double decoder = t * (6 * layers * (6 * h * h + mlp) + 12 * layers * h * (t / 2 + s)) +
                         s * 6 * layers * 2 * h * h + t * 6 * 32128 * h;
  CHECK(step_flops(job).causal.base_units() ==
        doctest::Approx(2 * (encoder + decoder)).epsilon(1e-12));
  job.batch.source_tokens = 256;
  const StepFlops as_long = step_flops(job);
  job.batch.source_tokens = 0;
  CHECK(step_flops(job).causal == as_long.causal);
}

TEST_CASE("read_hugging_face: of ModernBERT every third layer sees all, others 64 words each way") {
  TrainingJob job;
  job.model = read_encoder_file(kEncoders[8].text).shape;
  const TransformerShape& m = job.model;
  REQUIRE(m.layers == 22);
  CHECK(shape_of(m, m.kind(0)).window == 0);
  CHECK(shape_of(m, m.kind(1)).window == 128);
  CHECK(shape_of(m, m.kind(2)).window == 128);
  CHECK(shape_of(m, m.kind(21)).window == 0);
  const double h = 768, f = 1152, s = 1024;
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 1024};
  // 8 layers go over all words, 14 over 128; nothing is masked but what is beyond them.
  const double closed =
      2 * s * (6 * (22 * (4 * h * h + 3 * h * f) + 50368 * h) + 12 * h * (8 * s + 14 * 128));
  CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
  CHECK(step_flops(job).causal.base_units() == doctest::Approx(closed).epsilon(1e-12));
}

TEST_CASE("read_hugging_face: Whisper's encoder hears, and its decoder attends to what it heard") {
  const HuggingFaceModel whisper = read_encoder_file(kEncoders[12].text);
  const TransformerShape& m = whisper.shape;
  REQUIRE(m.layers == 24);
  CHECK(shape_of(m, m.kind(11)).bidirectional);
  CHECK(shape_of(m, m.kind(11)).of_source);
  CHECK(m.kind(12).cross);
  REQUIRE(whisper.assumptions.size() == 2);
  CHECK(whisper.assumptions[1] == "model: 30 s of sound are batch.source_tokens of 1500");
}

TEST_CASE("read_hugging_face: an ELECTRA discriminator predicts no words, its generator does") {
  TrainingJob job;
  const HuggingFaceModel model = read_encoder_file(encoder_text("electra-small-discriminator"));
  job.model = model.shape;
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 128};
  const double h = 256, f = 1024, s = 128;
  // A row stands in place of a table of words.
  const double closed = 2 * s * (6 * (12 * (4 * h * h + 2 * h * f) + h) + 12 * 12 * h * s);
  CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
  REQUIRE(model.assumptions.size() == 1);
  std::string generator{encoder_text("electra-large-discriminator")};
  generator.replace(generator.find("ForPreTraining"), 14, "ForMaskedLM");
  const TransformerShape words = read_encoder_file(generator).shape;
  CHECK(words.vocabulary == 30522);
  // A bias for each word and a norm in place of what says that a word was replaced.
  CHECK(total_parameters(words) == 335'142'913.0 - 1025 + 30522 + 2 * 1024);
}

TEST_CASE("read_hugging_face: ALBERT has one layer's weights, and does the work of all layers") {
  TrainingJob job;
  job.model = read_encoder_file(encoder_text("albert-base-v2")).shape;
  const TransformerShape& m = job.model;
  job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 512};
  const double h = 768, f = 3072, s = 512, table = 128;
  const double closed =
      2 * s * (6 * (12 * (4 * h * h + 2 * h * f) + 30000 * table) + 12 * 12 * h * s);
  CHECK(step_flops(job).full.base_units() == doctest::Approx(closed).epsilon(1e-12));
  CHECK(12 * layer_parameters(m, m.kind(0)) ==
        doctest::Approx(4 * h * h + 2 * h * f + 9 * h + f).epsilon(1e-12));
  CHECK(layer_matrix_parameters(m, m.kind(0)) == 4 * h * h + 2 * h * f);
  // One adapter for all layers, met as often as there are layers.
  job.adapters.rank = 8;
  job.adapters.modules[static_cast<std::size_t>(AdapterModule::mlp_up)] = true;
  CHECK(adapter_parameters(job) == doctest::Approx(8 * (h + f)).epsilon(1e-12));
  CHECK(met_adapter_parameters(job) == doctest::Approx(12 * 8 * (h + f)).epsilon(1e-12));
}

TEST_CASE("read_hugging_face: tokens beside an image's patches are said, and count") {
  const HuggingFaceModel dino = read_encoder_file(encoder_text("dinov3-vit7b16-pretrain-lvd1689m"));
  REQUIRE(dino.assumptions.size() == 1);
  CHECK(dino.assumptions[0] ==
        "model: an encoder of images; batch.tokens are the patches of one and 5 tokens beside "
        "them, of the file's images 201");
  CHECK(dino.shape.rotary);
  CHECK_FALSE(dino.shape.learned_positions);
  const HuggingFaceModel deit = read_encoder_file(encoder_text("deit-base-distilled-patch16-224"));
  CHECK(deit.shape.max_positions == 198);
  std::string classes{encoder_text("deit-base-distilled-patch16-224")};
  classes.insert(1, R"("id2label": {"0": "cat", "1": "dog"}, )");
  // Two heads, of which one learns from the teacher.
  CHECK(total_parameters(read_encoder_file(classes).shape) == 85'800'192.0 + 2 * 2 * 769);
}

TEST_CASE("read_hugging_face: encoders that do not fit are refused in one line") {
  const auto complaint = [](std::string_view text) -> std::string {
    try {
      (void)read_encoder_file(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  CHECK(complaint(R"({"model_type": "wav2vec2"})") ==
        "config.json#/model_type: found \"wav2vec2\"; allowed: a decoder, or an encoder of text or "
        "images; wav2vec2 is an encoder of sound behind convolutions");
  CHECK(complaint(R"({"model_type": "modernbert", "hidden_size": 64, "intermediate_size": 96,
                      "num_attention_heads": 4, "num_hidden_layers": 3, "mlp_bias": true})") ==
        "config.json#/mlp_bias: found true; allowed: false: biases in one half of a layer are not "
        "known");
  std::string groups{encoder_text("albert-base-v2")};
  groups.replace(groups.find("\"num_hidden_groups\": 1"), 22, "\"num_hidden_groups\": 5");
  CHECK(complaint(groups) ==
        "config.json#/num_hidden_groups: found 5; allowed: a divisor of 12 (num_hidden_layers)");
  CHECK(complaint(R"({"model_type": "esm", "is_folding_model": true})") ==
        "config.json#/is_folding_model: found true; allowed: false: what folds a protein "
        "(ESMFold) is not known");
  CHECK(complaint(R"({"model_type": "bart", "d_model": 64, "encoder_attention_heads": 4,
                      "decoder_attention_heads": 8})") ==
        "config.json#/encoder_attention_heads: found 4; allowed: 8 (decoder_attention_heads)");
  CHECK(complaint(R"({"model_type": "bert", "hidden_size": 8, "num_attention_heads": 16,
                      "num_hidden_layers": 1})") ==
        "config.json#/num_attention_heads: found 16; allowed: a divisor of 8 (hidden_size)");
  CHECK(complaint(R"({"model_type": "mbart", "d_model": 64, "encoder_attention_heads": 6,
                      "decoder_attention_heads": 6})") ==
        "config.json#/encoder_attention_heads: found 6; allowed: a divisor of 64 (d_model)");
  CHECK(complaint(R"({"model_type": "bert", "is_decoder": true})") ==
        "config.json#/is_decoder: found true; allowed: false: only encoders are known of bert");
}

TEST_CASE("read_hugging_face: files of CLIP and T5 as they are published" *
          doctest::skip(!test::has_real_files())) {
  for (const auto& [name, parameters] : {std::pair{"clip-vit-large-patch14", 427'616'513.0},
                                         std::pair{"t5-v1_1-xxl", 11'135'332'352.0}}) {
    CAPTURE(name);
    const std::string path = test::real_file("huggingface/" + std::string(name) + ".json");
    CHECK(total_parameters(read_encoder_file(read_text_file(path)).shape) == parameters);
  }
}

}  // namespace lockstep
