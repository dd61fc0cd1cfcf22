#include "tools/console/completion_scripts.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using Kind = CompletedValues::Kind;

/// Options whose argument is the name of something that `lockstep list` lists.
struct NamedOption {
  std::string_view option, kind;
};
constexpr std::array kNamedOptions{
    NamedOption{"model", "models"},
    NamedOption{"node", "nodes"},
    NamedOption{"cluster", "clusters"},
    NamedOption{"fabric", "fabrics"},
    NamedOption{"stack", "stacks"},
    NamedOption{"like", "stacks"},
    NamedOption{"gpu", "gpus"},
    NamedOption{"recorded-on", "gpus"},
    NamedOption{"profile", "profiles"},
    NamedOption{"measured", "profiles"},
    NamedOption{"schedule", "schedules"},
    NamedOption{"op", "collectives"},
    NamedOption{"algorithm", "algorithms"},
    NamedOption{"transport", "transports"},
    NamedOption{"metric", "fields"},
    NamedOption{"objective", "fields"},
};
/// Commands whose scenarios are of a kind of their own: `lockstep list scenarios` says of each
/// which command takes it.
constexpr std::array<std::string_view, 3> kOfTheirOwn{"comm", "plan", "sweep"};
constexpr std::string_view kList = ",...";
bool is_list(std::string_view argument) { return argument.ends_with(kList) || argument == "NAMES"; }

constexpr OptionSpec kHelpOption{"help", 'h', "", false, "Print this text.", ""};

/// "table|json|csv" -> "table json csv"; what is "..." is not a word, and "none|full,..." is a list
/// of such.
std::string alternatives(std::string_view text) {
  std::string out;
  if (is_list(text)) text.remove_suffix(kList.size());
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
  const std::string_view words = values.list ? "_lockstep_list" : "_lockstep_words";
  const auto names = [&] { return fmt::format("$(_lockstep_names {})", values.words); };
  switch (values.kind) {
    case Kind::nothing:
      return "return";
    case Kind::words:
      return fmt::format("{} \"{}\"", words, values.words);
    case Kind::files:
      return "_lockstep_files";
    case Kind::folders:
      return "_lockstep_files -d";
    case Kind::names:
      return fmt::format("{} \"{}\"", words, names());
    case Kind::names_or_files:
      return fmt::format("_lockstep_files; {} \"{}\"", words, names());
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
_lockstep_list() {
  local before=
  [[ $cur != *,* ]] || before=${cur%,*},
  COMPREPLY+=($(compgen -P "$before" -W "$1" -- "${cur##*,}"))
}
_lockstep_files() {
  compopt -o filenames 2>/dev/null
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "${1:--f}" -- "$cur")
}
_lockstep_names() {
  "${COMP_WORDS[0]}" list "$1" --format csv 2>/dev/null |
    awk -F, -v of="lockstep $2" 'NAMES_OF'
}
_lockstep_keys() {
  compopt -o nospace 2>/dev/null
  _lockstep_words "$("${COMP_WORDS[0]}" list keys "$cur" --format csv 2>/dev/null |
    awk -F, -v typed="$cur" -v last="$1" 'NEXT_KEY_PARTS')"
}
# Which of the words that are no options the cursor is in, from 1; bash makes "=" a word of its own.
_lockstep_place() {
  local i place=1 word
  for ((i = 2; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word != -* ]]; then ((place++))
    elif [[ ${COMP_WORDS[i+1]} != = ]] && _lockstep_takes "$command:$word"; then ((i++))
    fi
    while [[ ${COMP_WORDS[i+1]} == = ]]; do ((i += 2)); done
  done
  echo $place
}

_lockstep() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [[ $cur == = ]]; then cur=
  elif [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
)sh";

/// awk: the names in the CSV of `lockstep list`; of scenarios, those for the command `of`.
constexpr std::string_view kNamesOf =
    R"awk(NR > 1 && (of == "lockstep " || $2 == of) {print $1})awk";

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

std::string with_awk_programs(std::string_view script) {
  std::string out(script);
  for (const auto& [place, program] :
       {std::pair<std::string_view, std::string_view>{"NEXT_KEY_PARTS", kNextKeyParts},
        {"NAMES_OF", kNamesOf}}) {
    const std::size_t at = out.find(place);
    if (at != out.npos) out.replace(at, place.size(), program);
  }
  return out;
}

CompletedValues values_of(const OptionSpec& option) {
  const std::string_view argument = option.argument;
  if (is_choice(argument)) return {Kind::words, alternatives(argument), is_list(argument)};
  for (const NamedOption& named : kNamedOptions) {
    if (named.option != option.name || argument.empty()) continue;
    const bool file_too = argument.find("FILE") != argument.npos;
    return {file_too ? Kind::names_or_files : Kind::names, std::string(named.kind),
            is_list(argument)};
  }
  if (argument.starts_with("PATH")) {
    return {Kind::keys, argument.find('=') == argument.npos ? "" : "="};
  }
  if (option.path == PathUse::none) return {};
  return {argument == "DIR" ? Kind::folders : Kind::files, {}};
}

