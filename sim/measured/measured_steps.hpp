/// The measured steps that `lockstep learn` is given, whatever they are written as.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

struct MeasuredStep {
  std::string name;  ///< of the row, or the file of the scenario
  std::string job;   ///< what was run: steps of one job share it
  Scenario scenario;
  double measured_s = 0;
};

struct MeasuredSteps {
  std::vector<MeasuredStep> steps;
  std::string stack;       ///< what all of them say of their software, as a preset has it: JSON
  std::string stack_name;  ///< in words
  std::vector<std::string> left_out;  ///< rows that cannot be predicted, and why
};

/// Reads a list of {"scenario": FILE or object, "step": "12.3 s"}, where a scenario with "expect"
/// needs no step, or a file of rows (tests/reference/training.json). Throws InputError, also where
/// steps are of different software, and where there is none.
MeasuredSteps read_measured_steps(const std::string& file, std::string_view text,
                                  const PresetStore& presets);

}  // namespace lockstep
