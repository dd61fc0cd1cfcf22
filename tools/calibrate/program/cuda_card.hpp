/// The card that CUDA shows.
#pragma once

#include <memory>

#include "tools/calibrate/card.hpp"

namespace lockstep {

/// Card number `device` of those that CUDA lists, if it is there, idle and large enough. Throws
/// CardUnavailable, or UsageError for a number beyond those.
std::unique_ptr<Card> open_cuda_card(int device);

}  // namespace lockstep