namespace {

/// A word of a usage, without its brackets.
CompletedValues values_of_place(std::string_view command, std::string_view word) {
  if (std::ranges::none_of(word, [](char c) { return c >= 'A' && c <= 'Z'; })) {
    return {Kind::words, alternatives(word)};
  }
  if (word == "FIELD") return {Kind::names, "fields"};
  if (word == "SCENARIO" || word.starts_with("FILE|NAME")) {
    const bool own = std::ranges::find(kOfTheirOwn, command) != kOfTheirOwn.end();
    return {Kind::names_or_files, fmt::format("scenarios {}", own ? command : "run")};
  }
  if (word.starts_with("FILE") || word.starts_with("TRACE")) return {Kind::files, {}};
  return {};
}

}  // namespace

std::vector<CompletedValues> places_of(const CommandSpec& command) {
  std::vector<CompletedValues> places;
  std::string_view usage = command.usage;
  while (!usage.empty()) {
    std::size_t end = usage.size(), next = usage.size();
    for (const std::string_view between : {" | ", ", or "}) {
      const std::size_t found = usage.find(between);
      if (found < end) end = found, next = found + between.size();
    }
    std::string_view way = usage.substr(0, end);
    usage.remove_prefix(next);
    for (std::size_t place = 0; !way.empty(); ++place) {
      std::string_view word = way.substr(0, way.find(' '));
      way.remove_prefix(std::min(word.size() + 1, way.size()));
      if (word.starts_with('[')) word.remove_prefix(1);
      if (word.ends_with(']')) word.remove_suffix(1);
      if (word.starts_with('-') || word.starts_with('(') || word == "options") break;
      if (place == 0) continue;  // the command's own name
      const CompletedValues values = values_of_place(command.name, word);
      if (places.size() < place) places.push_back(values);
      CompletedValues& here = places[place - 1];
      if (here.kind == Kind::words && values.kind == Kind::words && here.words != values.words) {
        here.words += " " + values.words;
      }
    }
  }
  return places;
}

std::string bash_completion(std::span<const Command* const> commands) {
  std::string names, options, values, places, taking;
  for (const Command* command : commands) {
    const CommandSpec& spec = *command->spec;
    names += fmt::format("{} ", spec.name);
    std::string all;
    for (const OptionSpec& option : options_of(spec)) {
      all += fmt::format("{}--{}", all.empty() ? "" : " ", option.name);
      if (option.argument.empty()) continue;
      values += fmt::format("    {}) {}; return ;;\n", pattern(spec, option),
                            bash_action(values_of(option)));
      taking += fmt::format("{}{}", taking.empty() ? "" : "|", pattern(spec, option));
    }
    options += fmt::format("      {}) _lockstep_words \"{}\" ;;\n", spec.name, all);
    const std::vector<CompletedValues> all_places = places_of(spec);
    for (std::size_t place = 0; place < all_places.size(); ++place) {
      if (spec.name == "show" && place == 1) continue;
      places += fmt::format("    {}:{}) {}; return ;;\n", spec.name, place + 1,
                            bash_action(all_places[place]));
    }
    if (all_places.empty()) places += fmt::format("    {}:*) return ;;\n", spec.name);
  }
  return with_awk_programs(kBashHead) +
         fmt::format(
             "  if ((COMP_CWORD == 1)); then\n"
             "    _lockstep_words \"{}--help --version\"\n    return\n  fi\n",
             names) +
         "  case \"$command:$previous\" in\n" + values +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n    case \"$command\" in\n" +
         options +
         "    esac\n    return\n  fi\n"
         "  case \"$command:$(_lockstep_place)\" in\n" +
         places +
         "    show:2) _lockstep_words \"$(_lockstep_names \"${COMP_WORDS[2]}\")\"; return ;;\n"
         "  esac\n  _lockstep_files\n}\n"
         "_lockstep_takes() {\n  case $1 in\n    " +
         taking + ") ;;\n    *) return 1 ;;\n  esac\n}\n\ncomplete -F _lockstep lockstep\n";
}

// --- zsh ----------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kZshHead =
    R"sh(#compdef lockstep
# Completion of lockstep for zsh. Made by `lockstep completion zsh`.

_lockstep_names() {
  local -a names
  names=(${(f)"$(lockstep list $1 --format csv 2>/dev/null |
    awk -F, -v of="lockstep $2" 'NAMES_OF')"})
  compadd -a names
}
_lockstep_list() {
  compset -P '*,'
  "$@"
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
  const std::string_view list = values.list ? "_lockstep_list " : "";
  switch (values.kind) {
    case Kind::nothing:
      return " ";
    case Kind::words:
      return values.list ? fmt::format("{{_lockstep_list compadd {}}}", values.words)
                         : fmt::format("({})", values.words);
    case Kind::files:
      return "_files";
    case Kind::folders:
      return "_files -/";
    case Kind::names:
      return fmt::format("{{{}_lockstep_names {}}}", list, values.words);
    case Kind::names_or_files:
      return fmt::format("{{{}_lockstep_names {}; _files}}", list, values.words);
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
    const std::vector<CompletedValues> all_places = places_of(spec);
    for (std::size_t place = 0; place < all_places.size(); ++place) {
      const std::string action = spec.name == "show" && place == 1 ? "{_lockstep_names $words[2]}"
                                                                   : zsh_action(all_places[place]);
      cases += fmt::format("        '{}:what:{}' \\\n", place + 1, action);
    }
    cases += all_places.empty() ? "        && return\n" : "        '*:file:_files'\n";
    cases += "      ;;\n";
  }
  return with_awk_programs(kZshHead) + "_lockstep() {\n  local -a commands\n  commands=(\n" +
         names +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n" +
         cases + "  esac\n}\n\n_lockstep \"$@\"\n";
}

}  // namespace lockstep
