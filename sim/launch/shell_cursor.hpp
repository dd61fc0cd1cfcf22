/// A place among the tokens of a shell script.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sim/launch/shell_tokens.hpp"

namespace lockstep {

struct ShellCursor {
  std::vector<ShellToken> tokens;
  std::size_t at = 0;

  /// Null behind the last token.
  [[nodiscard]] const ShellToken* peek() const {
    return at < tokens.size() ? &tokens[at] : nullptr;
  }
  [[nodiscard]] bool is_sign(std::string_view text) const {
    return peek() != nullptr && peek()->kind == ShellTokenKind::sign && peek()->text == text;
  }
  [[nodiscard]] bool is_word(std::string_view text) const {
    return peek() != nullptr && peek()->kind == ShellTokenKind::word && peek()->text == text;
  }
  /// Any sign but a bracket that opens.
  [[nodiscard]] bool ends_command() const {
    return peek() == nullptr || (peek()->kind == ShellTokenKind::sign && peek()->text != "(");
  }
};

}  // namespace lockstep
