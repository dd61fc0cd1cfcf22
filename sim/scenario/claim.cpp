#include "sim/scenario/claim.hpp"

namespace lockstep {

void declare_claim(const DeclaredMembers& member, Claim& out) {
  constexpr std::size_t kMostBounds = 100;
  member.optional("claim", shared_type("claim"), "",
                  [&](const JsonCursor& at) { out.sentence = at.string(); });
  const auto needs_claim = [&](const JsonCursor& at) {
    if (member.object()->find("claim")) return;
    at.fail("only beside \"claim\", the sentence that it is about");
  };
  member.optional("holds", shared_type("holds"), "", [&](const JsonCursor& at) {
    needs_claim(at);
    out.holds = at.boolean();
  });
  member.optional("because", shared_type("because"), "", [&](const JsonCursor& at) {
    needs_claim(at);
    out.explanation = at.string();
  });
  member.optional("that", shared_type("that"), "", [&](const JsonCursor& at) {
    for (const JsonCursor& bound : at.elements(kMostBounds)) {
      out.bounds.push_back({bound.string(), bound.file(), bound.pointer()});
    }
  });
}

void declare_bounds_expectation(const DeclaredMembers& member, BoundsExpectation& out) {
  declare_claim(member, out.claim);
  member.optional("source", out.source, "Where it was measured or published");
  if (member.object() != nullptr && out.claim.empty()) {
    member.object()->fail(R"("that", bounds on numbers of the answer)");
  }
}

}  // namespace lockstep
