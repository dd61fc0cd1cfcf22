/// Random clusters that pods fill.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// The text of a scenario that `lockstep queue fill` takes, a function of both numbers: nodes and
/// pods of several kinds, shares of GPUs, pods of some models alone.
std::string random_filling(std::uint64_t seed, std::uint32_t number);

}  // namespace lockstep
