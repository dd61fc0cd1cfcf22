#include "tools/lockstep/claim_text.hpp"

#include <fmt/format.h>

#include "models/base/number_text.hpp"

namespace lockstep {

std::string claim_text(const ClaimCheck& check, const TextStyle& style) {
  const Claim& claim = check.claim();
  const std::string& source = check.source();
  constexpr int kIndent = 2;
  const auto paragraph = [](const std::string& words) {
    return "  " + wrap(words, kTextColumns - kIndent, kIndent) + "\n";
  };
  std::string out = "\n" + style.bold(claim.sentence.empty() ? "Expected" : "Claim") +
                    (source.empty() ? "" : " (" + source + ")") + "\n";
  if (!claim.sentence.empty()) {
    out +=
        paragraph('"' + claim.sentence + "\" This " + (claim.holds ? "holds." : "does not hold."));
  }
  if (!claim.explanation.empty()) out += paragraph(claim.explanation);
  for (const ClaimCheck::Bound& bound : check.bounds()) {
    out += paragraph(
        bound.miss ? "NOT met: " + *bound.miss
                   : fmt::format("{}: it is {}", bound.assertion.text, number_text(bound.value)));
  }
  return out;
}

}  // namespace lockstep
