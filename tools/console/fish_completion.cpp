#include <fmt/format.h>
#include <string_view>
#include <vector>

#include "tools/console/completion_scripts.hpp"

namespace lockstep {
namespace {

using Kind = CompletedValues::Kind;

/// A text in single quotes of fish.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// Up to the end of the first sentence.
std::string_view fish_sentence(std::string_view text) {
  text = text.substr(0, text.find(". "));
  while (text.ends_with('.')) text.remove_suffix(1);
  return text;
}

/// What follows an option, as words of `complete`.
std::string fish_values(const CompletedValues& values) {
  switch (values.kind) {
    case Kind::nothing:
      return " -x";
    case Kind::words:
      return fmt::format(" -x -a {}", fish_quoted(values.words));
    case Kind::files:
      return " -r -F";
    case Kind::folders:
      return " -x -a '(__fish_complete_directories)'";
    case Kind::names:
      return fmt::format(" -x -a '(__lockstep_names {})'", values.words);
    case Kind::names_or_files:
      return fmt::format(" -r -F -a '(__lockstep_names {})'", values.words);
    case Kind::keys:
      return fmt::format(" -x -a '(__lockstep_keys \"{}\")'", values.words);
  }
  return "";
}

std::string fish_option(std::string_view command, const OptionSpec& option) {
  std::string out =
      fmt::format("complete -c lockstep -n '__fish_seen_subcommand_from {}'", command);
  if (option.letter != 0) out += fmt::format(" -s {}", option.letter);
  out += fmt::format(" -l {}", option.name);
  if (!option.argument.empty()) out += fish_values(values_of(option));
  return out + fmt::format(" -d {}\n", fish_quoted(fish_sentence(option.text)));
}

constexpr std::string_view kFishHead =
    R"sh(# Completion of lockstep for fish. Made by `lockstep completion fish`.
function __lockstep_names
  lockstep list $argv[1] --format csv 2>/dev/null | tail -n +2 | cut -d, -f1
end
function __lockstep_keys
  set -l typed (string replace -r -- '^--[a-z-]+=' '' (commandline -ct))
  lockstep list keys "$typed" --format csv 2>/dev/null |
    awk -F, -v typed="$typed" -v last="$argv[1]" 'NEXT_KEY_PARTS'
end
function __lockstep_kind
  set -l words (commandline -opc)
  test (count $words) -eq 3; and __lockstep_names $words[3]
end
complete -c lockstep -n __fish_use_subcommand -f
complete -c lockstep -n __fish_use_subcommand -l version -d 'Print the version'
)sh";

}  // namespace

std::string fish_completion(std::span<const Command* const> commands) {
  std::string out = with_next_key_parts(kFishHead);
  for (const Command* command : commands) {
    const CommandSpec& spec = *command->spec;
    out += fmt::format("complete -c lockstep -n __fish_use_subcommand -f -a {} -d {}\n", spec.name,
                       fish_quoted(fish_sentence(spec.summary)));
    const CompletedValues first = first_word_of(spec);
    if (first.kind == Kind::words) {
      out += fmt::format(
          "complete -c lockstep -n '__fish_seen_subcommand_from {}; and test (count (commandline "
          "-opc)) -eq 2' -f -a {}\n",
          spec.name, fish_quoted(first.words));
    }
    for (const OptionSpec& option : spec.options) out += fish_option(spec.name, option);
    out += fmt::format(
        "complete -c lockstep -n '__fish_seen_subcommand_from {}' -s h -l help -d 'Print this "
        "text'\n",
        spec.name);
  }
  return out +
         "complete -c lockstep -n '__fish_seen_subcommand_from show' -f -a '(__lockstep_kind)'\n";
}

}  // namespace lockstep
