/// A claim of a scenario, held against the answer that a command gives.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/assertion.hpp"
#include "sim/scenario/claim.hpp"

namespace lockstep {

/// What an answer says of a claim: all of its bounds are kept; one is not; it has none.
enum class ClaimVerdict { confirmed, contradicted, untested };
inline constexpr std::array<std::string_view, 3> kClaimVerdictNames{"confirmed", "contradicted",
                                                                    "untested"};

/// The bounds of a claim, each with the figure of the answer.
class ClaimCheck {
 public:
  /// Looks the fields up in `answer`, a command's JSON output. Throws InputError, with the bound's
  /// place in the scenario, for one that cannot be read and for a field that the answer lacks.
  ClaimCheck(Claim claim, std::string source, const nlohmann::ordered_json& answer);

  /// A line for each bound that the answer does not keep.
  [[nodiscard]] std::vector<std::string> misses() const;
  /// Of what the scenario's author found: that the claim holds, or that it does not.
  [[nodiscard]] ClaimVerdict verdict() const;
  struct Bound {
    Assertion assertion;
    std::optional<double> value;  ///< nothing where the answer has null
    std::optional<std::string> miss;
    std::string why_null;  ///< of null, ": it is ..."
    bool is_flag = false;  ///< a truth value of the answer, 0 or 1 in `value`
  };
  [[nodiscard]] const Claim& claim() const { return claim_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const std::vector<Bound>& bounds() const { return bounds_; }

 private:
  Claim claim_;
  std::string source_;
  std::vector<Bound> bounds_;
};

/// Holds a claim against an answer: adds "claim" to its JSON, and a line for each bound that is
/// not kept to `misses`. Null for an empty claim. Throws as ClaimCheck does.
std::unique_ptr<const ClaimCheck> judge_claim(const Claim& claim, const std::string& source,
                                              nlohmann::ordered_json& answer,
                                              std::vector<std::string>& misses);
/// Judges the claim in a scenario's "expect", whichever kind of scenario has it.
template <class Expect>
std::unique_ptr<const ClaimCheck> judge_claim(const std::optional<Expect>& expect,
                                              nlohmann::ordered_json& answer,
                                              std::vector<std::string>& misses) {
  return expect ? judge_claim(expect->claim, expect->source, answer, misses) : nullptr;
}

}  // namespace lockstep
