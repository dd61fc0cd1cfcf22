/// Examples of the keys that scenarios cannot do without: what an error shows for one that is
/// missing.
#pragma once

#include <string_view>

namespace lockstep {

/// A valid value of the key as JSON; empty: none is listed. Only keys are listed whose readers take
/// the value from the cursor that JsonCursor::at() returns.
std::string_view key_example(std::string_view key);

}  // namespace lockstep
