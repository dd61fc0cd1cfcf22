#include "tools/console/completion_scripts.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

using Kind = CompletedValues::Kind;

/// Options whose argument is the name of something that `lockstep list` lists.
struct NamedOption {
  std::string_view option, kind;
};
constexpr std::array kNamedOptions{
    NamedOption{"node", "nodes"},       NamedOption{"fabric", "fabrics"},
    NamedOption{"gpu", "gpus"},         NamedOption{"recorded-on", "gpus"},
    NamedOption{"profile", "profiles"}, NamedOption{"schedule", "schedules"},
    NamedOption{"op", "collectives"},
};
constexpr OptionSpec kHelpOption{"help", 'h', "", false, "Print this text.", ""};

/// "table|json|csv" -> "table json csv"; what ends in "..." is not a word.
std::string alternatives(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('|'), text.size());
    const std::string_view word = text.substr(0, end);
    if (!word.ends_with("...")) out += (out.empty() ? "" : " ") + std::string(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool is_choice(std::string_view argument) {
  return argument.find('|') != std::string_view::npos &&
         std::ranges::none_of(argument, [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::vector<OptionSpec> options_of(const CommandSpec& command) {
  std::vector<OptionSpec> options(command.options.begin(), command.options.end());
  options.push_back(kHelpOption);
  return options;
}

// --- bash ---------------------------------------------------------------------------------------

/// "run:--trace|run:--svg", and for options with a letter both.
std::string pattern(const CommandSpec& command, const OptionSpec& option) {
  std::string out = fmt::format("{}:--{}", command.name, option.name);
  if (option.letter != 0) out += fmt::format("|{}:-{}", command.name, option.letter);
  return out;
}

std::string bash_action(const CompletedValues& values) {
  const auto names = [&] { return fmt::format("$(_lockstep_names {})", values.words); };
  switch (values.kind) {
    case Kind::nothing:
      return "return";
    case Kind::words:
      return fmt::format("_lockstep_words \"{}\"", values.words);
    case Kind::files:
      return "_lockstep_files";
    case Kind::folders:
      return "_lockstep_files -d";
    case Kind::names:
      return fmt::format("_lockstep_words \"{}\"", names());
    case Kind::names_or_files:
      return fmt::format("_lockstep_files; _lockstep_words \"{}\"", names());
    case Kind::keys:
      return fmt::format("_lockstep_keys \"{}\"", values.words);
  }
  return "return";
}

constexpr std::string_view kBashHead =
    R"sh(# Completion of lockstep for bash. Made by `lockstep completion bash`.

_lockstep_words() {
  COMPREPLY+=($(compgen -W "$1" -- "$cur"))
}
_lockstep_files() {
  compopt -o filenames 2>/dev/null
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "${1:--f}" -- "$cur")
}
_lockstep_names() {
  "${COMP_WORDS[0]}" list "$1" --format csv 2>/dev/null | tail -n +2 | cut -d, -f1
}
_lockstep_keys() {
  compopt -o nospace 2>/dev/null
  _lockstep_words "$("${COMP_WORDS[0]}" list keys "$cur" --format csv 2>/dev/null |
    awk -F, -v typed="$cur" -v last="$1" 'NEXT_KEY_PARTS')"
}

_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]}
  COMPREPLY=()
)sh";

constexpr std::string_view kNextKeyParts =
    R"awk(NR > 1 {
      parts = split(typed, given, "."); if (parts == 0) parts = 1
      all = split($1, key, "."); word = ""
      for (i = 1; i <= parts && i <= all; i++) {
        part = key[i]
        if (part == "*") part = given[i] ~ /^[0-9]+$/ ? given[i] : "0"
        word = word (i > 1 ? "." : "") part
      }
      word = word (all > parts ? "." : last)
      if (!(word in seen)) print word
      seen[word] = 1
    })awk";

}  // namespace

std::string with_next_key_parts(std::string_view script) {
  constexpr std::string_view kPlace = "NEXT_KEY_PARTS";
  const std::size_t at = script.find(kPlace);
  if (at == script.npos) return std::string(script);
  return fmt::format("{}{}{}", script.substr(0, at), kNextKeyParts,
                     script.substr(at + kPlace.size()));
}

CompletedValues values_of(const OptionSpec& option) {
  const std::string_view argument = option.argument;
  if (is_choice(argument)) return {Kind::words, alternatives(argument)};
  for (const NamedOption& named : kNamedOptions) {
    if (named.option != option.name || argument.empty()) continue;
    const bool file_too = argument.starts_with("FILE");
    return {file_too ? Kind::names_or_files : Kind::names, std::string(named.kind)};
  }
  if (argument.starts_with("PATH")) {
    return {Kind::keys, argument.find('=') == argument.npos ? "" : "="};
  }
  if (option.path == PathUse::none) return {};
  return {argument == "DIR" ? Kind::folders : Kind::files, {}};
}

CompletedValues first_word_of(const CommandSpec& command) {
  if (command.positionals == 0) return {};
  std::string_view usage = command.usage;
  usage.remove_prefix(std::min(usage.find(' ') + 1, usage.size()));
  const std::string_view word = usage.substr(0, usage.find(' '));
  if (is_choice(word)) return {Kind::words, alternatives(word)};
  return {Kind::files, {}};
}

