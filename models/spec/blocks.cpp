#include "models/spec/blocks.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace lockstep {

// Each in a file of its own, block_*.cpp, which a unity source may hold above this one.
// NOLINTBEGIN(readability-redundant-declaration)
extern const MixerKind kDeltaMixer, kShortConvolutionMixer, kGatedRecurrenceMixer;
extern const MixerKind kJointAttentionMixer, kClosingAttentionMixer, kModulatedAttentionMixer;
extern const MixerKind kConvolutionMixer, kResidualMixer, kLinearAttentionMixer;
extern const MixerKind kAttentionMambaMixer, kRwkvMixer, kGatedMemoryMixer;
// NOLINTEND(readability-redundant-declaration)

namespace {

/// A layer that is an MLP or experts alone.
constexpr MixerKind kNoMixer{.mixer = Mixer::none, .name = "none"};

// In the order of Mixer.
constexpr std::array<const MixerKind*, 15> kMixerKinds{
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
};
static_assert(kMixerKinds.size() >= kNamedMixers && kMixerKinds.size() <= kMostMixers);

}  // namespace

std::span<const MixerKind* const> mixer_kinds() { return kMixerKinds; }

const MixerKind& info(Mixer mixer) {
  const MixerKind& kind = *kMixerKinds[static_cast<std::size_t>(mixer)];
  assert(kind.mixer == mixer);
  return kind;
}

double mixer_columns(const TransformerShape& m) {
  double widest = 0;
  for (const MixerKind* kind : kMixerKinds) {
    if (kind->columns != nullptr) widest = std::max(widest, kind->columns(m));
  }
  return widest;
}

}  // namespace lockstep
