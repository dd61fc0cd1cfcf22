#include "sim/scenario/claim.hpp"

namespace lockstep {

Claim read_claim(const JsonCursor& expect) {
  constexpr std::size_t kMostBounds = 100;
  Claim out;
  const auto sentence = expect.find("claim");
  if (sentence) out.sentence = sentence->string();
  const auto needs_claim = [&](const JsonCursor& from) {
    if (!sentence) from.fail("only beside \"claim\", the sentence that it is about");
  };
  if (const auto holds = expect.find("holds")) {
    needs_claim(*holds);
    out.holds = holds->boolean();
  }
  if (const auto because = expect.find("because")) {
    needs_claim(*because);
    out.explanation = because->string();
  }
  if (const auto that = expect.find("that")) {
    for (const JsonCursor& bound : that->elements(kMostBounds)) {
      out.bounds.push_back({bound.string(), bound.file(), bound.pointer()});
    }
  }
  return out;
}

}  // namespace lockstep