std::string bash_completion(std::span<const Command* const> commands) {
  std::string names, options, values, places;
  for (const Command* command : commands) {
    const CommandSpec& spec = *command->spec;
    names += fmt::format("{} ", spec.name);
    std::string all;
    for (const OptionSpec& option : options_of(spec)) {
      all += fmt::format("{}--{}", all.empty() ? "" : " ", option.name);
      if (option.argument.empty()) continue;
      values += fmt::format("    {}) {}; return ;;\n", pattern(spec, option),
                            bash_action(values_of(option)));
    }
    options += fmt::format("      {}) _lockstep_words \"{}\" ;;\n", spec.name, all);
    const CompletedValues first = first_word_of(spec);
    if (first.kind == Kind::words) {
      places += fmt::format("    {}:2) {}; return ;;\n", spec.name, bash_action(first));
    } else if (first.kind == Kind::nothing) {
      places += fmt::format("    {}:*) return ;;\n", spec.name);
    }
  }
  return with_next_key_parts(kBashHead) +
         fmt::format(
             "  if ((COMP_CWORD == 1)); then\n"
             "    _lockstep_words \"{}--help --version\"\n    return\n  fi\n",
             names) +
         "  case \"$command:$previous\" in\n" + values +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n    case \"$command\" in\n" +
         options +
         "    esac\n    return\n  fi\n"
         "  case \"$command:$COMP_CWORD\" in\n" +
         places +
         "    show:3) _lockstep_words \"$(_lockstep_names \"$previous\")\"; return ;;\n"
         "  esac\n  _lockstep_files\n}\n\ncomplete -F _lockstep lockstep\n";
}

// --- zsh ----------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kZshHead =
    R"sh(#compdef lockstep
# Completion of lockstep for zsh. Made by `lockstep completion zsh`.

_lockstep_names() {
  local -a names
  names=(${(f)"$(lockstep list $1 --format csv 2>/dev/null | tail -n +2 | cut -d, -f1)"})
  compadd -a names
}
_lockstep_keys() {
  local -a keys
  keys=(${(f)"$(lockstep list keys "$PREFIX" --format csv 2>/dev/null |
    awk -F, -v typed="$PREFIX" -v last="$1" 'NEXT_KEY_PARTS')"})
  compadd -S '' -a keys
}

)sh";

/// Up to the end of the first sentence, as a single-quoted word of _arguments takes it.
std::string zsh_words(std::string_view text) {
  const std::size_t end = text.find(". ");
  std::string out;
  for (const char c : text.substr(0, end)) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  while (out.ends_with('.')) out.pop_back();
  return out;
}

std::string zsh_action(const CompletedValues& values) {
  switch (values.kind) {
    case Kind::nothing:
      return " ";
    case Kind::words:
      return fmt::format("({})", values.words);
    case Kind::files:
      return "_files";
    case Kind::folders:
      return "_files -/";
    case Kind::names:
      return fmt::format("{{_lockstep_names {}}}", values.words);
    case Kind::names_or_files:
      return fmt::format("{{_lockstep_names {}; _files}}", values.words);
    case Kind::keys:
      return fmt::format("{{_lockstep_keys \"{}\"}}", values.words);
  }
  return " ";
}

std::string zsh_option(const OptionSpec& option) {
  const std::string text = fmt::format("[{}]", zsh_words(option.text));
  const std::string value =
      option.argument.empty()
          ? std::string()
          : fmt::format(":{}:{}", zsh_words(option.argument), zsh_action(values_of(option)));
  if (option.repeatable) return fmt::format("'*--{}{}{}'", option.name, text, value);
  if (option.letter == 0) return fmt::format("'--{}{}{}'", option.name, text, value);
  const std::string both = fmt::format("-{} --{}", option.letter, option.name);
  return fmt::format("'({})-{}{}{}' '({})--{}{}{}'", both, option.letter, text, value, both,
                     option.name, text, value);
}

}  // namespace

std::string zsh_completion(std::span<const Command* const> commands) {
  std::string names, cases;
  for (const Command* command : commands) {
    const CommandSpec& spec = *command->spec;
    names += fmt::format("    '{}:{}'\n", spec.name, zsh_words(spec.summary));
    cases += fmt::format("    {})\n      _arguments \\\n", spec.name);
    for (const OptionSpec& option : options_of(spec)) {
      cases += fmt::format("        {} \\\n", zsh_option(option));
    }
    const CompletedValues first = first_word_of(spec);
    if (first.kind == Kind::words) {
      cases += fmt::format("        '1:what:{}' \\\n", zsh_action(first));
    }
    if (spec.name == "show") {
      cases += "        '2:name:{_lockstep_names $words[2]}' \\\n";
    }
    cases += first.kind == Kind::nothing ? "        && return\n" : "        '*:file:_files'\n";
    cases += "      ;;\n";
  }
  return with_next_key_parts(kZshHead) + "_lockstep() {\n  local -a commands\n  commands=(\n" +
         names +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n" +
         cases + "  esac\n}\n\n_lockstep \"$@\"\n";
}

}  // namespace lockstep
