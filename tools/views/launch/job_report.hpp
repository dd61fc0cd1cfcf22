/// What `lockstep import job` prints.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/launch/import_job.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// What was made of each key, as JSON.
nlohmann::ordered_json job_report_json(const JobImport& imported);

/// The same for people.
std::string job_report(const JobImport& imported, const TextStyle& style);

}  // namespace lockstep
