/// Reads the checkout that the tests were built from, and runs commands in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::test {

/// Text files that git tracks below the folders, or all of them; paths from the root, sorted.
/// Outside of a git checkout: every file below them.
std::vector<std::string> source_files(const std::vector<std::string>& folders = {});

/// Lines of a file of the checkout, without their ends.
std::vector<std::string> source_lines(const std::string& path);

struct CommandResult {
  int status;          ///< exit status; 128 or more: it was killed
  std::string output;  ///< what it wrote to its standard output
};
/// Runs a shell command in the root of the checkout.
CommandResult run_in_source_tree(const std::string& command);

}  // namespace lockstep::test
