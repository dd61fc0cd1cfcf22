/// The page of a queue: waits, GPU time, the queue over time, which job was where.
#pragma once

#include <string>

#include "sim/answer/queue_answer.hpp"

namespace lockstep {

class Behind;
class ClaimCheck;

/// Draws the jobs' spans where they were kept and are few enough to be told apart.
std::string queue_page(const QueueAnswer& answer, const Behind* behind = nullptr,
                       const ClaimCheck* claim = nullptr);

}  // namespace lockstep
