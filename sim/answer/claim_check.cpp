#include "sim/answer/claim_check.hpp"

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
    if (!assertion) fail(written, std::string(assertion_form()));
    std::optional<AssertedNumber> number = held_against(*assertion, answer);
    if (!number) {
      const std::vector<std::string> fields = number_fields(answer);
      fail(written, "a number of the answer's JSON", nearest_name(assertion->field, fields));
    }
    bounds_.push_back({*assertion, number->value, std::move(number->miss)});
  }
}

std::vector<std::string> ClaimCheck::misses() const {
  std::vector<std::string> lines;
  for (const Bound& bound : bounds_) {
    if (bound.miss) lines.push_back("expectation missed: " + *bound.miss);
  }
  return lines;
}

void add_claim(const ClaimCheck& claim, nlohmann::ordered_json& answer,
               std::vector<std::string>& misses) {
  answer["claim"] = Value(claim_fields().values(claim)).json();
  for (std::string& line : claim.misses()) misses.push_back(std::move(line));
}

}  // namespace lockstep
