/// The names of the random streams of traffic, so that no two of them are the same.
#pragma once

#include "sim/core/random.hpp"

namespace lockstep {

enum class Draw : std::uint32_t { members = 100, partners, sizes };

/// `which`: the round; `whose`: the group or the sender.
constexpr StreamName draw_name(Draw purpose, std::uint64_t seed, std::uint32_t which = 0,
                               std::uint32_t whose = 0) {
  return {.seed = seed,
          .trajectory = which,
          .component = whose,
          .purpose = static_cast<std::uint32_t>(purpose)};
}

}  // namespace lockstep
