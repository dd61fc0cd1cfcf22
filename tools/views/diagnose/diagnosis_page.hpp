/// A recorded step beside the predicted one, as a page.
#pragma once

#include <string>

#include "sim/measured/diagnosis.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The page of `lockstep diagnose --report`: recorded beside predicted by part of the step, by
/// operator, rank and collective, what each difference costs, whose links are slow, and what logs
/// say of power and clock. Throws UsageError without a chart library (assets.hpp).
std::string diagnosis_page(const Diagnosis& diagnosis, const RunResult& predicted,
                           const PresetStore& presets);

}  // namespace lockstep
