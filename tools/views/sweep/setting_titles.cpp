#include "tools/views/sweep/setting_titles.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Words = std::pair<std::string_view, std::string_view>;

/// Keys of which the last word alone, or the last two, would not say what they are.
constexpr std::array kTitles{
    Words{"/parallelism/tensor", "Tensor parallelism"},
    Words{"/parallelism/pipeline", "Pipeline parallelism"},
    Words{"/parallelism/data", "Data parallelism"},
    Words{"/parallelism/context", "Context parallelism"},
    Words{"/parallelism/expert", "Expert parallelism"},
    Words{"/parallelism/schedule", "Pipeline schedule"},
    Words{"/parallelism/virtual_stages", "Virtual stages"},
    Words{"/batch/sequences", "Sequences a step"},
    Words{"/batch/micro", "Sequences a micro batch"},
    Words{"/batch/tokens", "Tokens a sequence"},
    Words{"/run/recovery/restarts", "Time to restart"},
    Words{"/run/spares/hot", "Hot spares"},
    Words{"/run/spares/warm", "Warm spares"},
};

/// Parts of a scenario that say nothing of what stands in them.
constexpr std::array<std::string_view, 6> kPlainParts{"",      "cluster", "node",
                                                      "batch", "run",     "parallelism"};

/// How some words are written.
constexpr std::array kSpellings{
    Words{"nic", "NIC"},     Words{"nics", "NICs"},     Words{"gpu", "GPU"},
    Words{"gpus", "GPUs"},   Words{"cpu", "CPU"},       Words{"cpus", "CPUs"},
    Words{"hbm", "HBM"},     Words{"nvlink", "NVLink"}, Words{"nccl", "NCCL"},
    Words{"sharp", "SHARP"}, Words{"usd", "USD"},       Words{"mfu", "MFU"},
    Words{"pcie", "PCIe"},   Words{"kv", "KV"},         Words{"lora", "LoRA"},
    Words{"rl", "RL"},       Words{"mtbf", "MTBF"},     Words{"pue", "PUE"}};

std::string_view last_part(std::string_view pointer) {
  return pointer.substr(pointer.rfind('/') + 1);
}

}  // namespace

std::string words_of_key(std::string_view key) {
  std::string out;
  while (!key.empty()) {
    const std::size_t end = std::min(key.find('_'), key.size());
    const std::string_view word = key.substr(0, end);
    const auto spelling = std::ranges::find(kSpellings, word, &Words::first);
    if (!out.empty()) out += ' ';
    out += spelling == kSpellings.end() ? word : spelling->second;
    key.remove_prefix(std::min(end + 1, key.size()));
  }
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z')
    out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

std::string title_of_key(std::string_view pointer) {
  const auto known = std::ranges::find(kTitles, pointer, &Words::first);
  if (known != kTitles.end()) return std::string(known->second);
  const std::string_view own = last_part(pointer);
  const std::string_view part =
      last_part(pointer.substr(0, std::min(pointer.rfind('/'), pointer.size())));
  if (std::ranges::find(kPlainParts, part) != kPlainParts.end()) return words_of_key(own);
  return words_of_key(std::string(part) + "_" + std::string(own));
}

std::map<std::string, std::string> setting_titles(const Sweep& sweep) {
  struct Setting {
    std::string name, at;
  };
  std::vector<Setting> settings;
  for (const SweepAxis& axis : sweep.axes) {
    for (const SweepVariable& each : axis.variables) settings.push_back({each.name, each.at});
  }
  const std::size_t variables = settings.size();
  for (const DerivedValue& each : sweep.derived) {
    // The number of a quantity is called as the column that has its words.
    const bool is_number = each.quantity_of && each.quantity_of->column < variables;
    settings.push_back({each.name, is_number ? settings[each.quantity_of->column].at : each.at});
  }
  std::map<std::string, std::string> out;
  std::map<std::string, std::string> place_of;  // by title: the place that has it
  for (const Setting& each : settings) {
    std::string title = each.at.empty() ? words_of_key(each.name) : title_of_key(each.at);
    const auto [first, is_new] = place_of.try_emplace(title, each.at);
    if (!is_new && first->second != each.at) title = words_of_key(each.name);
    out[each.name] = std::move(title);
  }
  return out;
}

}  // namespace lockstep
