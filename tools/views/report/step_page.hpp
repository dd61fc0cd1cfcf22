/// One training step: where the GPU time goes, and what the fabric has to do with it.
#pragma once

#include <functional>
#include <string>

#include "sim/answer/claim_check.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/views/run/run_result.hpp"

namespace lockstep {

class Page;

/// What the page has beside the answer, where it is given.
struct StepPageExtras {
  const PresetStore* presets = nullptr;  ///< the sources of all values
  /// Adds what would help; empty: the page says how to ask for it.
  std::function<void(Page&)> add_advice{};
  const ClaimCheck* claim = nullptr;  ///< what the scenario claims
};

/// The page. Throws UsageError where the program was built without its chart library (assets.hpp).
std::string step_page(const RunResult& result, const StepPageExtras& extras = {});

/// The page's pieces, of the values that the terminal shows.
void add_step_headline(Page& page, const RunResult& result);
void add_step_sections(Page& page, const RunResult& result);

}  // namespace lockstep
