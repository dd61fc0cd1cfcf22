#include <array>
#include <fmt/format.h>
#include <ostream>

#include "models/base/input_error.hpp"
#include "tools/console/completion_scripts.hpp"
#include "tools/lockstep/cli.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 3> kCompletionExamples{
    "lockstep completion bash > ~/.local/share/bash-completion/completions/lockstep",
    "lockstep completion zsh > ~/.zfunc/_lockstep",
    "lockstep completion fish > ~/.config/fish/completions/lockstep.fish",
};

constexpr CommandSpec kCompletionSpec{
    .name = "completion",
    .usage = "completion bash|zsh|fish",
    .summary = "Print a script that completes commands, options and names in a shell.",
    .about =
        "For bash, source it or put it where bash-completion looks; for zsh, put it into a folder\n"
        "of $fpath as _lockstep; for fish, where fish looks. An installed program brings all "
        "three.",
    .positionals = 1,
    .options = {},
    .examples = kCompletionExamples,
};

Exit run_completion(const ParsedOptions& options, Console& console) {
  const std::string shell = options.positionals.empty() ? "" : options.positionals.front();
  const std::vector<const Command*> all = commands();
  if (shell == "bash") {
    console.out << bash_completion(all);
  } else if (shell == "zsh") {
    console.out << zsh_completion(all);
  } else if (shell == "fish") {
    console.out << fish_completion(all);
  } else {
    throw UsageError(fmt::format("lockstep completion: found {}; allowed: bash, zsh, fish",
                                 shell.empty() ? std::string("no shell") : in_quotes(shell)));
  }
  return Exit::ok;
}

constexpr Command kCompletionCommand{&kCompletionSpec, run_completion};

}  // namespace

const Command& completion_command() { return kCompletionCommand; }

}  // namespace lockstep
