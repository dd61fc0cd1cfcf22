#include "models/spec/checkpoint_format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// The text of a member in small letters; empty where there is none.
std::string text_of(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  std::string text = found->get<std::string>();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// 0 where there are none. A mean of several formats (4.65) is none that a weight has.
int bits_of(const JsonCursor& object, std::string_view key) {
  constexpr int kMostBits = 64;
  const std::optional<JsonCursor> bits = object.find(key);
  return bits && !bits->is_null() ? bits->integer(0, kMostBits) : 0;
}

std::string_view format_of_bits(int bits, bool floats) {
  if (bits == 4) return floats ? "fp4" : "int4";
  return bits == 8 && floats ? "fp8" : "";
}

/// Words of a method or an algorithm that decide; the first that is found.
struct Word {
  std::string_view word, format;
};
constexpr std::array kWords{Word{"nvfp4", "fp4"}, Word{"mxfp4", "fp4"}, Word{"w4a16", "int4"},
                            Word{"w4a8", "int4"}, Word{"int4", "int4"}, Word{"fp8", "fp8"}};

std::string_view format_in(const std::string& text) {
  for (const Word& one : kWords) {
    if (text.find(one.word) != std::string::npos) return one.format;
  }
  return {};
}

/// Of compressed-tensors: what its first group does to weights.
std::string_view format_of_groups(const JsonCursor& from) {
  const std::optional<JsonCursor> groups = from.find("config_groups");
  if (!groups || !groups->is_object() || groups->keys().empty()) return {};
  const JsonCursor first = groups->at(groups->keys().front());
  const std::optional<JsonCursor> weights =
      first.is_object() ? first.find("weights") : std::nullopt;
  if (!weights || !weights->is_object()) return {};
  return format_of_bits(bits_of(*weights, "num_bits"), text_of(weights->json(), "type") == "float");
}

std::string_view format_of(const JsonCursor& at) {
  const Json& from = at.json();
  const std::string method = text_of(from, "quant_method");
  for (const std::string& text : {text_of(from, "quant_algo"), text_of(from, "format"), method}) {
    if (const std::string_view format = format_in(text); !format.empty()) return format;
  }
  if (method == "awq" || method == "gptq") return format_of_bits(bits_of(at, "bits"), false);
  return format_of_groups(at);
}

/// Whether the modules that stay as they are include attention.
bool keeps_attention(const Json& from) {
  for (const std::string_view key : {"ignore", "modules_to_not_convert", "exclude_modules"}) {
    const auto found = from.find(key);
    if (found == from.end() || !found->is_array()) continue;
    for (const Json& name : *found) {
      const std::string text = name.is_string() ? name.get<std::string>() : std::string();
      // A vision tower has attention of its own.
      const auto has = [&text](std::string_view part) { return text.find(part) != text.npos; };
      if (has("attn") && !has("vis")) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<CheckpointFormat> checkpoint_format(const JsonCursor& config) {
  std::optional<JsonCursor> at;
  const auto look = [&at](const JsonCursor& part) {
    const std::optional<JsonCursor> found = part.find("quantization_config");
    if (!at && found && found->is_object()) at = found;
  };
  look(config);
  if (const auto text = config.find("text_config"); text && text->is_object()) look(*text);
  if (!at) return std::nullopt;
  const Json& from = at->json();
  CheckpointFormat out;
  const std::string algorithm = text_of(from, "quant_algo");
  out.said = text_of(from, "quant_method");
  if (out.said.empty() || out.said == "modelopt")
    out.said = algorithm.empty() ? "modelopt" : algorithm;
  out.experts = format_of(*at);
  out.weights = keeps_attention(from) && !out.experts.empty() ? "bf16" : out.experts;
  const std::string_view of_experts = format_in(text_of(from, "moe_quant_algo"));
  if (!of_experts.empty()) out.experts = of_experts;
  return out;
}

}  // namespace lockstep
