/// One command of a shell script: its words, and the assignments before them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/shell_cursor.hpp"
#include "sim/launch/shell_variables.hpp"

namespace lockstep {

struct ShellCommand {
  std::vector<std::string> words;
  std::string here;    ///< the lines of its here-document
  std::string target;  ///< the file that its output fills
};

/// Whether a word is "NAME=...", "NAME+=..." or "NAME[KEY]=...".
bool is_assignment(std::string_view word);

/// Takes the tokens of one command; assignments before its first word are made. Of one that does
/// not run (`live`) the tokens are skipped.
ShellCommand take_command(ShellCursor& cursor, ShellVariables& variables, bool live);

}  // namespace lockstep
