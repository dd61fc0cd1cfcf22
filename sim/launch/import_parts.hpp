/// A job on its way from launch files to a scenario, and the parts of the scenario that follow from
/// many keys. For sim/launch/import_job.cpp.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/launch/complete_layout.hpp"
#include "sim/launch/import_job.hpp"
#include "sim/launch/job_sketch.hpp"
#include "sim/launch/launch_files.hpp"

namespace lockstep {

/// What is known of the job; later parts stand on what earlier ones have set.
struct ImportedJob {
  const std::vector<std::string>& files;
  const JobImportOptions& options;
  const PresetStore& presets;
  JobImport& out;
  LaunchFiles launch{};
  LaunchKind kind = LaunchKind::megatron;  ///< that decides what the defaults are
  JobSketch job{};
  std::vector<std::string> open{};  ///< variables that nobody knows, of keys that matter
  std::string file{};               ///< all of them, for errors
  std::string config{};             ///< the model's config.json, where it is a file
  CompleteLayout layout{};
  int layers = 0;  ///< of the model; 0: it has none

  void assume(const std::string& path, const std::string& value, const std::string& why,
              const std::string& option) {
    out.assumptions.push_back({path, value, why, option});
  }
};

/// "model": an option's, a config.json among the files, or what the keys say. Null where nothing
/// says it.
nlohmann::ordered_json import_model(ImportedJob& imported);
/// Layers of that; 0: it has none.
int layers_of_model(const ImportedJob& imported, const nlohmann::ordered_json& model);
/// Throws InputError for a job without a model, with the option and the name that may be meant.
void require_model(const ImportedJob& imported, const nlohmann::ordered_json& model);
/// "parallelism". Throws InputError for stages that the model's layers do not fill.
nlohmann::ordered_json import_parallelism(const ImportedJob& imported);
/// "recompute"; what is taken otherwise than it is written becomes a remark.
nlohmann::ordered_json import_recompute(ImportedJob& imported);
/// "stack": a preset, with what the files switch otherwise than it does.
nlohmann::ordered_json import_stack(const ImportedJob& imported);

}  // namespace lockstep
