/// The commands of the program. main() only calls run_cli().
#pragma once

#include <vector>

#include "tools/console/console.hpp"
#include "tools/console/failure.hpp"
#include "tools/console/run_cli.hpp"

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

}  // namespace lockstep
