/// The page of `lockstep explore`: its form, and the places that explore.js fills with answers.
#pragma once

#include <string>

#include "tools/explore/explorer.hpp"

namespace lockstep {

/// For a program that serves it. Throws UsageError where the program was built without its chart
/// library (report/assets.hpp).
std::string explore_page(const Explorer& explorer);

/// The same page as a file that nobody serves: Lockstep is in it as a WebAssembly module, with the
/// presets. Throws UsageError where the program was built without the module as well, and
/// InputError where a preset cannot be read.
std::string explore_page_alone(const Explorer& explorer);

}  // namespace lockstep
