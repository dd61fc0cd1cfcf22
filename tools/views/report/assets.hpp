/// What every page carries, put into the program when it is built.
#pragma once

#include <string_view>

#include "tools/console/options.hpp"

namespace lockstep {

/// The script that defines `echarts`, and the licence texts that have to go along with it.
struct ChartLibrary {
  std::string_view script;
  std::string_view licences;
};

/// The library that the program was built with. Throws UsageError where it was built without one
/// (npm was not there when tools/setup ran), saying what to do: so a command asks for it before
/// it simulates.
ChartLibrary chart_library();

/// What --report is given: throws where no page can be made, before anything is simulated.
bool wants_report(const ParsedOptions& options);
/// Writes the page to the file that --report names, whole or not at all. Throws InputError.
void write_report(const ParsedOptions& options, std::string_view html);

std::string_view page_style();         ///< page.css
std::string_view page_script();        ///< page.js: draws the charts
std::string_view page_parts_script();  ///< page_parts.js: sorts and searches tables, zooms pictures
std::string_view explore_style();      ///< explore/explore.css
std::string_view explore_script();     ///< explore/explore.js: asks, and shows the answers
/// explore/alone.js: answers it where nobody serves the page, from the module.
std::string_view explore_alone_script();

/// Lockstep for browsers (tools/package/wasm), WebAssembly compressed as gzip. Throws UsageError
/// where the program was built without it, saying what to do.
std::string_view browser_module();

}  // namespace lockstep
