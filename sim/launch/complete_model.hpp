/// The model of a sketch, as a scenario has it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/launch/import_job.hpp"
#include "sim/launch/job_sketch.hpp"
#include "sim/launch/launch_files.hpp"

namespace lockstep {

/// Whether the sketch has enough numbers for a shape.
bool has_shape(const ModelSketch& model);

/// "model" of the scenario: a preset where the numbers are one's, else a shape; null where neither
/// a name nor numbers say it. Throws InputError for numbers that make no model.
nlohmann::ordered_json complete_model(const ModelSketch& model, LaunchKind kind, int tensor,
                                      const std::string& file, const PresetStore& presets,
                                      std::vector<JobAssumption>& assumptions);

}  // namespace lockstep
