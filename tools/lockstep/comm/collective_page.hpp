/// The page of collectives: bandwidth and time over the size, and NCCL's choice at each.
#pragma once

#include <string>

#include "tools/lockstep/comm/comm_collective.hpp"

namespace lockstep {

std::string collective_page(const CollectiveStudy& study);

}  // namespace lockstep
