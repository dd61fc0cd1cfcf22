/// What an operation of a layer asks of a GPU's engines.
#pragma once

#include "models/layer/operations.hpp"
#include "models/power/gpu_power.hpp"

namespace lockstep {

EngineWork engine_work(const Operation& operation);

}  // namespace lockstep
