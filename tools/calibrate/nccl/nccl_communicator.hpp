/// The communicator as NCCL shows it.
#pragma once

#include <memory>

#include "tools/calibrate/communicator.hpp"

namespace lockstep {

/// Checks this process' cards, meets the other ranks and opens the communicator. Throws
/// CardUnavailable, on every rank where one of them cannot take part, and within minutes where one
/// never comes. For a rank that hangs inside NCCL later there is start.give_up().
std::unique_ptr<Communicator> open_nccl_communicator(const CommunicatorStart& start);

}  // namespace lockstep
