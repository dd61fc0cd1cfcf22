#include "tools/lockstep/run/claim_text.hpp"

#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

/// Whole ones in full, others to four digits: "16,384", "6,765,000", "0.6231", "5.936e+20".
std::string rounded_text(double value) {
  if (std::abs(value) < 1e15 && value == std::round(value)) return grouped(value);
  return significant(std::strtod(fmt::format("{:.3e}", value).c_str(), nullptr), 4);
}

/// The figure in the unit that the field's name ends in: "325 M USD", "14.0 MW", "2.61 s",
/// "6,765,000 tokens/s".
std::string figure_text(std::string_view field, double value) {
  if (field.ends_with("_s") && !field.ends_with("_per_s")) return duration_text(value);
  if (field.ends_with("_w")) return significant(value / 1e6) + " MW";
  if (field.ends_with("_usd")) return compact(value) + " USD";
  if (field.ends_with("_bytes_per_s")) return significant(value / 1e9) + " GB/s";
  if (field.ends_with("_gib")) return significant(value, 4) + " GiB";
  const std::string_view last = field.substr(field.rfind('.') + 1);
  if (last == "mfu" || last == "hfu" || last.ends_with("share") || last == "goodput" ||
      last == "utilisation") {
    return percent_text(value);
  }
  if (last.ends_with("tokens_per_s")) return rounded_text(value) + " tokens/s";
  if (last.ends_with("requests_per_s")) return rounded_text(value) + " requests/s";
  if (last.ends_with("peak_flops")) return rounded_text(value) + " FLOP/s";
  return rounded_text(value);
}

}  // namespace

ClaimWords claim_words(const ClaimCheck& check) {
  const Claim& claim = check.claim();
  ClaimWords out{.title = claim.sentence.empty() ? "Expected" : "Claim",
                 .source = check.source(),
                 .explanation = claim.explanation};
  if (!claim.sentence.empty()) {
    out.verdict = '"' + claim.sentence + "\" This " + (claim.holds ? "holds." : "does not hold.");
  }
  for (const ClaimCheck::Bound& bound : check.bounds()) {
    out.bounds.push_back(bound.miss
                             ? "NOT met: " + *bound.miss
                             : fmt::format("{}: it is {}", bound.assertion.text,
                                           figure_text(bound.assertion.field, *bound.value)));
  }
  return out;
}

std::string claim_text(const ClaimCheck& check, const TextStyle& style) {
  const ClaimWords words = claim_words(check);
  constexpr int kIndent = 2;
  const auto paragraph = [](const std::string& text) {
    return text.empty() ? "" : "  " + wrap(text, kTextColumns - kIndent, kIndent) + "\n";
  };
  std::string out = "\n" + style.bold(words.title) +
                    (words.source.empty() ? "" : " (" + words.source + ")") + "\n";
  out += paragraph(words.verdict) + paragraph(words.explanation);
  for (const std::string& bound : words.bounds) out += paragraph(bound);
  return out;
}

}  // namespace lockstep
