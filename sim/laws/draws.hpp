/// The choices that random scenarios are made of.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/random.hpp"

namespace lockstep {

/// Of equal chance each, from one stream: what is drawn depends on all that was drawn before.
class Draws {
 public:
  explicit Draws(RandomStream& random) : random_(random) {}

 protected:
  /// Of at least one value; one that stands twice has twice the chance.
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(static_cast<std::uint32_t>(values.size()))];
  }
  /// From 0, below `end`, which is at least 1.
  int below(int end) { return static_cast<int>(random_.below(static_cast<std::uint32_t>(end))); }
  bool once_in(int times) { return below(times) == 0; }

 private:
  RandomStream& random_;
};

}  // namespace lockstep
