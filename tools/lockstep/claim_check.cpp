#include "tools/lockstep/claim_check.hpp"

#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"

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
    const std::optional<double> value = number_at(answer, assertion->field);
    if (!value) {
      const std::vector<std::string> fields = number_fields(answer);
      fail(written, "a number of the answer's JSON", nearest_name(assertion->field, fields));
    }
    bounds_.push_back({*assertion, *value, missed_by(*assertion, *value)});
  }
}

std::vector<std::string> ClaimCheck::misses() const {
  std::vector<std::string> lines;
  for (const Bound& bound : bounds_) {
    if (bound.miss) lines.push_back("expectation missed: " + *bound.miss);
  }
  return lines;
}

nlohmann::ordered_json ClaimCheck::json() const {
  nlohmann::ordered_json bounds = nlohmann::ordered_json::array();
  for (const Bound& bound : bounds_) {
    bounds.push_back({{"bound", bound.assertion.text},
                      {"value", twelve_digits(bound.value)},
                      {"kept", !bound.miss}});
  }
  return {{"sentence", claim_.sentence},
          {"holds", claim_.holds},
          {"because", claim_.explanation},
          {"source", source_},
          {"bounds", std::move(bounds)}};
}

std::string ClaimCheck::text(const TextStyle& style) const {
  constexpr int kIndent = 2;
  const auto paragraph = [](const std::string& words) {
    return "  " + wrap(words, kTextColumns - kIndent, kIndent) + "\n";
  };
  std::string out = "\n" + style.bold(claim_.sentence.empty() ? "Expected" : "Claim") +
                    (source_.empty() ? "" : " (" + source_ + ")") + "\n";
  if (!claim_.sentence.empty()) {
    out += paragraph('"' + claim_.sentence + "\" This " +
                     (claim_.holds ? "holds." : "does not hold."));
  }
  if (!claim_.explanation.empty()) out += paragraph(claim_.explanation);
  for (const Bound& bound : bounds_) {
    out += paragraph(
        bound.miss ? "NOT met: " + *bound.miss
                   : fmt::format("{}: it is {}", bound.assertion.text, number_text(bound.value)));
  }
  return out;
}

void add_claim(const ClaimCheck& claim, nlohmann::ordered_json& answer,
               std::vector<std::string>& misses) {
  answer["claim"] = claim.json();
  for (std::string& line : claim.misses()) misses.push_back(std::move(line));
}

}  // namespace lockstep
