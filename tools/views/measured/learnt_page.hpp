/// What measured steps taught about a stack, as a page.
#pragma once

#include <string>

#include "sim/measured/learnt.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// The page of `lockstep learn --report`: of each kind of job the level of its kernels before and
/// after, how sure the step is, what the steps cannot tell apart, what to measure next, and the
/// steps themselves. `file`: their list. Throws UsageError without a chart library (assets.hpp).
std::string learnt_page(const MeasuredSteps& steps, const Learnt& learnt, const std::string& file,
                        const PresetStore& presets);

}  // namespace lockstep
