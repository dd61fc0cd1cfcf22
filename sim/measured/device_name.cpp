#include "sim/measured/device_name.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

std::vector<std::string> device_words(std::string_view text) {
  std::vector<std::string> out(1);
  for (const char c : lowered(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out.back() += c;
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

/// "h100", "mi300x", "l40s"; not "hbm3", "sxm5", "pg509" (a board), "80gb".
bool names_chip(const std::string& word) {
  for (const std::string_view other : {"hbm", "sxm", "pg", "pcie", "gen"}) {
    if (word.starts_with(other)) return false;
  }
  const auto digits = std::ranges::find_if(word, is_digit_char);
  const auto rest = std::find_if_not(digits, word.end(), is_digit_char);
  const auto letters = digits - word.begin(), count = rest - digits, after = word.end() - rest;
  return letters >= 1 && letters <= 3 && count >= 1 && count <= 4 && after <= 1;
}

bool is_memory_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::all_of(word.begin(), word.end() - 2, is_digit_char);
}

bool has_word(const std::vector<std::string>& words, std::string_view begin) {
  return std::ranges::any_of(words, [&](const std::string& w) { return w.starts_with(begin); });
}

/// How the same chip differs, in words; empty: not that a name tells.
std::string difference(const std::vector<std::string>& device,
                       const std::vector<std::string>& preset) {
  if (has_word(device, "pcie") && has_word(preset, "sxm")) return "a PCIe card";
  const bool module = has_word(device, "sxm") || has_word(device, "hbm");
  if (module && !has_word(device, "pcie") && has_word(preset, "pcie")) return "an SXM module";
  // A superchip is named by its CPU's memory.
  if (has_word(preset, "gh") || has_word(preset, "gb")) return {};
  const auto own = std::ranges::find_if(device, is_memory_size);
  const auto asked = std::ranges::find_if(preset, is_memory_size);
  if (own == device.end() || asked == preset.end()) return {};
  const bool same = std::ranges::count(device, *asked) > 0;
  return same ? std::string() : "a card of " + own->substr(0, own->size() - 2) + " GB";
}

}  // namespace

std::string chip_of(std::string_view device) {
  const std::vector<std::string> words = device_words(device);
  const auto found = std::ranges::find_if(words, names_chip);
  return found == words.end() ? std::string() : *found;
}

std::vector<std::string> presets_of_device(std::string_view device, const PresetStore& presets) {
  std::vector<std::string> out;
  const std::string chip = chip_of(device);
  if (chip.empty()) return out;
  for (const std::string& name : presets.names("gpus")) {
    if (name.ends_with("_gcd") || chip_of(name) != chip) continue;
    if (difference(device_words(device), device_words(name)).empty()) out.push_back(name);
  }
  return out;
}

void check_device(const std::string& file, std::string_view device, const std::string& preset,
                  std::string_view option, const PresetStore& presets,
                  std::vector<std::string>& notes) {
  const std::vector<std::string> asked = device_words(preset);
  const std::string wanted = chip_of(preset);
  if (device.empty() || wanted.empty()) return;
  const std::string chip = chip_of(device);
  if (chip.empty()) {
    notes.push_back(fmt::format("{}: recorded on {}, which tells no chip; taken for {}", file,
                                in_quotes(device), preset));
    return;
  }
  if (chip != wanted) {
    std::vector<std::string> known;
    for (const std::string& name : presets.names("gpus")) {
      if (chip_of(name) == chip) known.push_back(name);
    }
    throw InputError(
        {.file = file,
         .pointer = {},
         .found = fmt::format("recorded on {}", in_quotes(device)),
         .allowed = fmt::format(
             "recordings of {}, which {} says{}", preset, option,
             known.empty() ? std::string()
                           : fmt::format("; presets of that card: {}", fmt::join(known, ", "))),
         .nearest = {}});
  }
  const std::string other = difference(device_words(device), asked);
  if (other.empty()) return;
  notes.push_back(fmt::format("{}: recorded on {}, {}, but taken for {}", file, in_quotes(device),
                              other, preset));
}

}  // namespace lockstep
