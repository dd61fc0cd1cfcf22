#include "models/spec/blocks.hpp"

#include <array>
#include <cassert>

namespace lockstep {
namespace {

// In the order of Mixer.
constexpr std::array kMixerKinds{
    MixerKind{Mixer::attention, "attention", add_attention, false},
    MixerKind{Mixer::mamba, "mamba", add_mamba, true},
    MixerKind{Mixer::none, "none", nullptr, false},
    MixerKind{Mixer::delta, "delta", add_delta, true},
};
static_assert(kMixerKinds.size() == kMixers);

}  // namespace

std::span<const MixerKind> mixer_kinds() { return kMixerKinds; }

const MixerKind& info(Mixer mixer) {
  const MixerKind& kind = kMixerKinds[static_cast<std::size_t>(mixer)];
  assert(kind.mixer == mixer);
  return kind;
}

}  // namespace lockstep
