/// A bound on a number of an answer: what `--assert` and the claims of scenarios say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace lockstep {

/// "mfu>=0.40", taken apart.
struct Assertion {
  enum class Operator : unsigned char { at_least, at_most, above, below, equal };
  std::string text;  ///< as given
  std::string field;
  Operator op = Operator::at_least;
  double bound = 0;
};

/// ">=", as it is written.
std::string_view operator_text(Assertion::Operator op);
/// Parses FIELD OPERATOR NUMBER; the operators are >= <= > < ==. The field is a dotted path: "mfu",
/// "power.facility_w", "waterfall.pipeline_bubble.share" (an element of a list by its name or its
/// index). The number is in the unit of the field (unit_at()), or has one of its own: "6 ms" of
/// seconds, "70 GiB", "1.2 MW", "3 MWh", "5 M USD", "40 %" of what has no unit. Nothing if the text
/// is not of this form.
std::optional<Assertion> try_assertion(const std::string& text);
/// What the form is, for messages; of a text whose unit is not one of its field's, which are.
std::string assertion_form(std::string_view text);
/// What a dotted path ends at, an element of a list by its name or its index; null: there is none.
const nlohmann::ordered_json* member_at(const nlohmann::ordered_json& result,
                                        std::string_view path);
/// The number at a dotted path, a truth value as 0 or 1; nothing if there is none.
std::optional<double> number_at(const nlohmann::ordered_json& result, std::string_view path);
/// Whether a dotted path ends at a member that has no value (null), such as the mean of no jobs.
bool is_null_at(const nlohmann::ordered_json& result, std::string_view path);
/// The names of the numbers on the first level.
std::vector<std::string> number_fields(const nlohmann::ordered_json& result);

/// Nothing if the value keeps the bound, else by how much it misses it. Equality is that of 12
/// significant digits.
std::optional<std::string> missed_by(const Assertion& assertion, double value);
}  // namespace lockstep
