/// Random scenarios of traffic and of collectives.
#pragma once

#include <cstdint>
#include <string>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The text of a scenario that `lockstep comm` takes, a function of both numbers: patterns, groups,
/// grains, repetitions and sizes that are drawn, or NCCL's operations over several sizes, on small
/// clusters of all kinds of fabrics and routes.
std::string random_comm(std::uint64_t seed, std::uint32_t number, const PresetStore& presets);

}  // namespace lockstep
