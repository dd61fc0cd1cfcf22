/// Runs a command of the system and keeps what it says.
#pragma once

#include <string>

#include "tools/console/written.hpp"

namespace lockstep {

struct ShellAnswer {
  int status = 0;    ///< of the command; 127: there is no such command
  std::string text;  ///< standard output and error together, without the last newline
};

/// Runs `command` with /bin/sh.
ShellAnswer ask_shell(const ShellText& command);

}  // namespace lockstep
