#include "models/collectives/collective_options.hpp"

#include <algorithm>
#include <array>

#include "models/base/letter_case.hpp"

namespace lockstep {

namespace {

constexpr std::string_view kSharpNotes =
    "NVIDIA SHARP Rev 3.13.0, General Information, Capabilities and Limitations";

constexpr std::array kSharpGenerations{
    SharpGeneration{"quantum", 63, true, kSharpNotes},
    SharpGeneration{"quantum2", 511, false, kSharpNotes},
    SharpGeneration{"quantum3", 511, false, "assumed: as Quantum-2; no limits are published"},
};

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    out += lowered(c);
  }
  return out;
}

}  // namespace

std::span<const SharpGeneration> sharp_generations() { return kSharpGenerations; }

const SharpGeneration* sharp_generation(std::string_view name) {
  const auto* const row = std::ranges::find(kSharpGenerations, name, &SharpGeneration::name);
  return row == kSharpGenerations.end() ? nullptr : row;
}

bool NameFilter::allows(std::string_view name) const {
  return names.empty() || (std::ranges::find(names, name) != names.end()) != except;
}

bool NameFilter::asks_for(std::string_view name) const {
  return !except && std::ranges::find(names, name) != names.end();
}

std::optional<std::string> parse_name_filter(std::string_view text,
                                             std::span<const std::string_view> allowed,
                                             NameFilter& out) {
  NameFilter filter;
  filter.except = text.starts_with('^');
  if (filter.except) text.remove_prefix(1);
  while (true) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto known = std::ranges::find_if(
        allowed, [&](std::string_view name) { return plain(name) == plain(word); });
    if (known == allowed.end()) return std::string(word);
    filter.names.emplace_back(*known);
    if (word.size() == text.size()) break;
    text.remove_prefix(word.size() + 1);
  }
  out = std::move(filter);
  return std::nullopt;
}

}  // namespace lockstep
