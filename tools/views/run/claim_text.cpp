#include "tools/views/run/claim_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "tools/views/run/figure_text.hpp"

namespace lockstep {
namespace {

std::string truth_text(double truth) { return truth == 0 ? "no" : "yes"; }

/// "60 days", "no".
std::string said_limit(const ClaimCheck::Bound& bound) {
  const double limit = bound.assertion.bound;
  const bool truth = bound.is_flag && (limit == 0 || limit == 1);
  return truth ? truth_text(limit) : bound_text(bound.assertion.field, limit);
}

/// As --assert takes it: "time_to_train_s >= 60 days", "memory_fits == no".
std::string bound_as_written(const ClaimCheck::Bound& bound) {
  return fmt::format("{} {} {}", bound.assertion.field, operator_text(bound.assertion.op),
                     said_limit(bound));
}

/// "Time to train, claimed to be at least 60 days", of `title` "Claim" or "Expected".
std::string bound_in_words(const ClaimCheck::Bound& bound, std::string_view title) {
  using enum Assertion::Operator;
  constexpr std::array<std::pair<Assertion::Operator, std::string_view>, 5> kWords{
      {{at_least, "at least "},
       {at_most, "at most "},
       {above, "above "},
       {below, "below "},
       {equal, ""}}};
  const auto* const words = std::ranges::find(
      kWords, bound.assertion.op, &std::pair<Assertion::Operator, std::string_view>::first);
  std::string name = figure_title(bound.assertion.field);
  if (name.front() >= 'a' && name.front() <= 'z') {
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
  }
  return fmt::format("{}, {} to be {}{}", name, title == "Claim" ? "claimed" : "expected",
                     words->second, said_limit(bound));
}

/// "it is 74.3 days"; of a bound that is missed how far it is off, "points" of shares.
std::string said_figure(const ClaimCheck::Bound& bound) {
  if (!bound.value) return "it has no value" + bound.why_null;
  const std::string& field = bound.assertion.field;
  const double limit = bound.assertion.bound, off = *bound.value - limit;
  if (bound.is_flag) return "it is " + truth_text(*bound.value);
  if (!bound.miss) return "it is " + figure_text(field, *bound.value);
  if (off == 0) return "it is " + figure_text(field, *bound.value) + ", exactly at the bound";
  std::string out = "it is " + missing_text(field, *bound.value, limit);
  const std::string by = is_share_figure(field) ? significant(100 * std::abs(off)) + " points"
                                                : figure_text(field, std::abs(off));
  out += fmt::format(", {} {}", by, off > 0 ? "above" : "below");
  const bool relative = limit != 0 && !is_share_figure(field);
  return relative ? out + fmt::format(" ({} %)", significant(100 * std::abs(off / limit))) : out;
}

/// Prints "This holds." only if the answer proves the claim; otherwise the claim is the scenario's
/// statement.
std::string said_verdict(const ClaimCheck& check) {
  const std::string found = check.claim().holds ? "holds" : "does not hold";
  switch (check.verdict()) {
    case ClaimVerdict::contradicted:
      return "The scenario says that this " + found + "; the answer contradicts it.";
    case ClaimVerdict::untested:
      return "The scenario says that this " + found + ", and gives no bound to test it by.";
    case ClaimVerdict::confirmed:
      break;
  }
  return "This " + found + ".";
}

}  // namespace

ClaimWords claim_words(const ClaimCheck& check) {
  const Claim& claim = check.claim();
  ClaimWords out{.title = claim.sentence.empty() ? "Expected" : "Claim",
                 .source = check.source(),
                 .explanation = claim.explanation};
  if (!claim.sentence.empty()) {
    out.verdict = '"' + claim.sentence + "\" " + said_verdict(check);
  }
  for (const ClaimCheck::Bound& bound : check.bounds()) {
    const auto sentence = [&](const std::string& condition) {
      return fmt::format("{}{}: {}", bound.miss ? "NOT met: " : "", condition, said_figure(bound));
    };
    out.bounds.push_back(sentence(bound_as_written(bound)));
    out.titled.push_back({sentence(bound_in_words(bound, out.title)), bound.assertion.field});
  }
  return out;
}

std::vector<std::string> expectation_sentences(const RunResult& result) {
  std::vector<std::string> out;
  for (const ExpectationCheck& check : check_expectation(result)) {
    const bool is_time = check.what == "step time";
    const auto value = [&](double v) { return is_time ? duration_text(v) : percent_text(v); };
    out.push_back(fmt::format(
        "{} {} against {} measured: {}, {} the {:g} % that the scenario allows", check.what,
        value(check.predicted), value(check.expected), error_text(check.error),
        check.within ? "within" : "NOT within", 100 * result.scenario.expect->within));
  }
  return out;
}

std::string claim_text(const ClaimCheck* check, const TextStyle& style) {
  if (check == nullptr) return {};
  const ClaimWords words = claim_words(*check);
  constexpr int kIndent = 2;
  const auto paragraph = [](const std::string& text) {
    return text.empty() ? "" : "  " + wrap(text, kTextColumns, kIndent, kIndent) + "\n";
  };
  std::string out = "\n" + style.bold(words.title) +
                    (words.source.empty() ? "" : " (" + words.source + ")") + "\n";
  out += paragraph(words.verdict) + paragraph(words.explanation);
  for (const std::string& bound : words.bounds) out += paragraph(bound);
  return out;
}

}  // namespace lockstep
