/// The command line as a function: words in, text and exit status out. main() only calls it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

const Command& run_command();
const Command& new_command();
const Command& sweep_command();
const Command& plan_command();
const Command& tune_command();
const Command& explain_command();
const Command& compare_command();
const Command& explore_command();
const Command& check_command();
const Command& comm_command();
const Command& queue_command();
const Command& validate_command();
const Command& referee_command();
const Command& learn_command();
const Command& fit_command();
const Command& fit_kernels_command();
const Command& import_command();
const Command& export_command();
const Command& list_command();
const Command& show_command();
const Command& completion_command();
const Command& manual_command();
const Command& topology_command();
const Command& replay_command();
const Command& diagnose_command();

/// All of them, in the order of the help text.
std::vector<const Command*> commands();

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
/// {"error": {"place", "found", "allowed", "nearest", "message", "also"}}; "also" is a list of the
/// first four of each further mistake.
nlohmann::ordered_json failure_json(const Failure& failure);

/// Runs `lockstep ARGS...`.
Exit run_cli(const std::vector<std::string>& args, Console& console);

}  // namespace lockstep
