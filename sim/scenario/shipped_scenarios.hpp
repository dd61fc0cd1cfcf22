/// Scenarios that ship with the program, found by name: beside the presets where they are
/// installed, `scenarios` of the source tree else.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

struct ShippedScenario {
  std::string name;      ///< "llama3-405b-16k": the file's, without folder and ending
  std::string command;   ///< what takes it: "run", "comm", "plan", "sweep"
  std::string file;      ///< path of the file
  std::string sentence;  ///< the first one of its "about"
};

/// All of them, sorted by name; none where no preset folder has scenarios beside it.
std::vector<ShippedScenario> shipped_scenarios(const PresetStore& presets);

/// The file that a person means: a path, "-" (standard input) and a row ("rows.json#NAME") are
/// themselves; a word without folder and ending that is no file is the name of a shipped scenario.
/// Throws InputError, with the nearest name, where there is none of that name, and for a path to no
/// file that ends in a shipped scenario's name, or nearly so where it has no ending.
std::string scenario_path(const std::string& written, const PresetStore& presets);

}  // namespace lockstep
