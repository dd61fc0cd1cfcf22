/// How two scenarios differ, as a page.
#pragma once

#include <string>

#include "sim/search/compare/comparison.hpp"

namespace lockstep {

/// The page of `lockstep compare --report`: a waterfall from the one answer to the other,
/// difference by difference, and a table. Throws UsageError without a chart library (assets.hpp).
/// Sources are of these presets; null: none are listed.
std::string compare_page(const Comparison& comparison, const PresetStore* presets = nullptr);

}  // namespace lockstep
