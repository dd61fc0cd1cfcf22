/// The replay of a recorded trace as a page.
#pragma once

#include <string>

#include "tools/lockstep/replay/replay_output.hpp"

namespace lockstep {

/// The page of `lockstep replay --report`: against the recording, where each rank's time went, the
/// collectives that took longest. Throws UsageError without a chart library (assets.hpp).
std::string replay_page(const ReplayStudy& study);

}  // namespace lockstep
