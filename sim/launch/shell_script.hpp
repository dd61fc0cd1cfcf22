/// A shell script that starts a training, read without running it: which commands with which words
/// it would come to.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/launch/shell_variables.hpp"

namespace lockstep {

struct ShellScript {
  /// Words of the commands that would run, in their order; variables filled in.
  std::vector<std::vector<std::string>> commands;
  /// Files that here-documents fill, by the name that the script gives them.
  std::map<std::string, std::string> written;
  /// The words of "#SBATCH" lines, of here-documents too.
  std::vector<std::string> scheduler;
};

/// The text of a file that a script sources, by what the script calls it; nothing: it is not there,
/// or was read before.
using SourcedText = std::function<std::optional<std::string>(const std::string& path)>;

/// Follows assignments, arrays, functions, `if` and `case`. A test of what is not known (a file, a
/// variable that is not set) is taken as bash would with an empty variable, and files as being
/// there; of a loop the first turn alone is read. What `sourced` gives runs where `source` stands.
/// Throws InputError for a script that repeats itself without end.
ShellScript read_shell_script(const std::string& file, std::string_view text,
                              ShellVariables& variables, const SourcedText& sourced = {});

}  // namespace lockstep
