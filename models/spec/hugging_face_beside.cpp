// What a file has beside its decoder: towers that see and hear.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

std::optional<JsonCursor> object_at(const JsonCursor& config, std::string_view key) {
  std::optional<JsonCursor> part = config.find(key);
  return part && part->is_object() ? part : std::nullopt;
}

void add_audio(const JsonCursor& config, HuggingFaceModel& model) {
  const std::optional<JsonCursor> audio = object_at(config, "audio_config");
  if (!audio) return;
  const std::optional<double> weights = audio_parameters(config, *audio, model.shape.hidden);
  if (weights) {
    model.shape.other_parameters += *weights;
    model.assumptions.emplace_back(
        "model: no sound; the weights of what it hears with (audio_config) are among its own, "
        "stored and trained, and compute nothing");
  } else {
    model.assumptions.emplace_back("model: what it hears with (audio_config) is left out");
  }
}

/// Layers that attend to an image and not to the text (Llama 3.2 Vision) have one of so many
/// tokens.
void attend_to_image(int tokens, HuggingFaceModel& model) {
  for (KindShape& kind : model.shape.kinds) {
    if (kind.cross) kind.source_tokens = tokens;
  }
  model.assumptions.push_back("model: layers attend to an image of " + std::to_string(tokens) +
                              " patches beside each sequence; the tower that makes them is stored "
                              "and trained, and computes nothing");
}

/// What a file has beside its decoder.
void add_vision(const JsonCursor& config, HuggingFaceModel& model) {
  const std::optional<JsonCursor> vision = object_at(config, "vision_config");
  if (!vision && config.find("audio_config")) return;
  const std::optional<VisionPart> part =
      vision ? vision_part(config, *vision, model.shape.hidden) : std::nullopt;
  if (!part) {
    const std::optional<JsonCursor> type = vision ? vision->find("model_type") : std::nullopt;
    model.assumptions.emplace_back(
        "model: its language part; what it sees with is left out" +
        (type && type->is_string()
             ? ", as no tower is known that vision_config/model_type calls " + type->string()
             : std::string()));
    return;
  }
  model.shape.vision_parameters = part->parameters;
  model.shape.tower = part->tower;
  if (part->seen > 0) return attend_to_image(part->seen, model);
  model.assumptions.emplace_back(
      part->tower.layers == 0
          ? "model: no images; the weights of its vision tower are stored and trained, and compute "
            "nothing"
          : "model: the weights of its vision tower are stored and trained, and compute where "
            "batch.images says how many images a sequence has");
  if (!part->whole) {
    model.assumptions.emplace_back(
        "model: what brings its vision tower's patches to the decoder "
        "is left out, as its model_type is not known");
  }
}

/// Towers under names that say too little of them: Qwen-VL's, LLaVA's before transformers had it,
/// Chameleon's, Ovis's, Ultravox's.
constexpr std::array<std::string_view, 6> kOtherTowers{"visual",     "mm_vision_tower",
                                                       "vq_config",  "visual_tokenizer_config",
                                                       "vit_config", "audio_model_id"};

}  // namespace

void say_other_towers(const JsonCursor& config, HuggingFaceModel& model) {
  for (const std::string_view key : kOtherTowers) {
    const std::optional<JsonCursor> tower = config.find(key);
    if (!tower || tower->is_null()) continue;
    model.assumptions.push_back("model: its language part; what it sees or hears with (" +
                                std::string(key) + ") is left out");
  }
}

void add_towers(const JsonCursor& config, HuggingFaceModel& model) {
  add_vision(config, model);
  add_audio(config, model);
}

}  // namespace lockstep::hugging_face
