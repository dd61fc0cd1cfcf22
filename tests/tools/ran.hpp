/// Runs commands as the program does, for tests of what they print.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tools/lockstep/cli.hpp"

namespace lockstep::test {

struct Ran {
  Exit exit;
  std::string out, err;
};
inline Ran lockstep_with(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .style = {}, .err_is_terminal = false};
  const Exit exit = run_cli(args, console);
  return {exit, out.str(), err.str()};
}

}  // namespace lockstep::test
