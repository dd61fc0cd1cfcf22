/// Random plans of trainings and of services.
#pragma once

#include <cstdint>
#include <string>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The text of a plan of a training, a function of both numbers: machines that are owned or rented,
/// in several sizes, with layouts that are given or searched, limits, failures, prices and what is
/// uncertain.
std::string random_plan(std::uint64_t seed, std::uint32_t number, const PresetStore& presets);

/// The same of a service: loads, objectives, engines, one pool or two, spares, prices.
std::string random_serving_plan(std::uint64_t seed, std::uint32_t number,
                                const PresetStore& presets);

}  // namespace lockstep
