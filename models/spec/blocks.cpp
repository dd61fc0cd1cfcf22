#include "models/spec/blocks.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <string_view>

namespace lockstep {

/// A layer that is an MLP or experts alone.
extern const MixerKind kNoMixer;
constinit const MixerKind kNoMixer{.mixer = Mixer::none, .name = "none"};

// In the order of Mixer; all but one in files of their own, block_*.cpp.
// clang-format off: one a line, so that mixers come without moving others
#define LOCKSTEP_MIXERS(row) \
  row(kAttentionMixer) \
  row(kMambaMixer) \
  row(kNoMixer) \
  row(kDeltaMixer) \
  row(kShortConvolutionMixer) \
  row(kJointAttentionMixer) \
  row(kClosingAttentionMixer) \
  row(kModulatedAttentionMixer) \
  row(kConvolutionMixer) \
  row(kResidualMixer) \
  row(kLinearAttentionMixer) \
  row(kGatedRecurrenceMixer) \
  row(kAttentionMambaMixer) \
  row(kRwkvMixer) \
  row(kGatedMemoryMixer) \
  row(kWideAttentionMixer) \
  row(kAdaptedMambaMixer) \
  row(kRetentionMixer) \
  /* a new one is the line above this one, and its number is its place */
// clang-format on
#define LOCKSTEP_DECLARED(kind) extern const MixerKind kind;
#define LOCKSTEP_ADDRESS(kind) &(kind),

// A unity source may hold their files above this one.
// NOLINTNEXTLINE(readability-redundant-declaration)
LOCKSTEP_MIXERS(LOCKSTEP_DECLARED)

namespace {

constexpr std::array kMixerKinds{LOCKSTEP_MIXERS(LOCKSTEP_ADDRESS)};
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

std::vector<std::string_view> each_of(std::string_view names) {
  std::vector<std::string_view> out;
  while (!names.empty()) {
    std::string_view word = names.substr(0, names.find(' '));
    names.remove_prefix(std::min(names.size(), word.size() + 1));
    if (word.ends_with('*')) word.remove_suffix(1);
    out.push_back(word);
  }
  return out;
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
