/// The words and signs of a shell script, quotes and all, as they are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class ShellTokenKind : std::uint8_t {
  word,      ///< raw: with its quotes and "$"
  array,     ///< `NAME=(` or `NAME+=(`, with the raw words up to the bracket
  sign,      ///< ; ;; & && | || ( ) and "\n"
  redirect,  ///< > >> < and what stands for a file: the word behind it is no argument
  here,      ///< <<WORD with the lines up to WORD
  formula,   ///< ((...)) where a command would be
};

struct ShellToken {
  ShellTokenKind kind = ShellTokenKind::word;
  std::string text;                ///< of a formula: what is between the brackets
  std::vector<std::string> words;  ///< of an array
  bool literal = false;            ///< lines of a here-document that say what they mean
};

/// Never fails: a quote or bracket that is left open ends with the text.
std::vector<ShellToken> shell_tokens(std::string_view text);

/// The end of what begins at `at`: a quoted string, "$(...)", "${...}", "$((...))", a back-quoted
/// command or an escaped letter, the one behind it; `at + 1` for a letter that begins nothing.
std::size_t end_of_piece(std::string_view text, std::size_t at);

}  // namespace lockstep
