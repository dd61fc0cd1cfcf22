/// A claim of a scenario, held against the answer that a command gives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/claim.hpp"
#include "tools/console/assertion.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// The bounds of a claim, each with the figure of the answer.
class ClaimCheck {
 public:
  /// Looks the fields up in `answer`, a command's JSON output. Throws InputError, with the bound's
  /// place in the scenario, for one that cannot be read and for a field that the answer lacks.
  ClaimCheck(Claim claim, std::string source, const nlohmann::ordered_json& answer);

  /// A line for each bound that the answer does not keep.
  [[nodiscard]] std::vector<std::string> misses() const;
  /// The JSON output's "claim": sentence, verdict, explanation, source, and every bound.
  [[nodiscard]] nlohmann::ordered_json json() const;
  /// For people.
  [[nodiscard]] std::string text(const TextStyle& style) const;

 private:
  struct Bound {
    Assertion assertion;
    double value = 0;
    std::optional<std::string> miss;
  };
  Claim claim_;
  std::string source_;
  std::vector<Bound> bounds_;
};

/// Adds the JSON's "claim", and what it misses.
void add_claim(const ClaimCheck& claim, nlohmann::ordered_json& answer,
               std::vector<std::string>& misses);

}  // namespace lockstep
