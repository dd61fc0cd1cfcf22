/// The command line as a function: words in, text and exit status out.
#pragma once

#include <string>
#include <vector>

#include "tools/console/console.hpp"
#include "tools/console/failure.hpp"

namespace lockstep {

/// Runs `lockstep ARGS...`. What asks the program questions calls it instead of starting one;
/// tools/lockstep/cli.cpp, where the commands are, defines it.
Exit run_cli(const std::vector<std::string>& args, Console& console);

}  // namespace lockstep
