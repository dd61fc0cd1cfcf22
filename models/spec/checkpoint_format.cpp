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

int bits_of(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : 0;
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
std::string_view format_of_groups(const Json& from) {
  const auto groups = from.find("config_groups");
  if (groups == from.end() || !groups->is_object() || groups->empty()) return {};
  const Json& first = *groups->begin();
  const auto weights = first.is_object() ? first.find("weights") : first.end();
  if (!first.is_object() || weights == first.end() || !weights->is_object()) return {};
  return format_of_bits(bits_of(*weights, "num_bits"), text_of(*weights, "type") == "float");
}

std::string_view format_of(const Json& from) {
  const std::string method = text_of(from, "quant_method");
  for (const std::string& text : {text_of(from, "quant_algo"), text_of(from, "format"), method}) {
    if (const std::string_view format = format_in(text); !format.empty()) return format;
  }
  if (method == "awq" || method == "gptq") return format_of_bits(bits_of(from, "bits"), false);
  return format_of_groups(from);
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
  const Json* from = nullptr;
  const auto look = [&from](const JsonCursor& at) {
    const Json& object = at.json();
    const auto found = object.find("quantization_config");
    if (from == nullptr && found != object.end() && found->is_object()) from = &*found;
  };
  look(config);
  if (const auto text = config.find("text_config"); text && text->is_object()) look(*text);
  if (from == nullptr) return std::nullopt;
  CheckpointFormat out;
  const std::string algorithm = text_of(*from, "quant_algo");
  out.said = text_of(*from, "quant_method");
  if (out.said.empty() || out.said == "modelopt")
    out.said = algorithm.empty() ? "modelopt" : algorithm;
  out.experts = format_of(*from);
  out.weights = keeps_attention(*from) && !out.experts.empty() ? "bf16" : out.experts;
  const std::string_view of_experts = format_in(text_of(*from, "moe_quant_algo"));
  if (!of_experts.empty()) out.experts = of_experts;
  return out;
}

}  // namespace lockstep
