#include "sim/launch/model_names.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/launch/setting.hpp"

namespace lockstep {
namespace {

struct Renamed {
  std::string_view from, to;
};
/// Beginnings of names as vendors write them; longer ones before those that they begin with.
constexpr std::array kBeginnings{
    Renamed{"meta_llama_", "llama_"},
    Renamed{"llama_3_2_", "llama3_2_"},
    Renamed{"llama_3_1_", "llama3_"},
    Renamed{"llama_3_3_", "llama3_"},
    Renamed{"llama_3_", "llama3_"},
    Renamed{"llama_2_", "llama2_"},
    Renamed{"llama3_1_4", "llama3_4"},  // 405B
    Renamed{"llama3_1_8", "llama3_8"},
    Renamed{"llama3_1_7", "llama3_7"},
    Renamed{"llama3_3_7", "llama3_7"},
    Renamed{"llama32_", "llama3_2_"},
    Renamed{"llama31_", "llama3_"},
    Renamed{"llama33_", "llama3_"},
    Renamed{"llama4_17bx16e", "llama4_scout"},
    Renamed{"llama4_17bx128e", "llama4_maverick"},
    Renamed{"llama_4_scout", "llama4_scout"},
    Renamed{"llama_4_maverick", "llama4_maverick"},
    Renamed{"llama4_17b_16e", "llama4_scout"},
    Renamed{"llama4_scout_17b_16e", "llama4_scout"},
    Renamed{"llama4_maverick_17b_128e", "llama4_maverick"},
    Renamed{"llama4_17b_128e", "llama4_maverick"},
    Renamed{"deepseek_v3_671b", "deepseek_v3"},
    Renamed{"deepseek_v3_236b", "deepseek_v2"},
    Renamed{"deepseek_v3_16b", "deepseek_v2_lite"},
    Renamed{"deepseek3_671b", "deepseek_v3"},
    Renamed{"deepseek2_236b", "deepseek_v2"},
    Renamed{"deepseek2_16b", "deepseek_v2_lite"},
    Renamed{"deepseek_v3_1", "deepseek_v3"},
    Renamed{"deepseek_r1", "deepseek_v3"},
    Renamed{"qwen2_5_72b", "qwen2_72b"},
    Renamed{"qwen2_5_7b", "qwen2_7b"},
    Renamed{"qwen2_5_1_5b", "qwen2_1_5b"},
    Renamed{"qwen2_5_0_5b", "qwen2_0_5b"},
    Renamed{"qwen25_72b", "qwen2_72b"},
    Renamed{"qwen25_7b", "qwen2_7b"},
    Renamed{"qwen25_", "qwen2_5_"},
    Renamed{"qwen3_moe_", "qwen3_"},
    Renamed{"qwen3moe_", "qwen3_"},
    Renamed{"deepseekv3", "deepseek_v3"},
    Renamed{"deepseekv2", "deepseek_v2"},
    Renamed{"gpt3_175b", "gpt3_175b"},
    Renamed{"gpt_3_175b", "gpt3_175b"},
    Renamed{"gpt_neox_20b", "gpt_neox_20b"},
};
/// Ends that say how a model was trained further, not what shape it has.
constexpr std::array<std::string_view, 20> kEnds{
    "_instruct", "_base", "_chat",   "_hf",   "_it",      "_pretrain", "_finetune",
    "_sft",      "_fp8",  "_bf16",   "_2507", "_example", "_override", "_thinking",
    "_v0_1",     "_v0_3", "_config", "_peft", "_mock",    "_recipe"};

std::string plain_name(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  name = name.substr(name.rfind('/') + 1);
  std::string out;
  for (const char c : lower(name)) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (letter) {
      out += c;
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (out.ends_with('_')) out.pop_back();
  return out;
}

std::string renamed(std::string name) {
  for (const Renamed& one : kBeginnings) {
    if (name.starts_with(one.from)) name = std::string(one.to) + name.substr(one.from.size());
  }
  return name;
}

}  // namespace

std::string preset_of_model_name(std::string_view name, const PresetStore& presets) {
  if (name.empty() || name.size() > 256) return {};
  std::string plain = plain_name(name);
  for (std::size_t i = 0; i <= kEnds.size(); ++i) {
    for (const std::string& one : {plain, renamed(plain)}) {
      if (std::string meant = presets.meant("models", one); !meant.empty()) return meant;
    }
    const auto* const end = std::ranges::find_if(
        kEnds, [&](std::string_view suffix) { return plain.ends_with(suffix); });
    if (end == kEnds.end()) return {};
    plain.resize(plain.size() - end->size());
  }
  return {};
}

std::string node_of_words(std::string_view text) {
  constexpr std::array kCards{Renamed{"gb300", "gb300_nvl72"},  Renamed{"gb200", "gb200_nvl72"},
                              Renamed{"b300", "dgx_b300"},      Renamed{"b200", "dgx_b200"},
                              Renamed{"h200", "dgx_h200"},      Renamed{"h100", "dgx_h100"},
                              Renamed{"a100", "dgx_a100_80gb"}, Renamed{"mi300x", "mi300x_8"},
                              Renamed{"mi325x", "mi325x_8"},    Renamed{"mi355x", "mi355x_8"},
                              Renamed{"v100", "dgx_v100"}};
  const std::string small = lower(text);
  std::string found;
  for (const Renamed& card : kCards) {
    bool there = false;
    for (std::size_t at = small.find(card.from); at != std::string::npos && !there;
         at = small.find(card.from, at + 1)) {
      there = at == 0 || !((small[at - 1] >= 'a' && small[at - 1] <= 'z') ||
                           (small[at - 1] >= '0' && small[at - 1] <= '9'));
    }
    if (!there) continue;
    if (!found.empty()) return {};
    found = card.to;
  }
  return found;
}

std::int64_t gpus_of_comments(std::string_view text) {
  std::int64_t found = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::vector<std::string> words = words_of(text.substr(at, end - at));
    at = end + 1;
    if (words.empty() || !words[0].starts_with('#') || words[0].starts_with("#SBATCH")) continue;
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      std::int64_t number = 0;
      const bool next = lower(words[i + 1]).starts_with("gpu");
      const bool second = i + 2 < words.size() && lower(words[i + 2]).starts_with("gpu") &&
                          !node_of_words(words[i + 1]).empty();
      if ((!next && !second) || !parse_whole(words[i], number) || number < 1) continue;
      if (found != 0 && found != number) return 0;
      found = number;
    }
  }
  return found;
}

}  // namespace lockstep
