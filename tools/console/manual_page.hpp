/// Manual pages for man(1), made from the tables of the commands: what --help says, as roff.
#pragma once

#include <span>
#include <string>

#include "tools/console/console.hpp"

namespace lockstep {

/// lockstep.1: what the program is for, and its commands.
std::string program_manual(std::span<const Command* const> commands);
/// lockstep-COMMAND.1.
std::string command_manual(const CommandSpec& command);

}  // namespace lockstep
