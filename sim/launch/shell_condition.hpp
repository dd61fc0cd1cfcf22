/// What a test of a shell script comes to: [ ... ], [[ ... ]].
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/launch/shell_tokens.hpp"
#include "sim/launch/shell_variables.hpp"

namespace lockstep {

/// `words` are the tokens between the brackets. Nothing where it cannot be known.
std::optional<bool> shell_condition(std::span<const ShellToken> words, ShellVariables& variables);

}  // namespace lockstep
