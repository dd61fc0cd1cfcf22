#include "sim/answer/claim_check.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/answer.hpp"
#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

[[noreturn]] void fail(const ClaimBound& bound, std::string allowed, std::string nearest = {}) {
  throw InputError({.file = bound.file,
                    .pointer = bound.pointer,
                    .found = in_quotes(bound.text),
                    .allowed = std::move(allowed),
                    .nearest = std::move(nearest)});
}

}  // namespace

ClaimCheck::ClaimCheck(Claim claim, std::string source, const nlohmann::ordered_json& answer)
    : claim_(std::move(claim)), source_(std::move(source)) {
  for (const ClaimBound& written : claim_.bounds) {
    const std::optional<Assertion> assertion = try_assertion(written.text);
    if (!assertion) fail(written, assertion_form(written.text));
    std::optional<AssertedNumber> number = held_against(*assertion, answer);
    if (!number) {
      const std::vector<std::string> fields = number_fields(answer);
      fail(written, "a number of the answer's JSON", nearest_name(assertion->field, fields));
    }
    const nlohmann::ordered_json* const member = member_at(answer, assertion->field);
    bounds_.push_back({.assertion = *assertion,
                       .value = number->value,
                       .miss = std::move(number->miss),
                       .why_null = std::move(number->why_null),
                       .is_flag = member != nullptr && member->is_boolean()});
  }
}

std::vector<std::string> ClaimCheck::misses() const {
  std::vector<std::string> lines;
  for (const Bound& bound : bounds_) {
    if (bound.miss) lines.push_back("expectation missed: " + *bound.miss);
  }
  return lines;
}

ClaimVerdict ClaimCheck::verdict() const {
  if (bounds_.empty()) return ClaimVerdict::untested;
  const bool missed =
      std::ranges::any_of(bounds_, [](const Bound& b) { return b.miss.has_value(); });
  return missed ? ClaimVerdict::contradicted : ClaimVerdict::confirmed;
}

std::unique_ptr<const ClaimCheck> judge_claim(const Claim& claim, const std::string& source,
                                              nlohmann::ordered_json& answer,
                                              std::vector<std::string>& misses) {
  if (claim.empty()) return nullptr;
  auto check = std::make_unique<const ClaimCheck>(claim, source, answer);
  answer["claim"] = Value(claim_fields().values(*check)).json();
  for (std::string& line : check->misses()) misses.push_back(std::move(line));
  return check;
}

}  // namespace lockstep
