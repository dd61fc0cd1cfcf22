/// Why a command did not answer, as a line for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// Why a command did not answer.
struct Failure {
  Exit status = Exit::internal_error;
  std::string line;   ///< what the program says: a line for each mistake, no newline at its end
  std::string place;  ///< "job.json#/batch", "command line"
  std::optional<InputProblem> problem{};  ///< the parts of a mistake in a file
  std::vector<InputProblem> also{};       ///< others in the same file
  std::optional<UsageParts> usage{};      ///< of one on the command line
};
/// That of the exception that is being handled; it has to be called from a handler.
Failure current_failure();
/// {"schema", "error": {"place", "found", "allowed", "nearest", "message", "also"}}: "schema" is
/// the version of the names, as answers have it; "also" lists further mistakes, each with the first
/// four parts.
nlohmann::ordered_json failure_json(const Failure& failure);

}  // namespace lockstep
