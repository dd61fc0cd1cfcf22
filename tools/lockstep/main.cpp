#include <iostream>
#include <unistd.h>

#include "tools/lockstep/cli.hpp"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  lockstep::Console console{.out = std::cout,
                            .err = std::cerr,
                            .style = lockstep::style_of_terminal(::isatty(STDOUT_FILENO) == 1),
                            .err_is_terminal = ::isatty(STDERR_FILENO) == 1};
  const std::vector<std::string> args(argv + 1, argv + argc);
  return static_cast<int>(lockstep::run_cli(args, console));
}
