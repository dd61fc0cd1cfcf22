/// What people say about GPU clusters, held against the answer: part of a scenario's "expect".
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/declared_members.hpp"

namespace lockstep {

/// One entry of "that": a bound on a field of the JSON output, such as "mfu>=0.40".
struct ClaimBound {
  std::string text;           ///< as written: FIELD OPERATOR NUMBER
  std::string file, pointer;  ///< where it stands, for messages
};

/// A sentence that people say, what the scenario's author found of it, and the bounds on the answer
/// that show it.
struct Claim {
  std::string sentence;     ///< as it is said; may be empty, where there are only bounds
  bool holds = true;        ///< false: the bounds show what is right instead
  std::string explanation;  ///< why the answer is what it is, with the right figure
  std::vector<ClaimBound> bounds;

  [[nodiscard]] bool empty() const { return sentence.empty() && bounds.empty(); }
};

/// "claim", "holds", "because" and "that" of an "expect" object. Throws InputError for a verdict or
/// an explanation without a claim. The bounds are parsed by the command that knows the fields of
/// its answer.
void declare_claim(const DeclaredMembers& member, Claim& out);

/// The "expect" of a scenario of which nothing but bounds on its answer is expected.
struct BoundsExpectation {
  Claim claim;
  std::string source;  ///< where it was measured or published; may be empty
};

/// The keys of a claim, and "source". Throws InputError where nothing is expected.
void declare_bounds_expectation(const DeclaredMembers& member, BoundsExpectation& out);

}  // namespace lockstep
