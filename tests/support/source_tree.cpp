#include "tests/support/source_tree.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>

namespace lockstep::test {
namespace {

std::vector<std::string> split_lines(std::istream& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> walked_files() {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  const fs::path root = LOCKSTEP_SOURCE_DIR;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    const std::string path = fs::relative(it->path(), root).string();
    if (path.starts_with(".") || path.starts_with("build")) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file()) {
      files.push_back(path);
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

CommandResult run_in_source_tree(const std::string& command) {
  const std::string line = "cd '" LOCKSTEP_SOURCE_DIR "' && " + command;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start: " + command);
  CommandResult result{};
  std::array<char, 4096> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), n);
  }
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::vector<std::string> source_files(const std::vector<std::string>& folders) {
  const CommandResult tracked = run_in_source_tree("git ls-files 2>/dev/null");
  std::istringstream listing(tracked.output);
  std::vector<std::string> files = tracked.status == 0 ? split_lines(listing) : walked_files();
  std::erase_if(files, [&](const std::string& path) {
    return !folders.empty() && std::ranges::none_of(folders, [&](const std::string& folder) {
      return path.starts_with(folder + "/");
    });
  });
  return files;
}

std::vector<std::string> source_lines(const std::string& path) {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/" + path);
  return split_lines(file);
}

}  // namespace lockstep::test
