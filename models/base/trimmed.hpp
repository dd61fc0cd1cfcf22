/// Texts without the blanks around them.
#pragma once

#include <string_view>

namespace lockstep {

/// The part of a text from its first to its last character that is not a space, a tab or the end of
/// a line, whatever the locale. Views the same characters; empty where all are blank.
[[nodiscard]] std::string_view trimmed(std::string_view text);

}  // namespace lockstep
