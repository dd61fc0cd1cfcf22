/// What every page carries, put into the program when it is built.
#pragma once

#include <string_view>

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

std::string_view page_style();   ///< page.css
std::string_view page_script();  ///< page.js: draws the charts, sorts the tables

}  // namespace lockstep
