/// The presets that Lockstep comes with, read once.
#pragma once

#include "sim/scenario/preset_store.hpp"

namespace lockstep::test {

inline const PresetStore& presets() {
  static const PresetStore store;
  return store;
}

}  // namespace lockstep::test
