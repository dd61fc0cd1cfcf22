/// A scenario out of the files that a training is launched with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/key_table.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// What the command line adds to the files; it goes before what they say.
struct JobImportOptions {
  std::string node{};  ///< a node preset
  std::optional<int> nodes{};
  std::string model{};          ///< a model preset, a Hugging Face config.json, or the text of one
  std::optional<int> tokens{};  ///< of a sequence
  std::vector<std::string> set{};
  std::string scenario_file{};  ///< where it is written; empty: nowhere, paths start from here
};

/// What no file says, and what was taken in its place.
struct JobAssumption {
  std::string path;  ///< of the scenario: "cluster.nodes"
  std::string value;
  std::string why;
  std::string option;  ///< that says it instead: "--nodes N"
};

struct JobImport {
  std::vector<std::string> sources;  ///< "train.sh: Megatron-LM arguments"
  std::vector<KeyFinding> keys;
  std::vector<JobAssumption> assumptions;
  std::vector<std::string> remarks;
  std::string scenario;  ///< JSON; empty where an error ended the import
};

/// Reads the files and completes them to a scenario that runs. Throws InputError for what is no
/// launch file, for widths that do not fit together, and where what is missing cannot be assumed
/// (the model): then `partial`, if given, has all that is known until then.
JobImport import_job(const std::vector<std::string>& files, const JobImportOptions& options,
                     const PresetStore& presets, JobImport* partial = nullptr);

}  // namespace lockstep
