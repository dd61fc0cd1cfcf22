// Encoders of sound in front of a decoder. Sources: modeling_whisper.py, modeling_qwen2_audio.py
// and modeling_voxtral.py in https://github.com/huggingface/transformers.
#include <optional>
#include <string>
#include <string_view>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

/// The number under the name that newer files have, or under the older one.
double either(const JsonCursor& config, std::string_view newer, std::string_view older, int most) {
  return config.at(config.find(older) ? older : newer).integer(1, most);
}

}  // namespace

double audio_encoder_weights(const SoundEncoder& e) {
  constexpr double kSeen = 3;  // places that a convolution goes over
  const double convolutions =
      with_bias(kSeen * e.mels, e.hidden) + with_bias(kSeen * e.hidden, e.hidden);
  // Keys have no biases.
  const double layer = 4 * e.hidden * e.hidden + 3 * e.hidden + with_bias(e.hidden, e.ffn) +
                       with_bias(e.ffn, e.hidden) + 4 * e.hidden;
  return convolutions + e.positions * e.hidden + e.layers * layer + 2 * e.hidden;
}

std::optional<double> audio_parameters(const JsonCursor& file, const JsonCursor& audio,
                                       int hidden) {
  const std::optional<JsonCursor> type = file.find("model_type");
  const std::string family = type && type->is_string() ? type->string() : std::string();
  const bool voxtral = family == "voxtral";
  if (!voxtral && family != "qwen2_audio") return std::nullopt;
  const SoundEncoder encoder{
      .layers = either(audio, "num_hidden_layers", "encoder_layers", kMostLayers),
      .hidden = either(audio, "hidden_size", "d_model", kMostWidth),
      .ffn = either(audio, "intermediate_size", "encoder_ffn_dim", kMostWidth),
      .mels = static_cast<double>(integer_or(audio, "num_mel_bins", 1, kMostWidth, 128)),
      .positions =
          static_cast<double>(integer_or(audio, "max_source_positions", 1, kMostTokens, 1500))};
  const double text = hidden;
  // Four neighbouring results make a token of Voxtral, through two products without biases.
  const double projector =
      voxtral ? encoder.ffn * text + text * text : with_bias(encoder.hidden, text);
  return audio_encoder_weights(encoder) + projector;
}

}  // namespace lockstep::hugging_face
