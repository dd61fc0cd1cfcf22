#include "tools/console/assertion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/answer.hpp"
#include "tools/console/options.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

Assertion parse_assertion(const std::string& text) {
  if (std::optional<Assertion> assertion = try_assertion(text)) return *std::move(assertion);
  throw UsageError(
      fmt::format("--assert: found {}; allowed: {}", in_quotes(text), assertion_form(text)));
}

std::optional<std::string> missed(const Assertion& assertion,
                                  const nlohmann::ordered_json& result) {
  const std::optional<AssertedNumber> number = held_against(assertion, result);
  if (!number) {
    const std::vector<std::string> fields = number_fields(result);
    throw UsageError(fmt::format("--assert {}: unknown field {}; allowed: {}{}",
                                 in_quotes(assertion.text), in_quotes(assertion.field),
                                 fmt::join(fields, ", "), did_you_mean(assertion.field, fields)));
  }
  if (!number->miss) return std::nullopt;
  return "assertion missed: " + *number->miss;
}

std::vector<Assertion> parse_assertions(const std::vector<std::string>& texts) {
  std::vector<Assertion> assertions;
  assertions.reserve(texts.size());
  for (const std::string& text : texts) assertions.push_back(parse_assertion(text));
  return assertions;
}

std::vector<std::string> all_missed(const std::vector<Assertion>& assertions,
                                    const nlohmann::ordered_json& result) {
  std::vector<std::string> misses;
  for (const Assertion& assertion : assertions) {
    if (auto miss = missed(assertion, result)) misses.push_back(std::move(*miss));
  }
  return misses;
}

void warn_of_old_names(const std::vector<Assertion>& assertions,
                       const nlohmann::ordered_json& result, Console& console) {
  const std::optional<AnswerKind> kind = kind_of(result);
  if (!kind) return;
  for (const Assertion& assertion : assertions) {
    const std::string successor = successor_of(*kind, assertion.field);
    if (successor.empty()) continue;
    console.err << terminal_text(fmt::format(
        "warning: --assert {}: {} is an old name, which the next release no longer has; write {}\n",
        in_quotes(assertion.text), in_quotes(assertion.field), in_quotes(successor)));
  }
}

Exit report_misses(const std::vector<std::string>& misses, Console& console) {
  for (const std::string& miss : misses) console.err << terminal_text(miss) << "\n";
  return misses.empty() ? Exit::ok : Exit::assertion_missed;
}

}  // namespace lockstep
