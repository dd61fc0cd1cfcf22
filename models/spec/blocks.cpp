#include "models/spec/blocks.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <string_view>

namespace lockstep {

// Each in a file of its own, block_*.cpp, which a unity source may hold above this one.
// NOLINTBEGIN(readability-redundant-declaration)
extern const MixerKind kDeltaMixer, kShortConvolutionMixer, kGatedRecurrenceMixer;
extern const MixerKind kJointAttentionMixer, kClosingAttentionMixer, kModulatedAttentionMixer;
extern const MixerKind kConvolutionMixer, kResidualMixer, kLinearAttentionMixer;
extern const MixerKind kAttentionMambaMixer, kRwkvMixer, kGatedMemoryMixer;
extern const MixerKind kWideAttentionMixer, kAdaptedMambaMixer;
// NOLINTEND(readability-redundant-declaration)

namespace {

/// A layer that is an MLP or experts alone.
constexpr MixerKind kNoMixer{.mixer = Mixer::none, .name = "none"};

// In the order of Mixer.
constexpr std::array<const MixerKind*, 17> kMixerKinds{
    &kAttentionMixer,
    &kMambaMixer,
    &kNoMixer,
    &kDeltaMixer,
    &kShortConvolutionMixer,
    &kJointAttentionMixer,
    &kClosingAttentionMixer,
    &kModulatedAttentionMixer,
    &kConvolutionMixer,
    &kResidualMixer,
    &kLinearAttentionMixer,
    &kGatedRecurrenceMixer,
    &kAttentionMambaMixer,
    &kRwkvMixer,
    &kGatedMemoryMixer,
    &kWideAttentionMixer,
    &kAdaptedMambaMixer,
};
static_assert(kMixerKinds.size() >= kNamedMixers && kMixerKinds.size() <= kMostMixers);

}  // namespace

std::span<const MixerKind* const> mixer_kinds() { return kMixerKinds; }

bool is_among(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::string_view word = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), word.size() + 1));
    if (word.ends_with('*') ? name.starts_with(word.substr(0, word.size() - 1)) : name == word) {
      return true;
    }
  }
  return false;
}

const MixerKind& info(Mixer mixer) {
  const MixerKind& kind = *kMixerKinds[static_cast<std::size_t>(mixer)];
  assert(kind.mixer == mixer);
  return kind;
}

std::optional<SharedParts> uneven_parts(const TransformerShape& m, int ranks) {
  for (int layer = 0; layer < m.layers; ++layer) {
    const KindShape kind = shape_of(m, m.kind(layer));
    const MixerKind& mixer = info(kind.mixer);
    if (mixer.shared == nullptr) continue;
    for (const SharedParts& each : mixer.shared(m, kind)) {
      const bool copies = each.copied && ranks % each.parts == 0;
      if (each.parts % ranks != 0 && !copies) return each;
    }
  }
  return std::nullopt;
}

std::string_view why_one_stage(const KindShape& kind) {
  if (const MixerKind& mixer = info(kind.mixer); !mixer.one_stage.empty()) return mixer.one_stage;
  if (kind.shared_keys) {
    return "the model has layers that take their keys and values from others, which no stage "
           "passes on";
  }
  if (kind.shared_by > 1) {
    return "layers on every stage would need the weights that they have together";
  }
  return {};
}

double mixer_columns(const TransformerShape& m) {
  double widest = 0;
  for (const MixerKind* kind : kMixerKinds) {
    if (kind->columns != nullptr) widest = std::max(widest, kind->columns(m));
  }
  return widest;
}

}  // namespace lockstep
