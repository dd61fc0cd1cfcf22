/// Tests that try many of a kind try all of them under `tools/test --all`, and otherwise a part.
#pragma once

#include <cstdlib>

namespace lockstep::test {

/// Whether LOCKSTEP_THOROUGH is set.
inline bool thorough() { return std::getenv("LOCKSTEP_THOROUGH") != nullptr; }

}  // namespace lockstep::test
