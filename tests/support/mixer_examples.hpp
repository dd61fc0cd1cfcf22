/// Numbers of mixers, by the members that their rows declare: a new one needs no line in the tests
/// over all of them.
#pragma once

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "models/spec/blocks.hpp"

namespace lockstep::test {

/// The object of a mixer in a scenario: members that have to be there, 8 where that is allowed.
inline nlohmann::ordered_json mixer_numbers(const MixerKind& kind) {
  constexpr int kUsual = 8;
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const MixerMember& one : kind.members) {
    if (!one.required || one.number == nullptr) continue;
    out[std::string(one.key)] = std::clamp(kUsual, one.low, one.high);
  }
  return out;
}

/// The same of all mixers that have numbers, by their names, into a "model".
inline void add_mixer_numbers(nlohmann::ordered_json& model) {
  for (const MixerKind* kind : mixer_kinds()) {
    if (kind->known != nullptr) model[std::string(kind->name)] = mixer_numbers(*kind);
  }
}

}  // namespace lockstep::test
