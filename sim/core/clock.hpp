/// The clock of a training step: whole picoseconds, and the one place where seconds become ticks.
#pragma once

#include <cassert>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "models/base/units.hpp"

namespace lockstep {

/// A time that the clock does not hold. Whoever knows the input makes an InputError of it.
class ClockOverflow : public std::range_error {
 public:
  ClockOverflow() : std::range_error("a step of more than 196 days, which the clock cannot hold") {}
};

/// An instant or a span of a step: picoseconds since its start. 64 bits last 213 days.
struct StepTime {
  std::uint64_t ps = 0;
  friend constexpr auto operator<=>(StepTime, StepTime) = default;
  /// Throws ClockOverflow.
  friend constexpr StepTime operator+(StepTime a, StepTime b) {
    if (a.ps > std::numeric_limits<std::uint64_t>::max() - b.ps) throw ClockOverflow();
    return {a.ps + b.ps};
  }
  friend constexpr StepTime operator-(StepTime a, StepTime b) {
    assert(a.ps >= b.ps);
    return {a.ps - b.ps};
  }
  constexpr StepTime& operator+=(StepTime b) { return *this = *this + b; }
};

/// The longest span that becomes ticks: 196 days.
inline constexpr Seconds kLongestSpan{1.7e7};

/// Rounds to the nearest tick. The offset is one that simple fractions avoid, so that equal shares
/// whose last bit differs land on the same tick. Requires a duration of at least 0; throws
/// ClockOverflow above 196 days.
inline StepTime to_step_time(Seconds duration) {
  assert(!std::isnan(duration.base_units()) && duration >= Seconds{});
  if (duration > kLongestSpan) throw ClockOverflow();
  return {static_cast<std::uint64_t>(duration.base_units() * 1e12 + 0.5137)};
}
constexpr Seconds to_seconds(StepTime t) { return Seconds{static_cast<double>(t.ps) * 1e-12}; }

}  // namespace lockstep
