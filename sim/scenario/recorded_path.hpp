/// Where recorded data lie that a scenario names.
#pragma once

#include <optional>
#include <string>

namespace lockstep {

/// Beside the scenario, or in the folder that LOCKSTEP_DATA names; nothing: in neither.
std::optional<std::string> recorded_path(const std::string& scenario, const std::string& file);

}  // namespace lockstep
