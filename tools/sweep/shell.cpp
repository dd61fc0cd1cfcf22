#include "tools/sweep/shell.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <sys/wait.h>

namespace lockstep {

ShellAnswer ask_shell(const ShellText& command) {
  // A Ctrl-C is for this program, not for a question that it asks.
  FILE* const pipe = ::popen(("trap '' INT; { " + command.str() + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("a shell could not be started");
  ShellAnswer answer;
  std::array<char, 4096> block{};
  while (const std::size_t size = std::fread(block.data(), 1, block.size(), pipe)) {
    answer.text.append(block.data(), size);
  }
  const int status = ::pclose(pipe);
  answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  while (answer.text.ends_with('\n')) answer.text.pop_back();
  return answer;
}

}  // namespace lockstep
