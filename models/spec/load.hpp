/// How long a kernel's surroundings last: decides the clock that a power-limited GPU runs at.
#pragma once

#include <cstdint>

namespace lockstep {

/// A burst is a benchmark of a few milliseconds after idling; a sustained load is a training step,
/// in which the card sits at its power limit and lowers its clock (GemmConstants::sustained).
enum class Load : std::uint8_t { burst, sustained };

}  // namespace lockstep
