/// `--assert EXPR`: a bound on a number of the result, for scripts and CI.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/assertion.hpp"
#include "tools/console/console.hpp"

namespace lockstep {

/// As try_assertion(), for `--assert`. Throws UsageError.
Assertion parse_assertion(const std::string& text);

/// As missed_by(), for the number in `result` (of result_json()). Throws UsageError for a field
/// that the result does not have as a number, with the nearest one.
std::optional<std::string> missed(const Assertion& assertion, const nlohmann::ordered_json& result);

/// Of `--assert`, all times it was given.
std::vector<Assertion> parse_assertions(const std::vector<std::string>& texts);
/// A line for each assertion that the result misses. Throws as missed() does: call it before
/// anything is written.
std::vector<std::string> all_missed(const std::vector<Assertion>& assertions,
                                    const nlohmann::ordered_json& result);
/// Says on standard error which assertions use an old name of a member of the result.
void warn_of_old_names(const std::vector<Assertion>& assertions,
                       const nlohmann::ordered_json& result, Console& console);
/// Prints them, and says how the program ends.
Exit report_misses(const std::vector<std::string>& misses, Console& console);

}  // namespace lockstep
