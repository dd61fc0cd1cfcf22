/// What a replica does with keys and values that slower memory could hold for it: load them back,
/// or compute them again.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// Of a prompt's beginning that a tier holds and the GPUs do not.
enum class CacheReuse : std::uint8_t {
  fastest,  ///< loaded where the prompt is done sooner so (Qin et al. 2024, arXiv:2407.00079)
  load,
  recompute
};
constexpr std::array<std::string_view, 3> kCacheReuseNames{"fastest", "load", "recompute"};

/// Of a sequence that has to leave a full cache (Kwon et al. 2023, arXiv:2309.06180, section 4.5).
enum class CachePreemption : std::uint8_t {
  fastest,  ///< swapped where that takes less than to compute it again
  swap,     ///< to host memory and back, while that has room
  recompute
};
constexpr std::array<std::string_view, 3> kCachePreemptionNames{"fastest", "swap", "recompute"};

}  // namespace lockstep
