/// A scenario with the layout that a search found in place of its own.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/search/tune.hpp"

namespace lockstep {

/// The scenario as it was written, `from` its file, with a layout in place of its own: what
/// `lockstep run` reads in the folder of `to`. Without what was measured of the old layout. Names
/// of files beside the scenario are made to start from the new folder.
nlohmann::ordered_json tuned_scenario(const JsonCursor& written, const Scenario& layout,
                                      const std::string& from, const std::string& to);

/// Throws the InputError that says why no layout is left, and what else would have one.
[[noreturn]] void fail_without_layout(const Scenario& base, const TuneResult& result,
                                      const TuneSpace& space);

}  // namespace lockstep
