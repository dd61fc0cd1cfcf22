/// The clock of a training step: whole picoseconds, and the one place where seconds become ticks.
#pragma once

#include <cassert>
#include <cmath>
#include <compare>
#include <cstdint>

#include "models/units.hpp"

namespace lockstep {

/// An instant or a span of a step: picoseconds since its start. 64 bits last 213 days.
struct StepTime {
  std::uint64_t ps = 0;
  friend constexpr auto operator<=>(StepTime, StepTime) = default;
  friend constexpr StepTime operator+(StepTime a, StepTime b) { return {a.ps + b.ps}; }
  friend constexpr StepTime operator-(StepTime a, StepTime b) {
    assert(a.ps >= b.ps);
    return {a.ps - b.ps};
  }
  constexpr StepTime& operator+=(StepTime b) {
    ps += b.ps;
    return *this;
  }
};

/// Rounds to the nearest tick. The offset is one that simple fractions avoid, so that equal shares
/// whose last bit differs land on the same tick. Requires a finite duration of 0 to 200 days.
inline StepTime to_step_time(Seconds duration) {
  assert(std::isfinite(duration.base_units()) && duration >= Seconds{} &&
         duration <= Seconds{1.7e7});
  return {static_cast<std::uint64_t>(duration.base_units() * 1e12 + 0.5137)};
}
constexpr Seconds to_seconds(StepTime t) { return Seconds{static_cast<double>(t.ps) * 1e-12}; }

}  // namespace lockstep
