/// Examples of the keys that scenarios cannot do without, which an error shows for one that is
/// missing, and of objects, which it shows where something else was written.
#pragma once

#include <string_view>

namespace lockstep {

/// A valid value of the key as JSON; empty: none is listed, and its reader tells one. `object` is
/// the pointer of the object that lacks it: "/jobs/0" makes a difference to "nodes".
std::string_view key_example(std::string_view object, std::string_view key);

/// A valid object for this place of a scenario, "/power", as JSON; empty: none is listed.
std::string_view object_example(std::string_view pointer);

}  // namespace lockstep
