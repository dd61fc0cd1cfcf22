/// `--assert EXPR`: a bound on a number of the result, for scripts and CI.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/lockstep/cli.hpp"

namespace lockstep {

/// "mfu>=0.40", taken apart.
struct Assertion {
  enum class Operator : unsigned char { at_least, at_most, above, below, equal };
  std::string text;  ///< as given
  std::string field;
  Operator op = Operator::at_least;
  double bound = 0;
};

/// Parses FIELD OPERATOR NUMBER; the operators are >= <= > < ==, the number may end in %. Throws
/// UsageError.
Assertion parse_assertion(const std::string& text);

/// Nothing if `result` (of result_json()) keeps the assertion, else one line that says by how much
/// it missed. Equality is that of 12 significant digits. Throws UsageError for a field that the
/// result does not have as a number, with the nearest one.
std::optional<std::string> missed(const Assertion& assertion, const nlohmann::ordered_json& result);

/// Of `--assert`, all times it was given.
std::vector<Assertion> parse_assertions(const std::vector<std::string>& texts);
/// A line for each assertion that the result misses. Throws as missed() does: call it before
/// anything is written.
std::vector<std::string> all_missed(const std::vector<Assertion>& assertions,
                                    const nlohmann::ordered_json& result);
/// Prints them, and says how the program ends.
Exit report_misses(const std::vector<std::string>& misses, Console& console);

}  // namespace lockstep
