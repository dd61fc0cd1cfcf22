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

/// What may be typed, as a word of `complete -a`; empty where the shell knows.
std::string fish_words(const CompletedValues& values) {
  switch (values.kind) {
    case Kind::nothing:
    case Kind::files:
      return {};
    case Kind::words:
      return fish_quoted(values.list ? fmt::format("(__lockstep_list echo {})", values.words)
                                     : values.words);
    case Kind::folders:
      return "'(__fish_complete_directories)'";
    case Kind::names:
    case Kind::names_or_files:
      return fmt::format("'({}__lockstep_names {})'", values.list ? "__lockstep_list " : "",
                         values.words);
    case Kind::keys:
      return fmt::format("'(__lockstep_keys \"{}\")'", values.words);
  }
  return {};
}

/// What follows an option, as words of `complete`.
std::string fish_values(const CompletedValues& values) {
  const bool files = values.kind == Kind::files || values.kind == Kind::names_or_files;
  const std::string words = fish_words(values);
  return fmt::format("{}{}{}", files ? " -r -F" : " -x", words.empty() ? "" : " -a ", words);
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
  lockstep list $argv[1] --format csv 2>/dev/null |
    awk -F, -v of="lockstep $argv[2]" 'NAMES_OF'
end
function __lockstep_typed
  string replace -r -- '^--[a-z-]+=' '' (commandline -ct)
end
# The words of a function, or of `echo`, behind what is typed up to the last comma.
function __lockstep_list
  set -l before (__lockstep_typed | string match -r '.*,')
  for word in ($argv | string split -n ' '); echo "$before$word"; end
end
function __lockstep_keys
  set -l typed (__lockstep_typed)
  lockstep list keys "$typed" --format csv 2>/dev/null |
    awk -F, -v typed="$typed" -v last="$argv[1]" 'NEXT_KEY_PARTS'
end
# The words of the command line that are no options, from the command on.
function __lockstep_words
  set -l words (commandline -opc)[2..]
  set -l taken no
  for word in $words
    if test $taken = yes; set taken no; continue; end
    if not string match -q -- '-*' $word; echo $word; continue; end
    contains -- "$words[1]:$word" $__lockstep_takes; and set taken yes
  end
end
# Whether the cursor is in the word at a place of a command.
function __lockstep_at
  set -l words (__lockstep_words)
  test "$words[1]" = $argv[1]; and test (count $words) -eq $argv[2]
end
function __lockstep_kind
  __lockstep_names (__lockstep_words)[2]
end
complete -c lockstep -n __fish_use_subcommand -f
complete -c lockstep -n __fish_use_subcommand -l version -d 'Print the version'
)sh";

}  // namespace

std::string fish_completion(std::span<const Command* const> commands) {
  std::string out = with_awk_programs(kFishHead), taking;
  for (const Command* command : commands) {
    const CommandSpec& spec = *command->spec;
    out += fmt::format("complete -c lockstep -n __fish_use_subcommand -f -a {} -d {}\n", spec.name,
                       fish_quoted(fish_sentence(spec.summary)));
    const std::vector<CompletedValues> places = places_of(spec);
    for (std::size_t place = 0; place < places.size(); ++place) {
      const bool of_kind = spec.name == "show" && place == 1;
      const std::string words = of_kind ? "'(__lockstep_kind)'" : fish_words(places[place]);
      if (words.empty()) continue;
      // Files are offered beside what has no -f.
      out += fmt::format("complete -c lockstep -n '__lockstep_at {} {}'{} -a {}\n", spec.name,
                         place + 1, places[place].kind == Kind::names_or_files ? "" : " -f", words);
    }
    if (places.empty()) {
      out +=
          fmt::format("complete -c lockstep -n '__fish_seen_subcommand_from {}' -f\n", spec.name);
    }
    for (const OptionSpec& option : spec.options) {
      out += fish_option(spec.name, option);
      if (option.argument.empty()) continue;
      taking += fmt::format(" {}:--{}", spec.name, option.name);
      if (option.letter != 0) taking += fmt::format(" {}:-{}", spec.name, option.letter);
    }
    out += fmt::format(
        "complete -c lockstep -n '__fish_seen_subcommand_from {}' -s h -l help -d 'Print this "
        "text'\n",
        spec.name);
  }
  return out + fmt::format("set -g __lockstep_takes{}\n", taking);
}

}  // namespace lockstep
