/// Where preset files lie, and what is in one, before it becomes a spec.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Where the presets that ship may lie.
struct ShippedPresets {
  std::string_view beside_program;  ///< relative to the folder of an executable
  std::string_view source_tree;     ///< "dir:dir"
  std::string_view installed;       ///< where they are installed unless somebody says otherwise
};

/// The folders to search, in order: `own`, those of the environment variable LOCKSTEP_PRESETS, then
/// those that ship. These are the first that exist of: beside the shared object that holds this
/// function, beside the executable, the CMake package with which the program was linked, the source
/// tree, the usual place of an installation. Throws InputError where one of `own` is no folder.
std::vector<std::string> preset_folders(std::vector<std::string> own, const ShippedPresets& ships);

/// The error of a kind without a single preset: with the folders that were searched, and which of
/// them do not exist.
InputError no_presets(std::string_view kind, const std::vector<std::string>& folders);

/// FOLDER/KIND/NAME.json in the first folder that has it; empty if none has, or the name could lead
/// out of the folder.
std::string find_preset_file(const std::vector<std::string>& folders, std::string_view kind,
                             std::string_view name);

/// The preset that is meant by a name: its own, or the one that it is another spelling of
/// ("Megatron-Core", "omni-path") or another word for ("tcp", of transports); empty if there is
/// none. The same for scenarios, rows of measured runs and options.
std::string canonical_preset(const std::vector<std::string>& folders, std::string_view kind,
                             std::string_view name);

/// The other words that canonical_preset() takes for a preset: "tcp" and "sockets" for the
/// transport "ethernet". Other spellings of its own name are not among them.
std::vector<std::string> other_preset_names(std::string_view kind, std::string_view name);

/// Names of a kind in all folders, sorted, each once.
std::vector<std::string> preset_names(const std::vector<std::string>& folders,
                                      std::string_view kind);

/// A name as files of presets have it: "Megatron-LM 2021" is megatron_lm_2021.
std::string as_preset_name(std::string_view written);

/// The values of a parsed preset with the sources that cover them.
std::vector<PresetRow> preset_rows(const JsonCursor& root);

/// The release among `known` that stands for `wanted`: itself, else the nearest earlier one, else
/// the earliest. Compares the numbers in the names one by one, as many as `wanted` has: "24.05" <
/// "24.11" < "25.02", and "25.04.02" stands for "25.04". `known` is not empty.
std::string nearest_release(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace lockstep
