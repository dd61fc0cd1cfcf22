/// Examples of the keys that scenarios cannot do without: what an error shows for one that is
/// missing.
#pragma once

#include <string_view>

namespace lockstep {

/// A valid value of the key as JSON; empty: none is listed, and its reader tells one. `object` is
/// the pointer of the object that lacks it: "/jobs/0" makes a difference to "nodes".
std::string_view key_example(std::string_view object, std::string_view key);

}  // namespace lockstep
