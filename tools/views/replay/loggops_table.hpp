/// What `lockstep replay --loggops` prints.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/trace/loggops/loggops.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// A schedule under LogGOPS.
struct LogGopsStudy {
  LogGopsParameters parameters;
  LogGopsReplay replay;
};

/// For people: the last end, messages, and the ranks that end last.
std::string loggops_table(const LogGopsStudy& study, const TextStyle& style);

/// A header line, then a line for each rank.
CsvText loggops_csv(const LogGopsStudy& study);

/// Every field of loggops_fields().
nlohmann::ordered_json loggops_json(const LogGopsStudy& study);

}  // namespace lockstep
