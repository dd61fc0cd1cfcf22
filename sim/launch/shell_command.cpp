#include "sim/launch/shell_command.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace lockstep {
namespace {

/// Commands that go on with the command behind them.
constexpr std::array<std::string_view, 6> kCarriers{"export",   "local",   "declare",
                                                    "readonly", "typeset", "set"};

void make_assignment(const ShellToken& token, ShellVariables& variables) {
  const std::size_t equals = token.text.find('=');
  std::string name = token.text.substr(0, equals);
  const bool append = name.ends_with('+');
  if (append) name.pop_back();
  if (name.ends_with(']')) name = variables.text(name);  // CFG[tp]=4
  if (token.kind == ShellTokenKind::array) {
    std::vector<std::string> values;
    for (const std::string& raw : token.words) {
      const std::size_t key_end = raw.starts_with('[') ? raw.find("]=") : std::string::npos;
      if (key_end != std::string::npos) {  // declare -A CFG=([tp]=4 [pp]=2)
        const std::string key = variables.text(raw.substr(1, key_end - 1));
        variables.assign(fmt::format("{}[{}]", name, key),
                         {variables.text(std::string_view(raw).substr(key_end + 2))}, false);
        continue;
      }
      std::ranges::move(variables.words(raw), std::back_inserter(values));
    }
    variables.assign(name, std::move(values), append);
    return;
  }
  std::string value = variables.text(std::string_view(token.text).substr(equals + 1));
  if (append) value = variables.value(name).value_or("") + value;
  variables.assign(name, {std::move(value)}, false);
}

}  // namespace

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string_view name = word.substr(0, equals);
  if (name.ends_with('+')) name.remove_suffix(1);
  if (name.ends_with(']')) name = name.substr(0, name.find('['));
  const bool letters = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return letters && !name.empty() && !(name[0] >= '0' && name[0] <= '9');
}

ShellCommand take_command(ShellCursor& cursor, ShellVariables& variables, bool live) {
  ShellCommand out;
  bool carries = true;
  for (; !cursor.ends_command(); ++cursor.at) {
    const ShellToken& token = cursor.tokens[cursor.at];
    if (token.kind == ShellTokenKind::redirect) {
      const bool has_file = cursor.at + 1 < cursor.tokens.size() &&
                            cursor.tokens[cursor.at + 1].kind == ShellTokenKind::word;
      if (has_file && live && token.text == ">") {
        out.target = variables.text(cursor.tokens[cursor.at + 1].text);
      }
      if (has_file) ++cursor.at;
      continue;
    }
    if (!live) continue;
    if (token.kind == ShellTokenKind::here) {
      out.here = token.literal ? token.text : variables.lines(token.text);
    } else if (carries && (token.kind == ShellTokenKind::array || is_assignment(token.text))) {
      make_assignment(token, variables);
    } else if (token.kind == ShellTokenKind::word) {
      const bool carrier = carries && std::ranges::find(kCarriers, token.text) != kCarriers.end();
      carries =
          carrier || (carries && token.text.starts_with('-') && out.words.empty() &&
                      cursor.at > 0 && cursor.tokens[cursor.at - 1].kind == ShellTokenKind::word);
      if (!carries) std::ranges::move(variables.words(token.text), std::back_inserter(out.words));
    }
  }
  return out;
}

}  // namespace lockstep
